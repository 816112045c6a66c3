"""What a notebook shows: small tables and a chart, without script, everything escaped."""

import hashlib
from importlib.resources import files
from typing import TYPE_CHECKING

from tacit.analyst.report import charts
from tacit.analyst.report.subject import Subject
from tacit.page.markup import Html, html, join, paragraph, table
from tacit.page.numbers import number, power

if TYPE_CHECKING:
    from tacit.analyst.collection import Collection
    from tacit.analyst.posterior.posterior import Posterior
    from tacit.analyst.posterior.prediction import Predictions
    from tacit.analyst.posterior.summary import Summary

MOST_LINES = 12
"""Rows of a table, or estimates of a chart, that are shown."""
PROBABILITY = 0.9
"""Of the intervals shown."""


def summary_html(summary: "Summary") -> Html:
    """The table of coefficients, and the verdict under it."""
    return _framed(_coefficients(summary))


def posterior_html(posterior: "Posterior") -> Html:
    """What it is, its coefficients, and a chart of what goes with each feature."""
    subject = Subject(posterior=posterior, probability=PROBABILITY)
    what = paragraph("<b>$what</b>", what=repr(posterior).strip("<>"))
    return _framed(what, _coefficients(subject.summary), _chart(subject))


def collection_html(collection: "Collection") -> Html:
    """The releases in a table."""
    releases = collection.releases
    shown = [
        (
            release.holder + (" (simulated)" if release.simulated else ""),
            "not published" if release.n is None else f"{release.n:,.0f}",
            f"{release.epsilon:g}",
            power(release.delta),
        )
        for release in releases[:MOST_LINES]
    ]
    caption = f"Releases of the study {collection.study.name!r}"
    return _framed(
        table(caption, ("holder", "rows", "ε", "δ"), shown), *_more(len(releases), "releases")
    )


def predictions_html(predictions: "Predictions") -> Html:
    """The first predictions."""
    fields = ("mean", "mean_low", "mean_high", "low", "high")
    first = predictions.arrow.slice(0, MOST_LINES).to_pylist()
    shown = [
        (k, *("none" if row[name] is None else number(row[name]) for name in fields))
        for k, row in enumerate(first)
    ]
    rows = _more(len(predictions), "rows")
    return _framed(table("Predictions", ("row", *fields), shown), *rows)


def _framed(*parts: Html) -> Html:
    """Parts with their style, which reaches nothing else on the page."""
    style = files("tacit.analyst.report").joinpath("notebook.css").read_text(encoding="utf-8")
    return html(
        '<div class="tacit"><style>$style</style>$parts</div>',
        style=Html(style),
        parts=join(parts),
    )


def _more(count: int, what: str) -> list[Html]:
    """That there are more than are shown, where there are."""
    if count <= MOST_LINES:
        return []
    return [html('<p class="note">… of $count $what.</p>', count=f"{count:,}", what=what)]


def _coefficients(summary: "Summary") -> Html:
    caption = f"Coefficients, {summary.units} units"
    notes = [html('<p class="note">$note</p>', note=note) for note in summary.notes]
    return join([table(caption, summary.heads, summary.cells), *notes])


def _chart(subject: Subject) -> Html:
    """A forest plot of the first comparisons; of a study without features there is none."""
    estimates = subject.contrasts[:MOST_LINES]
    if not estimates:
        return Html("")
    label = f"difference in {subject.response}"
    words = "".join(estimate.label + estimate.words for estimate in estimates)
    name = "tacit-" + hashlib.sha256(words.encode()).hexdigest()[:12]  # unique on the page
    wide, _ = charts.forest(name, f"Differences in {subject.response}", estimates, label)
    more = _more(len(subject.contrasts), "comparisons")
    return join([wide, *more])
