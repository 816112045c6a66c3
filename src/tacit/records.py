"""Records: frozen documents of plain values, and the sentence that refuses a wrong one."""

import time
import unicodedata
from typing import Annotated

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
)


def _printable(text: str) -> str:
    if any(unicodedata.category(letter) in {"Cc", "Zl", "Zp"} for letter in text):
        raise ValueError("must hold no control characters or line breaks")
    return text


Name = Annotated[str, StringConstraints(min_length=1, max_length=200), AfterValidator(_printable)]
Number = Annotated[float, Field(allow_inf_nan=False)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Finite = Annotated[float, Field(allow_inf_nan=False, ge=-1e150, le=1e150)]


class Record(BaseModel):
    """A frozen record of plain values that refuses fields it does not know."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


def must(holds: bool, rule: str) -> None:  # noqa: FBT001
    """Refuse a record, while it is validated, that breaks a rule."""
    if not holds:
        raise ValueError(rule)


def explain(error: ValidationError) -> str:
    """The first complaint of a validation as one sentence: the field, the rule."""
    complaints = error.errors(include_url=False)
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
