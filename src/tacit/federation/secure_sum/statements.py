"""What both halves of a secure sum share to the letter: what is signed, a vector's layout."""

import hashlib
import re
from collections.abc import Callable

from tacit.release.attestation import statement
from tacit.visits.sitting import Sitting

IsSigned = Callable[[str, str, bytes], bool]
"""Whether a text carries the signature of a public key: key, signature, text."""


def keys_statement(sitting: Sitting, session: str, name: str, cipher: str, masking: str) -> bytes:
    """What a holder signs of its keys."""
    return statement("tacit sum keys", sitting.subject, session, name, cipher, masking)


def is_own_key(
    sitting: Sitting, session: str, name: str, told: object, is_signed: IsSigned
) -> bool:
    """Whether keys are signed, for this very sitting, by the holder they are said to be of."""
    agreed = sitting.study.secure_sum
    if agreed is None or name not in agreed.holders:
        return False
    if not isinstance(told, dict) or set(told) != {"cipher", "mask", "signature"}:
        return False
    if not all(isinstance(value, str) and value.isascii() for value in told.values()):
        return False
    text = keys_statement(sitting, session, name, told["cipher"], told["mask"])
    return is_signed(agreed.holders[name], told["signature"], text)


def route(session: str, sender: str, receiver: str) -> bytes:
    """What sealed shares are bound to: the session, who sends them and who may read them."""
    return statement("tacit sum shares", session, sender, receiver)


def digest(vector: str) -> str:
    """The digest of a masked vector's text, which holders sign."""
    return hashlib.sha256(vector.encode()).hexdigest()


def is_digest(text: object) -> bool:
    """Whether something is written as a digest is."""
    return isinstance(text, str) and re.fullmatch("[0-9a-f]{64}", text) is not None
