"""What the report says of a family: odds and rates in words, and a table of their ratios."""

import math

from tacit.analyst.posterior.ratios import MOST, ratios_of
from tacit.analyst.report import charts
from tacit.analyst.report.subject import Subject
from tacit.page.markup import Html, breakable, html, paragraph, table
from tacit.page.numbers import number

TIMES = {"odds ratio": "odds", "rate ratio": "rate"}
"""What a ratio is of."""
EXPECTED = {"logistic": "probability", "probit": "probability", "poisson": "number"}


def ratio_of(subject: Subject) -> str | None:
    """What the exponential of a coefficient is a ratio of, where it is one."""
    family = subject.posterior.family
    word = None if family is None or family.link.ratio is None else family.link.ratio
    return None if word is None else TIMES[word]


def multiplied(subject: Subject, estimate: charts.Estimate, factor: float = 1.0) -> Html:
    """A clear difference of logarithms as a factor, with its interval."""
    mean, low, high = (
        math.exp(min(max(factor * value, -MOST), MOST))
        for value in (estimate.mean, estimate.low, estimate.high)
    )
    return html(
        "<b>$times times</b> the $ratio of <b>$response</b> ($interval $low to $high)",
        times=_near_one(mean, high - low),
        ratio=ratio_of(subject) or "",
        response=subject.posterior.asked.response.name,
        interval=subject.interval,
        low=_near_one(low, high - low),
        high=_near_one(high, high - low),
    )


def _near_one(ratio: float, width: float) -> str:
    """A ratio by two digits of its interval's width, three of its own at least."""
    return number(ratio, min(width, ratio / 10))


def expected(subject: Subject) -> str:
    """What a prediction is a prediction of."""
    family = subject.posterior.family
    if family is None:
        return subject.response
    return f"{EXPECTED[family.name]} of {subject.posterior.asked.response.name}"


def ratios(subject: Subject) -> list[Html]:
    """The ratios in a table, and how to read them."""
    told = ratios_of(subject.posterior, subject.probability)
    if told is None:
        return []
    rows = []
    for row in told.rows:
        ratio, low, high = (
            _near_one(value, row.high - row.low) for value in (row.ratio, row.low, row.high)
        )
        rows.append((breakable(row.name), ratio, f"{low} to {high}"))
    word = TIMES[told.word]
    reading = paragraph(
        "A ratio above 1 means higher $word, below 1 lower: 1.1 is 10 % more for one more unit of "
        "a number, or for a level instead of the reference.",
        word=word,
    )
    name = f"{told.word[0].upper()}{told.word[1:]}s, for one more unit of the column"
    return [table(name, ("column", told.word, subject.interval), rows), reading]
