"""What both halves of a secure sum share to the letter: what is signed, a vector's layout."""

import hashlib
import re
from collections.abc import Callable

from tacit.release.attestation import statement
from tacit.study import Study

IsSigned = Callable[[str, str, bytes], bool]
"""Whether a text carries the signature of a public key: key, signature, text."""


def keys_statement(study: Study, session: str, name: str, cipher: str, masking: str) -> bytes:
    """What a holder signs of its keys."""
    return statement("tacit sum keys", study.hash, session, name, cipher, masking)


def is_own_key(study: Study, session: str, name: str, told: object, is_signed: IsSigned) -> bool:
    """Whether keys are signed by the holder they are said to be of."""
    if study.secure_sum is None or name not in study.secure_sum.holders:
        return False
    if not isinstance(told, dict) or set(told) != {"cipher", "mask", "signature"}:
        return False
    if not all(isinstance(value, str) and value.isascii() for value in told.values()):
        return False
    text = keys_statement(study, session, name, told["cipher"], told["mask"])
    return is_signed(study.secure_sum.holders[name], told["signature"], text)


def route(session: str, sender: str, receiver: str) -> bytes:
    """What sealed shares are bound to: the session, who sends them and who may read them."""
    return statement("tacit sum shares", session, sender, receiver)


def digest(vector: str) -> str:
    """The digest of a masked vector's text, which holders sign."""
    return hashlib.sha256(vector.encode()).hexdigest()


def is_digest(text: object) -> bool:
    """Whether something is written as a digest is."""
    return isinstance(text, str) and re.fullmatch("[0-9a-f]{64}", text) is not None


def length_of(study: Study) -> int:
    """Entries of a share: every noisy number, and the number of rows where it is exact."""
    return study.form.layout.entries + (study.count in {"exact", "public"})
