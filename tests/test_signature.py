"""Signatures: any change to a signed release is found.

Covers `tacit.release.signature`.
"""

import base64
import json
import stat

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
)

from tacit.errors import SignatureError
from tacit.holder.publish import publish
from tacit.release import Release
from tacit.release.signature import load_key, new_key, sign, verify
from tacit.simulation import simulate
from tacit.study import Study

STUDY = Study.from_document(
    {
        "name": "signature-test",
        "relation": "add-remove",
        "epsilon": 1.0,
        "delta": 1e-6,
        "response": {"name": "y", "range": [0, 1]},
        "features": [{"name": "x", "range": [0, 1]}],
        "release": {"count": "noisy", "response_square": True, "smallest_eigenvalue": True},
    }
)
ROWS = {"x": np.linspace(0, 1, 50), "y": np.linspace(1, 0, 50)}


@pytest.fixture(scope="module")
def key(tmp_path_factory):
    path = tmp_path_factory.mktemp("keys") / "north.key"
    new_key(path)
    return path


@pytest.fixture(scope="module")
def signed(key):
    return sign(simulate(STUDY, ROWS, np.random.default_rng(1), holder="north"), load_key(key))


def test_a_signed_release_verifies_and_reads_back(signed):
    assert verify(signed) == signed.signature.public_key
    assert Release.from_json(signed.to_json()) == signed


def test_publishing_with_a_key_signs(key, tmp_path):
    release = publish(STUDY, ROWS, holder="north", ledger=tmp_path / "ledger.db", key=key)
    assert verify(Release.from_json(release.to_json()))


def test_the_public_key_is_the_one_that_was_printed(tmp_path):
    public = new_key(tmp_path / "key")
    release = sign(
        simulate(STUDY, ROWS, np.random.default_rng(1), holder="north"), load_key(tmp_path / "key")
    )
    assert verify(release) == public
    assert len(base64.b64decode(public)) == 32


def leaves(value, path=()):
    """Every place in a document that holds a plain value."""
    if isinstance(value, dict):
        return [leaf for name, item in value.items() for leaf in leaves(item, (*path, name))]
    if isinstance(value, list):
        return [leaf for place, item in enumerate(value) for leaf in leaves(item, (*path, place))]
    return [path]


def tampered(value):
    """A slightly different value that still looks right."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value - 1
    if isinstance(value, float):
        return value * (1 + 1e-9) + 1e-300
    return value[:-1] + ("y" if value[-1:] != "y" else "z")


def test_tampering_with_any_field_is_found(signed):
    """Past all other checks: the changed document is verified by itself, as though just read."""
    document = json.loads(signed.to_json())
    tried = 0
    for path in leaves(document):
        copy = json.loads(signed.to_json())
        inner = copy
        for part in path[:-1]:
            inner = inner[part]
        if inner[path[-1]] is None or path[0] == "signature":
            continue
        inner[path[-1]] = tampered(inner[path[-1]])
        changed = Changed(copy, signed)
        with pytest.raises(SignatureError, match="does not verify: it was changed after signing"):
            verify(changed)
        tried += 1
    assert tried > 40


class Changed:
    """A document that claims the signature of another."""

    def __init__(self, document, signed):
        self.document, self.holder, self.signature = document, signed.holder, signed.signature

    def canonical(self):
        document = {name: value for name, value in self.document.items() if name != "signature"}
        return json.dumps(
            document, sort_keys=True, separators=(",", ":"), ensure_ascii=False
        ).encode()


def test_an_unchanged_document_passes_that_check(signed):
    assert verify(Changed(json.loads(signed.to_json()), signed))


@pytest.mark.parametrize(
    ("field", "value"),
    [("holder", "south"), ("n", 51.25), ("created", "2020-01-01T00:00:00Z"), ("simulated", False)],
)
def test_a_changed_file_is_refused_when_read(signed, field, value):
    document = json.loads(signed.to_json()) | {field: value}
    with pytest.raises(SignatureError, match="does not verify"):
        Release.from_json(json.dumps(document))


def test_changes_in_the_statistics_are_refused_when_read(signed):
    for field in ("xty", "xtx", "yty", "smallest_eigenvalue"):
        document = json.loads(signed.to_json())
        if field == "xtx":
            document["xtx"][0][0] += 1
        elif field == "xty":
            document["xty"][0] += 1
        else:
            document[field] += 1
        with pytest.raises(SignatureError, match="does not verify"):
            Release.from_json(json.dumps(document))


@pytest.mark.parametrize("field", ["public_key", "value"])
def test_any_change_of_the_signature_itself_is_found(signed, field):
    text = getattr(signed.signature, field)
    rule = "does not verify|is no Ed25519 public key"
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    changes = [
        text[:place] + letters[(letters.find(text[place]) + 1) % 64] + text[place + 1 :]
        for place in range(len(text))
    ]
    changes += [
        text[:-1],
        text + "A",
        text + "=",
        " " + text,
        text + "\n",
        "",
        "é" + text[1:],
        "=" * len(text),
    ]
    for change in changes:
        signature = signed.signature.model_copy(update={field: change})
        with pytest.raises(SignatureError, match=rule):
            verify(signed.model_copy(update={"signature": signature}))


def test_the_signature_of_another_release_or_key_does_not_do(signed, tmp_path):
    other = simulate(STUDY, ROWS, np.random.default_rng(2), holder="north")
    with pytest.raises(SignatureError, match="does not verify"):
        verify(other.model_copy(update={"signature": signed.signature}))
    public = new_key(tmp_path / "other.key")
    with pytest.raises(SignatureError, match="does not verify"):
        verify(
            signed.model_copy(
                update={"signature": signed.signature.model_copy(update={"public_key": public})}
            )
        )


def test_an_unsigned_release_does_not_verify(signed):
    unsigned = signed.model_copy(update={"signature": None})
    assert Release.from_json(unsigned.to_json()) == unsigned
    with pytest.raises(SignatureError, match="the release of 'north' is not signed"):
        verify(unsigned)


def test_the_layout_of_the_file_may_change(signed):
    document = json.loads(signed.to_json())
    assert verify(Release.from_json(json.dumps(dict(reversed(document.items())), indent=7)))


# Keys.


def test_a_key_is_for_its_owner_and_never_overwritten(key):
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    before = key.read_bytes()
    with pytest.raises(SignatureError, match="exists already: a key is never overwritten"):
        new_key(key)
    assert key.read_bytes() == before


def test_a_key_does_not_replace_a_dangling_link(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "absent")
    with pytest.raises(SignatureError, match="exists already"):
        new_key(tmp_path / "link")


PEM = (Encoding.PEM, PrivateFormat.PKCS8)
NO_KEYS = {
    "empty": b"",
    "text": b"not a key",
    "damaged": b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n",
    "of another kind": X25519PrivateKey.generate().private_bytes(*PEM, NoEncryption()),
    "encrypted": Ed25519PrivateKey.generate().private_bytes(*PEM, BestAvailableEncryption(b"pass")),
}


@pytest.mark.parametrize("kind", NO_KEYS)
def test_what_is_no_ed25519_key_is_refused(tmp_path, kind):
    (tmp_path / "key").write_bytes(NO_KEYS[kind])
    with pytest.raises(
        SignatureError,
        match="is not an unencrypted Ed25519 private key: make one with `tacit key new`",
    ):
        load_key(tmp_path / "key")


def test_a_key_that_cannot_be_read_is_found_before_anything_is_paid(tmp_path):
    with pytest.raises(SignatureError, match=r"cannot read the key .*: No such file or directory"):
        publish(STUDY, ROWS, holder="north", ledger=tmp_path / "ledger.db", key=tmp_path / "absent")
    assert not (tmp_path / "ledger.db").exists()
