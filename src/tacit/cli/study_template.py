"""The text of a new study file."""

import json
import re
import tomllib
from typing import TYPE_CHECKING

from tacit.errors import StudyError

if TYPE_CHECKING:
    from tacit.study import Study

_HEAD = """\
# A Tacit study: the public agreement between holders and analyst.
# Nothing in it may be read off anybody's data: ranges and levels come from what is publicly known.

name = {name}
relation = "replace-one"    # or "add-remove": then the number of rows is private too
epsilon = {epsilon!r}
delta = {delta!r}               # well below one over the number of persons
intercept = {intercept}
missing = "drop"            # a row with a missing value adds nothing; or "impute", "refuse"
# scales_share = 0.1        # where ranges are hard to choose: a first stage spends this part on finding typical intervals

[response]
name = {response}
range = {range}             # public; values outside are clamped
"""
_TERMS = """
# The columns of the design, from the formula {formula}
# A term multiplies its factors: a feature by its name, or with a function, or with a degree (a polynomial of that degree).
"""
_TAIL = """
[release]
noise = "frobenius"         # or "triangular", the 2023 paper's; it is never better
# row_radius = 1.5          # rows longer than this are shrunk, response included; default: see `tacit study check`
# response_bound = 1.0      # clip the response at this share of half its range, after shrinking
# response_weight = 1.5     # share of X'y in the budget; default row_radius / response_bound
# response_square = true    # publish y'y too; default: where it costs nothing
# smallest_eigenvalue = false  # publish it too; the method ada-ssp needs it
# count = "withheld"        # under add-remove: "withheld", "noisy" or "public"
# average = 4               # publish sums of so many rows in place of rows; it costs accuracy: see `tacit study check`
"""
_RANGE = re.compile(r"^(?P<name>[^:]+):(?P<low>-?[\d.eE+-]+?)\.\.(?P<high>-?[\d.eE+-]+)$")


def study_text(
    name: str,
    epsilon: float,
    delta: float,
    response: str,
    columns: list[str],
    formula: str | None = None,
) -> str:
    """A commented study file from column descriptions such as age:18..100 and sex:female|male, and perhaps a formula."""
    from tacit.study.toml import table_lines

    target = _RANGE.match(response)
    if target is None:
        raise StudyError(f"--response must be NAME:LOW..HIGH, such as days:0..30; got {response!r}")
    features = {column.partition(":")[0]: _feature(column) for column in columns}
    fields = {
        "name": _quote(name),
        "epsilon": epsilon,
        "delta": delta,
        "response": _quote(target["name"]),
        "range": _interval(target),
    }
    if formula is None:
        return _HEAD.format(intercept="true", **fields) + "".join(map(_feature, columns)) + _TAIL
    study = _from_formula(
        formula,
        {target["name"]: f"range = {_interval(target)}"} | features,
        {"epsilon": epsilon, "delta": delta},
    )
    head = _HEAD.format(intercept=json.dumps(study.intercept), **fields)
    head += f'function = "{study.response.function}"\n' if study.response.function else ""
    head += (
        ""
        if study.response.centred
        else "centred = false             # divided by its largest size: the model has no constant\n"
    )
    terms = "".join(
        "\n[[terms]]\n" + table_lines(term.model_dump(mode="json")) for term in study.terms
    )
    terms = _TERMS.format(formula=" ".join(formula.split())) + terms if study.terms else ""
    return head + "".join(features[feature.name] for feature in study.features) + terms + _TAIL


def _from_formula(formula: str, features: dict[str, str], fields: dict[str, object]) -> "Study":
    from tacit.study import Study

    columns = {
        name: tomllib.loads(text.replace("[[features]]", "")) for name, text in features.items()
    }
    return Study.from_formula(formula, columns, **fields)


def _feature(column: str) -> str:
    if numeric := _RANGE.match(column):
        return f"\n[[features]]\nname = {_quote(numeric['name'])}\nrange = {_interval(numeric)}\n"
    name, colon, levels = column.partition(":")
    if not colon or "|" not in levels:
        raise StudyError(
            f"--columns must be NAME:LOW..HIGH or NAME:LEVEL|LEVEL, such as age:18..100 or sex:female|male; got {column!r}"
        )
    quoted = ", ".join(_quote(level) for level in levels.split("|"))
    comment = '# other = "other"         # takes levels not listed; without it they are an error'
    return f"\n[[features]]\nname = {_quote(name)}\nlevels = [{quoted}]    # the first is the reference\n{comment}\n"


def _interval(match: re.Match[str]) -> str:
    try:
        return f"[{float(match['low'])!r}, {float(match['high'])!r}]"
    except ValueError:
        raise StudyError(
            f"{match[0]!r} must have two numbers around '..', such as age:18..100"
        ) from None


def _quote(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
