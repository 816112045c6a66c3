"""Masks of a secure sum: vectors of whole numbers modulo 2¹²⁸ that cancel when all are added up.

The protocol is that of Bonawitz et al. (2017): pairwise masks from a key agreement, a mask of its
own for each holder, both recoverable from shares if a holder drops out. Shamir's sharing is
Flower's; keys are X25519, masks come from AES-256 in counter mode, shares travel under AES-GCM, and
every key and list is signed by its holder (Ed25519). Flower's own masks are not used: they fold a
key into 32 bits to seed a generator that was not made for secrets.
"""

import base64
import json
import secrets
from collections.abc import Iterable, Mapping, Sequence

from cryptography.exceptions import InvalidSignature, InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from flwr.common.secure_aggregation.crypto.shamir import combine_shares, create_shares

from tacit.errors import FederationError

__all__ = ["combine_shares", "create_shares"]

BITS = 128
"""Sums of 1000 holders' statistics, each of up to 2⁶³ rows in steps of 2⁻³⁶, stay below 2¹²⁷."""
MODULUS = 1 << BITS
_WIDTH = BITS // 8
_NONCE_BYTES = 12

Vector = list[int]


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
        raise FederationError(f"a masked vector must have {length} entries")
    return [
        int.from_bytes(data[start : start + _WIDTH], "little")
        for start in range(0, len(data), _WIDTH)
    ]


def mask(key: bytes, length: int) -> Vector:
    """As many numbers below 2¹²⁸ as asked for, which look random to who does not know the key."""
    encryptor = Cipher(algorithms.AES(key), modes.CTR(bytes(16))).encryptor()
    stream = encryptor.update(bytes(length * _WIDTH))
    return [
        int.from_bytes(stream[start : start + _WIDTH], "little")
        for start in range(0, len(stream), _WIDTH)
    ]


def pairwise(
    private: X25519PrivateKey, others: Mapping[str, str], me: str, session: str, length: int
) -> Vector:
    """My side of the masks that I share with others, who are given by name and public key."""
    total: Vector = [0] * length
    for name, public in others.items():
        shared = mask(agree(private, public, f"mask {session}"), length)
        total = add(total, shared if me < name else negative(shared))
    return total


# Keys, shares and signatures.


def agree(private: X25519PrivateKey, public: str, purpose: str) -> bytes:
    """The key that two holders share for one purpose."""
    try:
        secret = private.exchange(X25519PublicKey.from_public_bytes(decode(public)))
    except ValueError:
        raise FederationError("a key of a secure sum is not one of X25519") from None
    return HKDF(hashes.SHA256(), 32, salt=None, info=purpose.encode()).derive(secret)


def public_text(private: X25519PrivateKey) -> str:
    """The public key of a private one."""
    return encode(private.public_key().public_bytes_raw())


def seal(key: bytes, shares: Mapping[str, str], route: str) -> str:
    """Encrypt a pair of shares for whoever has the key."""
    nonce = secrets.token_bytes(_NONCE_BYTES)
    return encode(
        nonce + AESGCM(key).encrypt(nonce, json.dumps(dict(shares)).encode(), route.encode())
    )


def open_sealed(key: bytes, text: str, route: str) -> dict[str, str]:
    """The pair of shares in a sealed text."""
    data = decode(text)
    try:
        shares = json.loads(
            AESGCM(key).decrypt(data[:_NONCE_BYTES], data[_NONCE_BYTES:], route.encode())
        )
    except (InvalidTag, ValueError):
        raise FederationError("shares of a secure sum were changed on the way") from None
    if (
        not isinstance(shares, dict)
        or set(shares) != {"seed", "key"}
        or not all(isinstance(share, str) for share in shares.values())
    ):
        raise FederationError("shares of a secure sum must be a seed's and a key's")
    return shares


def statement(*parts: str | Iterable[str]) -> bytes:
    """What is signed: an unambiguous text of its parts."""
    return json.dumps(
        [part if isinstance(part, str) else sorted(part) for part in parts], ensure_ascii=False
    ).encode()


def is_signed(public_key: str, signature: str, text: bytes) -> bool:
    """Whether a text carries the signature of a holder's key."""
    try:
        Ed25519PublicKey.from_public_bytes(decode(public_key)).verify(decode(signature), text)
    except (InvalidSignature, ValueError, FederationError):
        return False
    return True


def encode(data: bytes) -> str:
    """Bytes as text."""
    return base64.b64encode(data).decode()


def decode(text: str) -> bytes:
    """The bytes in a text."""
    try:
        return base64.b64decode(text, validate=True)
    except ValueError:
        raise FederationError(
            "a document of a secure sum holds something that is not base64"
        ) from None
