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
        times=number(mean),
        ratio=ratio_of(subject) or "",
        response=subject.posterior.asked.response.name,
        interval=subject.interval,
        low=number(low),
        high=number(high),
    )


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
    rows = [
        (breakable(row.name), number(row.ratio), f"{number(row.low)} to {number(row.high)}")
        for row in told.rows
    ]
    word = TIMES[told.word]
    reading = paragraph(
        "A ratio above 1 means higher $word, below 1 lower: 1.1 is 10 % more for one more unit of "
        "a number, or for a level instead of the reference.",
        word=word,
    )
    name = f"{told.word[0].upper()}{told.word[1:]}s, for one more unit of the column"
    return [table(name, ("column", told.word, subject.interval), rows), reading]
