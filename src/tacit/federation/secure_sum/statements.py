"""What both halves of a secure sum share to the letter: what is signed, a vector's layout."""

from tacit.federation.secure_sum import masks
from tacit.study import Study


def keys_statement(study: Study, session: str, name: str, cipher: str, masking: str) -> bytes:
    """What a holder signs of its keys."""
    return masks.statement("tacit sum keys", study.hash, session, name, cipher, masking)


def is_own_key(study: Study, session: str, name: str, told: object) -> bool:
    """Whether keys are signed by the holder they are said to be of."""
    if (
        study.secure_sum is None
        or not isinstance(told, dict)
        or set(told) != {"cipher", "mask", "signature"}
    ):
        return False
    if name not in study.secure_sum.holders or not all(
        isinstance(value, str) for value in told.values()
    ):
        return False
    text = keys_statement(study, session, name, told["cipher"], told["mask"])
    return masks.is_signed(study.secure_sum.holders[name], told["signature"], text)


def stay_statement(study: Study, session: str, sharers: list[str], survivors: list[str]) -> bytes:
    """What a holder signs of who gave shares and who stayed."""
    return masks.statement("tacit sum stay", study.hash, session, sharers, survivors)


def length_of(study: Study) -> int:
    """Entries of a share: every noisy number, and the number of rows where it is exact."""
    return study.form.layout.entries + (study.count in {"exact", "public"})
