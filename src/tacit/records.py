"""Records: frozen documents of plain values, and the sentence that refuses a wrong one."""

import time
import unicodedata
from collections.abc import Mapping, Sized
from typing import Annotated, Any, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
)

_BIDI = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
"""What turns the direction of writing: a name with them can look like another one."""


def _printable(text: str) -> str:
    if text.isprintable():
        return text
    must(
        not any(unicodedata.category(letter) in {"Cc", "Zl", "Zp"} for letter in text),
        "must hold no control characters or line breaks",
    )
    must(not _BIDI & set(text), "must hold no control of the direction of writing")
    return text


Name = Annotated[str, StringConstraints(min_length=1, max_length=200), AfterValidator(_printable)]
Number = Annotated[float, Field(allow_inf_nan=False)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Finite = Annotated[float, Field(allow_inf_nan=False, ge=-1e150, le=1e150)]


class Record(BaseModel):  # noqa: PLW1641 - a frozen one is given its hash
    """A frozen record of plain values that refuses fields it does not know."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    def __eq__(self, other: object) -> bool:
        """Whether all fields are equal; what was worked out from them does not count."""
        if type(self) is not type(other):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in type(self).model_fields)

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """The record with some fields changed; what was worked out from the others is forgotten."""
        copy = super().model_copy(update=update, deep=deep)
        for name in set(vars(copy)) - set(type(copy).model_fields):
            del vars(copy)[name]
        return copy


def at_most(most: int) -> BeforeValidator:
    """Refuse a list or table that has too many entries, before one of them is looked at."""

    def check(value: object) -> object:
        must(
            not isinstance(value, Sized) or len(value) <= most,
            f"must have at most {most:,} entries",
        )
        return value

    return BeforeValidator(check)


def must(holds: bool, rule: str) -> None:  # noqa: FBT001
    """Refuse a record, while it is validated, that breaks a rule."""
    if not holds:
        raise ValueError(rule)


def explain(error: ValidationError) -> str:
    """The first complaint of a validation as one sentence: the field, the rule."""
    complaints = error.errors(include_url=False, include_input=False, include_context=False)
    unknown = [complaint for complaint in complaints if complaint["type"] == "extra_forbidden"]
    # A misspelt field is both unknown and missing: what was written is easier to find.
    first = (unknown or complaints)[0]
    field = ".".join(str(part)[:100] for part in first["loc"]) or "the document"
    field = field if field.isprintable() else ascii(field)
    rule = first["msg"].removeprefix("Value error, ")
    rule = rule[0].lower() + rule[1:].replace("a valid tuple", "a list")
    return f"{field}: {rule}"


def now() -> str:
    """The time as ledger and releases state it."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
