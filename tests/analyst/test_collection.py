"""Who signed what: `analyst/collection.py`, `release/signature.py`, `release/log.py`.

Covers `tacit.analyst.collection`, `tacit.release.attestation`.
"""

import base64

import numpy as np
import pytest

from tacit import Study, collect
from tacit.errors import ReleaseError, SignatureError
from tacit.release.log import Entry
from tacit.release.signature import check_key, load_key, new_key, sign
from tacit.simulation import simulate

STUDY = Study.from_toml('name="s"\nepsilon=1\ndelta=1e-6\n[response]\nname="y"\nrange=[0,1]')


def release_of(holder, seed):
    return simulate(STUDY, {"y": [0.2, 0.4]}, np.random.default_rng(seed), holder=holder)


@pytest.fixture
def keys(tmp_path):
    """Public keys by holder, and what signs as each of them."""
    public = {name: new_key(tmp_path / name) for name in ("north", "south")}
    return public, lambda release, name: sign(release, load_key(tmp_path / name))


def test_a_release_counts_only_under_the_key_of_its_own_holder(keys):
    public, signed = keys
    north = signed(release_of("north", 1), "north")
    south = signed(release_of("south", 2), "south")
    as_text = [f"{name}={key}" for name, key in public.items()]
    for trusted in (public, as_text):
        assert (
            len(collect([north, south], allow_simulated=True, trusted_keys=trusted).releases) == 2
        )
    false_south = signed(release_of("south", 3), "north")
    with pytest.raises(SignatureError, match="'south' is not signed by that holder's trusted key"):
        collect([north, false_south], allow_simulated=True, trusted_keys=public)
    stranger = signed(release_of("east", 4), "south")
    with pytest.raises(SignatureError, match="no trusted key was given for 'east'"):
        collect([north, stranger], allow_simulated=True, trusted_keys=public)


def test_the_same_numbers_under_two_names_are_refused():
    north = release_of("north", 1)
    copy = north.model_copy(update={"holder": "south"})
    with pytest.raises(ReleaseError, match="hold the same numbers"):
        collect([north, copy], allow_simulated=True)


@pytest.mark.parametrize("text", ["KEY", "north", "=" + "A" * 43 + "=", "north=short"])
def test_a_key_without_its_holder_is_refused(text):
    with pytest.raises(SignatureError, match="goes with its holder"):
        collect([release_of("north", 1)], allow_simulated=True, trusted_keys=[text])


SMALL_ORDER = [
    "0100000000000000000000000000000000000000000000000000000000000000",
    "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "0000000000000000000000000000000000000000000000000000000000000080",
    "0000000000000000000000000000000000000000000000000000000000000000",
    "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
    "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa",
    "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
    "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc85",
    "0100000000000000000000000000000000000000000000000000000000000080",
    "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
]
"""All points of small order on the curve, and some of their other spellings."""


@pytest.mark.parametrize("point", SMALL_ORDER)
def test_a_key_for_which_anybody_can_sign_is_refused(point):
    with pytest.raises(SignatureError, match="no Ed25519 public key"):
        check_key(base64.b64encode(bytes.fromhex(point)).decode())


def test_the_number_of_a_batch_is_under_its_signature(keys):
    _, signed = keys
    line = Entry(signed(release_of("north", 1).in_stream("abc", 7), "north")).to_line()
    assert Entry.from_line(line.encode()).batch == 7
    moved = line.replace('"batch": 7', '"batch": 8').replace('"number": 7', '"number": 8')
    with pytest.raises(SignatureError, match="does not verify"):
        Entry.from_line(moved.encode())
    with pytest.raises(ReleaseError, match="must be those that the release states"):
        Entry.from_line(line.replace('"batch": 7', '"batch": 8').encode())
    with pytest.raises(ReleaseError, match="must state the batch"):
        Entry(release_of("north", 1)).to_line()
