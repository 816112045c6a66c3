"""A site's keys: for its SuperNode, to sign releases, and the secret its two processes share."""

import base64
import hashlib
import os
import secrets
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

from tacit.errors import FederationError
from tacit.files import write_whole
from tacit.release.signature import new_key

SECRET_BYTES = 32
_ALPHABET = str.maketrans("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", "0123456789ABCDEFGHJKMNPQRSTVWXYZ")
_GROUPS = 5
_GROUP = 4


@dataclass(frozen=True)
class Keys:
    """Where the keys lie, and the public one that releases will be checked with."""

    node: Path
    node_public: Path
    sign: Path
    secret: Path
    sign_public: str


def write_keys(folder: Path) -> Keys:
    """Write new keys into a folder, made where it is not there; none is ever overwritten."""
    node = folder / "node.key"
    public = folder / "node.key.pub"
    sign = folder / "sign.key"
    secret = folder / "secret"
    for path in (node, public, sign, secret):
        if os.path.lexists(path):
            raise FederationError(
                f"{str(path)!r} exists already: a key is never overwritten; move it away first"
            )
    with suppress(OSError):  # writing says what is wrong
        folder.mkdir(parents=True, exist_ok=True)
    write_node_key(node)
    # SuperNode and executor share a group, which reads the secret.
    write_whole(secret, secrets.token_bytes(SECRET_BYTES), mode=0o640)
    return Keys(node=node, node_public=public, sign=sign, secret=secret, sign_public=new_key(sign))


def ensure_keys(folder: Path) -> None:
    """Write whichever of the keys is not there."""
    if not (folder / "node.key").exists():
        write_node_key(folder / "node.key")
    if not (folder / "sign.key").exists():
        new_key(folder / "sign.key")
    if not (folder / "secret").exists():
        write_whole(folder / "secret", secrets.token_bytes(SECRET_BYTES), mode=0o640)


def write_node_key(path: Path) -> None:
    """Write a SuperNode's private key, and its public one beside it."""
    key = ec.generate_private_key(ec.SECP384R1())
    private = key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption())
    write_whole(path, private, mode=0o600)
    public = key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH)
    write_whole(path.with_name(f"{path.name}.pub"), public + b"\n")


def fingerprint(public_key: str) -> str:
    """A public key as people read it out: 100 bits of its digest, such as 7K3Q-0FXW-M2TD-91HC-RB5E.

    Letters and digits that sound or look alike are left out. Finding another key with the same
    fingerprint would take 2¹⁰⁰ tries.
    """
    digest = hashlib.sha256(base64.b64decode(public_key)).digest()
    letters = base64.b32encode(digest).decode().translate(_ALPHABET)
    return "-".join(letters[_GROUP * k : _GROUP * (k + 1)] for k in range(_GROUPS))
