"""Ed25519 signatures on published documents: who published is then proven, not claimed."""

import base64
import os
from pathlib import Path
from typing import TypeVar

from tacit.errors import SignatureError
from tacit.files import write_whole
from tacit.release.document import Published, Signature

try:
    from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import (
        Ed25519PrivateKey,
        Ed25519PublicKey,
    )
    from cryptography.hazmat.primitives.serialization import (
        Encoding,
        NoEncryption,
        PrivateFormat,
        PublicFormat,
        load_pem_private_key,
    )
except ModuleNotFoundError:  # pragma: no cover
    raise SignatureError(
        "signed releases need the cryptography package: pip install 'tacit-dp[sign]'"
    ) from None

Signed = TypeVar("Signed", bound=Published)

_PRIME = 2**255 - 19
_ORDER_8 = 0x05FC536D880238B13933C6D305ACDFD5F098EFF289F4C345B027B2C28F95E826
_WEAK = {0, 1, _PRIME - 1, _ORDER_8, _PRIME - _ORDER_8}
"""Ordinates of the eight points of small order: anybody can sign for such a key."""


def new_key(path: str | Path) -> str:
    """Write a new private key, readable by its owner alone, and return the public key in base64."""
    path = Path(path)
    if os.path.lexists(path):
        raise SignatureError(f"{str(path)!r} exists already: a key is never overwritten")
    key = Ed25519PrivateKey.generate()
    write_whole(
        path,
        key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode(),
        mode=0o600,
    )
    return public_key(key)


def load_key(path: str | Path) -> Ed25519PrivateKey:
    """Read a private key."""
    try:
        key = load_pem_private_key(Path(path).read_bytes(), password=None)
    except OSError as error:
        raise SignatureError(f"cannot read the key {str(path)!r}: {error.strerror}") from None
    except (ValueError, TypeError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, Ed25519PrivateKey):
        raise SignatureError(
            f"{str(path)!r} is not an unencrypted Ed25519 private key: "
            "make one with `tacit key new`"
        )
    return key


def sign(release: Signed, key: Ed25519PrivateKey) -> Signed:
    """The release with a signature by `key`."""
    value = base64.b64encode(key.sign(release.canonical())).decode()
    signature = Signature(algorithm="ed25519", public_key=public_key(key), value=value)
    return release.model_copy(update={"signature": signature})


def verify(release: Published) -> str:
    """Check a release's signature and return the public key that made it.

    Whose that is, the reader must know.
    """
    if release.signature is None:
        raise SignatureError(f"the release of {release.holder!r} is not signed")
    check_key(release.signature.public_key)
    try:
        key = Ed25519PublicKey.from_public_bytes(_decode(release.signature.public_key))
        key.verify(_decode(release.signature.value), release.canonical())
    except (InvalidSignature, ValueError):
        raise SignatureError(
            f"the signature of the release of {release.holder!r} does not verify: "
            "it was changed after signing"
        ) from None
    return release.signature.public_key


def is_signed(public_key: str, signature: str, text: bytes) -> bool:
    """Whether a text carries the signature of a key; both in base64, in their one spelling."""
    try:
        Ed25519PublicKey.from_public_bytes(_decode(public_key)).verify(_decode(signature), text)
    except (InvalidSignature, ValueError):
        return False
    return True


def check_key(text: str) -> None:
    """Refuse what is no public key, and keys for which anybody can sign."""
    try:
        ordinate = int.from_bytes(_decode(text), "little") & ((1 << 255) - 1)
        is_key = len(_decode(text)) == 32 and ordinate % _PRIME not in _WEAK  # noqa: PLR2004
    except ValueError:
        is_key = False
    if not is_key:
        raise SignatureError(
            f"{text[:60]!r} is no Ed25519 public key in base64: `tacit key new` prints one"
        )


def _decode(text: str) -> bytes:
    value = base64.b64decode(text, validate=True)
    if base64.b64encode(value).decode() != text:
        raise ValueError("base64 with stray bits")
    return value


def public_key(key: Ed25519PrivateKey) -> str:
    """The public key of a private one, in base64."""
    return base64.b64encode(key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)).decode()
