"""A new study file with comments, from what the command line says of its columns."""

import re
from collections.abc import Mapping
from typing import Any

from tacit.errors import StudyError
from tacit.study import Study
from tacit.study.toml import table_lines

_RANGE = re.compile(r"(?P<name>[^:]+):(?P<low>-?[\d.eE+-]+?)\.\.(?P<high>-?[\d.eE+-]+)")
_OPENING = """\
# A Tacit study: the public agreement between holders and analyst.
# Nothing in it may be read off anybody's data: ranges and levels come from what is publicly known.
# A column may have a label = "Age" and a unit = "years", which summaries and reports show.

"""
_PERSON = """\
# person = "patient_id"     # the column that says whose a row is, where persons have several rows
"""
_PLANNED = """\
# planned_rows = [5000]     # how many rows each holder will have: several visits may then ask \
where values lie, and correct a first answer
"""
_COMMENTS = {
    "relation": 'or "add-remove": then the number of rows is private too',
    "delta": "well below one over the number of persons",
    "person": "whose a row is: all rows of a person are protected together",
    "planned_rows": "of each holder: several visits may correct a first answer",
    "missing": 'a row with a missing value adds nothing; or "impute", "refuse"',
    "range": "public; values outside are clamped",
    "levels": "the first is the reference",
    "centred": "divided by its largest size: the model has no constant",
}
_OTHER = '# other = "other"         # takes levels not listed; without it they are an error\n'
_TERMS = """\

# The columns of the design, from the formula {formula}
# A term multiplies its factors: a feature by its name, or with a function, or with a degree (a \
polynomial of that degree).
"""
_RELEASE = """\

[release]
noise = "frobenius"         # or "triangular", the 2023 paper's; it is never better
# row_radius = 1.5          # longer rows are shrunk, response included; default: see \
`tacit study check`
# response_bound = 1.0      # clip the response at this share of half its range, after shrinking
# response_weight = 1.5     # share of X'y in the budget; default row_radius / response_bound
# response_square = true    # publish y'y too; default: yes
# smallest_eigenvalue = false  # publish it too; the method ada-ssp needs it
# count = "withheld"        # under add-remove: "withheld", "noisy" or "public"
# average = 4               # publish sums of so many rows in place of rows; it costs accuracy: \
see `tacit study check`
"""


def study_text(
    name: str,
    epsilon: float,
    delta: float,
    responses: list[str],
    columns: list[str],
    formula: str | None = None,
    *,
    typical: list[str] | None = None,
    **others: object,
) -> str:
    """A study file from column descriptions such as age:18..100 and sex:female|male."""
    goal, *further = [check_response(response) for response in responses]
    features = [check_column(column) for column in columns]
    for description in typical or []:
        _add_typical(features, description)
    features += further
    fields = {"name": name, "epsilon": epsilon, "delta": delta} | others
    if further:
        fields["responses"] = tuple(each["name"] for each in [goal, *further])
    if formula is None:
        study = Study.from_document(fields | {"response": goal, "features": features})
    else:
        described = {column["name"]: column for column in [goal, *features]}
        study = Study.from_formula(formula, described, **fields)
    terms = "".join(_table("[[terms]]", term.model_dump(mode="json")) for term in study.terms)
    if formula is not None and terms:
        terms = _TERMS.format(formula=" ".join(formula.split())) + terms
    return (
        _OPENING
        + _lines(study.model_dump(mode="json", include=_PLAIN))
        + (_PERSON if study.person is None else "")
        + ("" if study.planned_rows else _PLANNED)
        + _table("[response]", study.response.model_dump(mode="json"))
        + "".join(map(_feature_table, (feature.model_dump() for feature in study.features)))
        + terms
        + _RELEASE
    )


_PLAIN = {
    *("name", "relation", "holders", "epsilon", "delta", "intercept", "missing", "person"),
    *("planned_rows", "responses"),
}


def check_response(response: str) -> dict[str, Any]:
    """The fields of the response from its description."""
    target = _RANGE.fullmatch(response)
    if target is None:
        raise StudyError(f"--response must be NAME:LOW..HIGH, such as days:0..30; got {response!r}")
    return {"name": target["name"], "range": _interval(target)}


def _add_typical(features: list[dict[str, Any]], description: str) -> None:
    """Give the feature that a description such as age:30..80 names its typical interval."""
    typical = _RANGE.fullmatch(description)
    named = [each for each in features if typical and each["name"] == typical["name"]]
    if typical is None or not named:
        raise StudyError(
            f"--typical must be NAME:LOW..HIGH of one of the columns; got {description!r}"
        )
    named[0]["typical"] = _interval(typical)


def check_column(column: str) -> dict[str, Any]:
    """The fields of a feature from its description."""
    if numeric := _RANGE.fullmatch(column):
        return {"name": numeric["name"], "range": _interval(numeric)}
    name, colon, levels = column.partition(":")
    if not colon or "|" not in levels:
        raise StudyError(
            "--columns must be NAME:LOW..HIGH or NAME:LEVEL|LEVEL, "
            f"such as age:18..100 or sex:female|male; got {column!r}"
        )
    return {"name": name, "levels": levels.split("|")}


def _interval(match: re.Match[str]) -> list[float]:
    try:
        return [float(match["low"]), float(match["high"])]
    except ValueError:
        raise StudyError(
            f"{match[0]!r} must have two numbers around '..', such as age:18..100"
        ) from None


def _feature_table(fields: Mapping[str, Any]) -> str:
    return _table("[[features]]", fields) + (_OTHER if fields["levels"] else "")


def _table(heading: str, fields: Mapping[str, Any]) -> str:
    return f"\n{heading}\n{_lines(fields)}"


def _lines(fields: Mapping[str, Any]) -> str:
    """A line for each field that is given, with a comment where there is one."""
    text = ""
    for name, value in fields.items():
        if value is None or value in ([], ()):
            continue
        line = table_lines({name: list(value) if isinstance(value, tuple) else value}).rstrip("\n")
        comment = _COMMENTS.get(name)
        text += f"{line:<27} # {comment}\n" if comment else f"{line}\n"
    return text
