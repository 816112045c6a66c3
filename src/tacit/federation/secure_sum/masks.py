"""Masks of a secure sum: vectors of whole numbers modulo 2¹²⁸ that cancel when all are added up.

The protocol is that of Bonawitz et al. (2017): pairwise masks from a key agreement, a mask of its
own for each holder, both recoverable from shares if a holder drops out. Shamir's sharing is
Flower's; keys are X25519, masks come from AES-256 in counter mode, shares travel under AES-GCM, and
every key and list is signed by its holder (Ed25519). Flower's own masks are not used: they fold a
key into 32 bits to seed a generator that was not made for secrets.

Secrets and keys are texts (base64) here, so that a session can be stored, and so that a test can
put symbols in their place (`Arithmetic` in holder.py).
"""

import base64
import json
import secrets
from collections.abc import Mapping, Sequence

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from tacit.errors import FederationError
from tacit.federation.flower import combine_shares, create_shares
from tacit.release.attestation import statement
from tacit.release.signature import is_signed as signature_verifies
from tacit.release.signature import load_key

BITS = 128
"""Sums of 1000 holders' statistics, each of up to 2⁶³ rows in steps of 2⁻³⁶, stay below 2¹²⁷."""
MODULUS = 1 << BITS
_WIDTH = BITS // 8
_NONCE_BYTES = 12
_SECRET_BYTES = 32
_PRIME = 2**255 - 19
"""Of the curve: a public key at or above it is a second spelling of another key."""
_LONGEST_SHARE = 200

Vector = list[int]


class SumError(FederationError):
    """What was sent does not fit the study, the protocol, or what was sent before."""


# Vectors.


def add(*vectors: Sequence[int]) -> Vector:
    """The sum of vectors, entry by entry."""
    return [sum(entries) % MODULUS for entries in zip(*vectors, strict=True)]


def negative(vector: Sequence[int]) -> Vector:
    """What cancels a vector."""
    return [-entry % MODULUS for entry in vector]


def signed(vector: Sequence[int]) -> Vector:
    """Entries as whole numbers around zero."""
    return [entry - MODULUS if entry >= MODULUS // 2 else entry for entry in vector]


def pack(vector: Sequence[int]) -> str:
    """A vector as text."""
    return base64.b64encode(
        b"".join((entry % MODULUS).to_bytes(_WIDTH, "little") for entry in vector)
    ).decode()


def unpack(text: str, length: int) -> Vector:
    """The vector of so many entries in a text."""
    data = decode(text)
    if len(data) != length * _WIDTH:
        raise SumError(f"a masked vector must have {length} entries")
    return [
        int.from_bytes(data[start : start + _WIDTH], "little")
        for start in range(0, len(data), _WIDTH)
    ]


def mask(key: bytes, length: int) -> Vector:
    """As many numbers below 2¹²⁸ as asked for, which look random to who does not know the key."""
    if len(key) != _SECRET_BYTES:
        raise SumError("secure sum: a seed is of another length")
    encryptor = Cipher(algorithms.AES(key), modes.CTR(bytes(16))).encryptor()
    stream = encryptor.update(bytes(length * _WIDTH))
    return [
        int.from_bytes(stream[start : start + _WIDTH], "little")
        for start in range(0, len(stream), _WIDTH)
    ]


def pairwise(private: str, others: Mapping[str, str], me: str, session: str, length: int) -> Vector:
    """My side of the masks that I share with others, who are given by name and public key.

    Names are part of what a mask is made from: a holder that shows another's key as its own shares
    no mask that is in use elsewhere.
    """
    total: Vector = [0] * length
    for name, public in others.items():
        purpose = statement("tacit sum mask", session, [me, name])
        shared = mask(_agreed(private, public, purpose), length)
        total = add(total, shared if me < name else negative(shared))
    return total


def masked(
    share: Sequence[int],
    secret: Mapping[str, str],
    others: Mapping[str, str],
    me: str,
    session: str,
) -> str:
    """A share under the mask of its holder's own `seed` and those of its `masking` key."""
    own = mask(decode(secret["seed"]), len(share))
    shared = pairwise(secret["masking"], others, me, session, len(share))
    return pack(add([entry % MODULUS for entry in share], own, shared))


# Keys and shares.


def new_secret() -> str:
    """A new private key or seed."""
    return encode(secrets.token_bytes(_SECRET_BYTES))


def public_of(private: str) -> str:
    """The public key of a private one."""
    return encode(_private(private).public_key().public_bytes_raw())


def is_usable(private: str, public: str) -> bool:
    """Whether a public key is one of X25519, in its one spelling, with which a secret can be had.

    A key of low order gives the same secret with everybody, which is none.
    """
    try:
        data = decode(public)
        if len(data) != _SECRET_BYTES or encode(data) != public:
            return False
        if int.from_bytes(data, "little") >= _PRIME:
            return False
        _agreed(private, public, b"trial")
    except SumError:
        return False
    return True


def split(secret: str, threshold: int, count: int) -> list[str]:
    """So many shares of a secret, of which `threshold` give it back."""
    return [encode(share) for share in create_shares(decode(secret), threshold, count)]


def joined(shares: Sequence[str]) -> str:
    """The secret in its shares."""
    try:
        return encode(combine_shares([decode(share) for share in shares]))
    except (ValueError, IndexError):
        raise SumError("secure sum: shares of a secret do not fit together") from None


def seal(private: str, public: str, route: bytes, shares: Mapping[str, str]) -> str:
    """Encrypt shares for the holder of a public key; `route` says from whom to whom."""
    nonce = secrets.token_bytes(_NONCE_BYTES)
    key = _agreed(private, public, route)
    return encode(nonce + AESGCM(key).encrypt(nonce, json.dumps(dict(shares)).encode(), route))


def open_sealed(private: str, public: str, route: bytes, text: str) -> dict[str, str]:
    """The pair of shares in a sealed text."""
    data = decode(text)
    key = _agreed(private, public, route)
    try:
        shares = json.loads(AESGCM(key).decrypt(data[:_NONCE_BYTES], data[_NONCE_BYTES:], route))
    except (InvalidTag, ValueError, RecursionError):
        raise SumError("shares of a secure sum were changed on the way") from None
    if not isinstance(shares, dict) or set(shares) != {"seed", "key"}:
        raise SumError("shares of a secure sum must be a seed's and a key's")
    if not all(isinstance(text, str) and len(text) < _LONGEST_SHARE for text in shares.values()):
        raise SumError("shares of a secure sum must be short texts")
    return shares


def _agreed(private: str, public: str, purpose: bytes) -> bytes:
    """The key that two holders share for one purpose."""
    try:
        secret = _private(private).exchange(X25519PublicKey.from_public_bytes(decode(public)))
    except ValueError:
        raise SumError("a key of a secure sum is not one of X25519") from None
    return HKDF(hashes.SHA256(), 32, salt=None, info=purpose).derive(secret)


def _private(text: str) -> X25519PrivateKey:
    try:
        return X25519PrivateKey.from_private_bytes(decode(text))
    except ValueError:
        raise SumError("secure sum: a secret is not a key of X25519") from None


# Signatures and texts.


def sign(key: str, text: bytes) -> str:
    """The signature of a holder's key, which lies in a file."""
    return encode(load_key(key).sign(text))


def is_signed(public_key: str, signature: str, text: bytes) -> bool:
    """Whether a text carries the signature of a holder's key."""
    return signature_verifies(public_key, signature, text)


def encode(data: bytes) -> str:
    """Bytes as text."""
    return base64.b64encode(data).decode()


def decode(text: str) -> bytes:
    """The bytes in a text."""
    try:
        return base64.b64decode(text, validate=True)
    except ValueError:
        raise SumError("a document of a secure sum holds something that is not base64") from None
