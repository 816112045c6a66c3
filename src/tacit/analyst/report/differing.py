"""How holders differ: a section of the report, with a chart by holder for what differs most."""

from tacit.analyst.posterior.holders import CLEARLY, PERHAPS, Between, Holders
from tacit.analyst.report import charts
from tacit.analyst.report.charts import Estimate
from tacit.analyst.report.subject import Subject
from tacit.page.markup import Html, details, figure, html, paragraph, section, table
from tacit.page.numbers import between, listed, number, percent

MOST_CHARTS = 2
"""Differences that are shown holder by holder."""
MOST_SHOWN = 24
"""Holders in a chart; of more, those furthest from the average."""


def differing(subject: Subject) -> Html:
    """What differs between holders, by how much, and what a new holder would show."""
    holders = subject.posterior.holders(subject.probability, subject.units)
    if holders is None or not holders.between:
        return Html("")
    parts = [_opening(subject, holders), _table(subject, holders)]
    most = sorted(
        (k for k, one in enumerate(holders.between) if one.probability >= PERHAPS),
        key=lambda k: -holders.between[k].inconsistency,
    )
    parts += [_chart(subject, holders, k) for k in most[:MOST_CHARTS]]
    parts.append(details("Each holder's own differences", _own(holders)))
    return section("differ", "How holders differ", *parts)


def _opening(subject: Subject, holders: Holders) -> Html:
    sentences = []
    if holders.outlying:
        sentences.append(
            f"Far from all others, and therefore left out of the average: "
            f"{listed(list(holders.outlying))}."
        )
    clear = [one for one in holders.between if one.probability >= CLEARLY]
    for one in clear:
        low, high = one.half
        sentences.append(
            f"{one.name} differs between holders: half of them lie between "
            f"{number(low, high - low)} and {number(high, high - low)}."
        )
    if clear:
        sentences.append(
            "All estimates of this report are for the average holder, and more holders, "
            "not more rows or a larger ε, would narrow what differs."
        )
    elif not subject.differ:
        sentences.append("There is no clear sign that holders differ in what goes with a feature.")
    return paragraph("$text", text=" ".join(sentences))


def _table(subject: Subject, holders: Holders) -> Html:
    rows = [
        (
            one.name,
            "not told" if not one.told else _spread(one),
            percent(one.inconsistency),
            percent(one.probability),
            between(*one.new),
        )
        for one in holders.between
    ]
    heads = (
        "difference",
        f"sd between holders ({subject.interval})",
        "of what separate estimates differ by, no chance (I²)",
        "probability that holders differ",
        f"a new holder ({subject.interval})",
    )
    return table(f"Between holders, in {subject.response}", heads, rows)


def _spread(one: Between) -> str:
    width = one.high - one.low
    return f"{number(one.sd, width)} ({number(one.low, width)} to {number(one.high, width)})"


def _chart(subject: Subject, holders: Holders, k: int) -> Html:
    """Every holder's own difference, between the average and what a new holder would show."""
    average = subject.contrasts[k]
    mean = average.mean
    own = [
        _estimate(one.holder, one.mean[k], one.low[k], one.high[k])
        for one in sorted(holders.own, key=lambda one: -abs(one.mean[k] - mean))[:MOST_SHOWN]
    ]
    own.sort(key=lambda estimate: estimate.mean)
    new = _estimate("a new holder", mean, *holders.between[k].new)
    lines = [_estimate("the average holder", mean, average.low, average.high), *own, new]
    name = holders.between[k].name
    caption = html(
        "<b>$name</b>, holder by holder, each drawn towards the average as far as its own release "
        "leaves it in doubt; with $intervals.",
        name=name,
        intervals=f"{subject.interval}s",
    )
    title = f"{name}, by holder"
    return figure(caption, charts.forest(f"holders-{k}", title, lines, subject.response))


def _estimate(label: str, mean: float, low: float, high: float) -> Estimate:
    words = f"{number(mean, high - low)} ({between(low, high)})"
    return Estimate(label=label, words=words, mean=mean, low=low, high=high)


def _own(holders: Holders) -> Html:
    rows = [
        (
            one.holder,
            *(
                f"{number(mean, high - low)} ({between(low, high)})"
                for mean, low, high in zip(one.mean, one.low, one.high, strict=True)
            ),
        )
        for one in holders.own
    ]
    return table("Each holder's own differences", ("holder", *holders.names), rows)
