"""What is wrong with a study file, in a sentence: the column by its name, the rule, the way out."""

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from pydantic import ValidationError

FIELDS = {
    "features": ("name", "label", "unit", "range", "typical", "levels", "other"),
    "response": ("name", "label", "unit", "range", "function", "centred"),
    "terms": ("product", "columns"),
}
"""Fields of the tables that are part of a study."""
_KINDS = {
    "string_type": "must be text in quotation marks",
    "float_type": "must be a number",
    "int_type": "must be a whole number",
    "bool_type": "must be true or false",
    "tuple_type": "must be a list",
    "model_type": "must be a table of fields",
    "missing": "must be given",
    "string_too_short": "must not be empty",
    "too_short": "must not be empty",
    "string_too_long": "must have at most {max_length} letters",
    "greater_than_equal": "must be at least {ge:g}",
    "less_than_equal": "must be at most {le:g}",
    "greater_than": "must be above {gt:g}",
    "less_than": "must be below {lt:g}",
    "none_required": (
        "is no field any more: leave it out and plan rows (planned_rows), and the first of several "
        "visits finds where values lie"
    ),
    "string_pattern_mismatch": "must be a hash, as `tacit study check` shows it: sha256:…",
}
_PAIR = "must be a list of two numbers, as [18, 100]"
_PAIR_KINDS = {"tuple_type", "too_long", "missing"}


def explain_study(error: ValidationError, document: object) -> str:
    """The first complaint about a study, with the name of the column that it is about."""
    complaints = error.errors(include_url=False, include_input=False)
    unknown = [complaint for complaint in complaints if complaint["type"] == "extra_forbidden"]
    first = (unknown or complaints)[0]
    return f"{_place(first['loc'], document)}: {_rule(first)}"


def _rule(complaint: Mapping[str, Any]) -> str:
    """What must hold, in our own words where pydantic's would not help."""
    path = complaint["loc"]
    kind = complaint["type"]
    if kind == "extra_forbidden":
        return f"no such field in {_table(path)}{_meant(path)}"
    if kind == "string_type" and "levels" in path:
        return 'must be text in quotation marks, as levels = ["0", "1"]'
    if kind == "string_pattern_mismatch" and "secure_sum" in path:
        return "must be a public key, as `tacit key new` prints it"
    if kind in _PAIR_KINDS and {"range", "typical"} & set(path):
        return _PAIR
    if kind in _KINDS:
        return _KINDS[kind].format(**complaint.get("ctx", {}))
    rule: str = complaint["msg"].removeprefix("Value error, ")
    return (rule[0].lower() + rule[1:]).replace("input should be", "must be")


def _place(path: Sequence[int | str], document: object) -> str:
    """Where the complaint is: the column by its name, then the field."""
    head, *rest = path or ["the study"]
    if head == "features" and rest and isinstance(rest[0], int):
        name = _name(document, rest[0])
        field = ".".join(_step(step) for step in rest[1:])
        return f"feature {name}" + (f": {field}" if field else "")
    return ".".join(_step(step) for step in path) or "the document"


def _step(step: int | str) -> str:
    text = f"entry {step + 1}" if isinstance(step, int) else step[:100]
    return text if text.isprintable() else ascii(text)


def _name(document: object, place: int) -> str:
    """A feature's name in quotation marks, or else its number, counted from 1."""
    features = document.get("features") if isinstance(document, Mapping) else None
    entry: Any = None
    if isinstance(features, Sequence) and place < len(features):
        entry = features[place]
    name = entry.get("name") if isinstance(entry, Mapping) else None
    is_fine = isinstance(name, str) and name.isprintable()
    return repr(name[:100]) if is_fine and isinstance(name, str) else f"number {place + 1}"


def _table(path: Sequence[int | str]) -> str:
    return (
        "a study" if len(path) == 1 else {"features": "a feature"}.get(str(path[0]), str(path[0]))
    )


def _meant(path: Sequence[int | str]) -> str:
    """What was probably meant by a field that is not known."""
    known = FIELDS.get(str(path[0]), ()) if len(path) > 1 else TOP
    close = get_close_matches(str(path[-1]), known, n=1)
    if close:
        return f"; did you mean {close[0]}?"
    return f"; those are {', '.join(known)}" if known else ""


TOP = (
    *("name", "relation", "epsilon", "delta", "intercept", "missing", "response", "features"),
    *("terms", "release", "planned_rows", "holders", "person", "missing_person", "weight"),
    *("responses", "stage_one", "scales_share", "secure_sum", "visits"),
)
"""Fields of a study itself."""
