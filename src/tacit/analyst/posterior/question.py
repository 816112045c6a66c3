"""Questions in words: contrasts, slopes and means that a user names, read by a small grammar.

    age: 70 - 40                    the response at 70 less that at 40
    sex: male - female              one level less another
    sex: male                       the mean response at that level
    age * 10                        what ten more of it go with
    sex[male] * 1 at age = 60       a level instead of the reference, where age is 60
    mean at age = 60, sex = male    the mean response there

What `at` does not fix is averaged over rows.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tacit.errors import PosteriorError
from tacit.study import Study
from tacit.study.columns import Feature

Value = float | str
Case = dict[str, Value]
"""Values of some features."""
FORMS = '"age: 70 - 40", "age * 10", "sex[male] * 1 at age = 60", "sex: male" or "mean"'
AMOUNTS = (1e-100, 1e100)
"""Least and most of an amount: beyond, its square is no number."""
_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"


@dataclass(frozen=True)
class Question:
    """A mean at one case, or `factor` times the difference of two; features left open average."""

    text: str
    case: Case
    other: Case | None = None  # None: the mean at `case` itself
    factor: float = 1.0
    is_slope: bool = False  # whether `factor` is an amount of a numeric feature
    feature: str = ""  # the one that is compared


def read(text: str, study: Study) -> Question:
    """The question that a text asks of a study; a sentence where it asks none."""
    head, _, conditions = text.partition(" at ")
    features = {feature.name: feature for feature in study.features}
    try:
        fixed = _case(conditions, features) if conditions else {}
        return _headed(text, head.strip(), fixed, features)
    except ValueError as error:
        raise PosteriorError(f"{text[:200]!r}: {error}") from None


def _headed(text: str, head: str, fixed: Case, features: dict[str, Feature]) -> Question:
    if head == "mean":
        return Question(text=text, case=fixed)
    slope = re.fullmatch(
        rf"(?P<name>.+?)(\[(?P<level>[^\]]+)\])?\s*\*\s*(?P<amount>{_NUMBER})", head
    )
    if slope is not None:
        feature = _feature(slope["name"].strip(), features, fixed)
        amount = _amount(feature, slope["amount"])
        if slope["level"] is not None:
            levels = [_level(feature, slope["level"]), feature.all_levels[0]]
            return _contrast(text, fixed, feature, levels, amount)
        if feature.range is None:
            raise ValueError(f"{feature.name!r} has levels: name one, as {feature.name}[level] * 1")
        return Question(
            text=text,
            case=fixed,
            other=fixed,
            factor=amount,
            is_slope=True,
            feature=feature.name,
        )
    name, colon, values = head.rpartition(":")
    if not colon:
        raise ValueError(f"a question reads as {FORMS}")
    feature = _feature(name.strip(), features, fixed)
    ends = _ends(feature, values.strip())
    if len(ends) == 1:
        case = fixed | {feature.name: ends[0]}
        return Question(text=text, case=case, feature=feature.name)
    return _contrast(text, fixed, feature, ends)


def _contrast(
    text: str, fixed: Case, feature: Feature, ends: Sequence[Value], factor: float = 1.0
) -> Question:
    """The response at the first of two values less that at the second."""
    top, bottom = ends
    if top == bottom:
        raise ValueError(f"{feature.name!r} is compared with itself: name two values that differ")
    return Question(
        text=text,
        case=fixed | {feature.name: top},
        other=fixed | {feature.name: bottom},
        factor=factor,
        feature=feature.name,
    )


def _case(text: str, features: dict[str, Feature]) -> Case:
    """Conditions such as "age = 60, sex = male"."""
    case: Case = {}
    for condition in text.split(","):
        name, equals, value = condition.partition("=")
        if not equals:
            raise ValueError("after `at` come conditions such as age = 60, with commas between")
        feature = _feature(name.strip(), features, case)
        case[feature.name] = _value(feature, value.strip())
    return case


def _feature(name: str, features: dict[str, Feature], taken: Iterable[str]) -> Feature:
    if name not in features:
        listed = ", ".join(features) or "none"
        raise ValueError(f"{name!r} is no feature of the model, which has {listed}")
    if name in taken:
        raise ValueError(f"{name!r} is there twice")
    return features[name]


def _ends(feature: Feature, text: str) -> list[Value]:
    """One value, or two with a minus between."""
    if feature.range is not None:
        between = re.fullmatch(rf"({_NUMBER})\s*-\s*({_NUMBER})", text)
        texts = between.groups() if between is not None else (text,)
        return [_value(feature, each) for each in texts]
    if text in feature.all_levels:
        return [text]
    for place, letter in enumerate(text):
        ends = [text[:place].strip(), text[place + 1 :].strip()]
        if letter == "-" and set(ends) <= set(feature.all_levels):
            return list(ends)
    raise ValueError(
        f"{feature.name!r} takes a level, or two with a minus between: "
        f"{', '.join(feature.all_levels)}"
    )


def _value(feature: Feature, text: str) -> Value:
    if feature.range is None:
        return _level(feature, text)
    low, high = feature.range
    if not re.fullmatch(_NUMBER, text) or not low <= float(text) <= high:
        raise ValueError(
            f"{feature.name!r} takes a number within its range, {low:g} to {high:g}; got {text!r}"
        )
    return float(text)


def _amount(feature: Feature, text: str) -> float:
    least, most = AMOUNTS
    if not least <= abs(float(text)) <= most:
        raise ValueError(
            f"an amount of {feature.name!r} is not 0, and lies within ±{most:g}; got {text!r}"
        )
    return float(text)


def _level(feature: Feature, text: str) -> str:
    if text not in feature.all_levels:
        raise ValueError(
            f"{text!r} is no level of {feature.name!r}, which has {', '.join(feature.all_levels)}"
        )
    return text
