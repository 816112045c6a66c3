"""What to expect of a new case: the section of the report about predictions."""

import math
from collections.abc import Sequence

from tacit.analyst.report import charts
from tacit.analyst.report.comparisons import usual
from tacit.analyst.report.families import expected
from tacit.analyst.report.subject import Subject
from tacit.page.markup import Html, figure, html, paragraph, section, table
from tacit.page.numbers import between, exact, listed, number, percent
from tacit.study.columns import Feature
from tacit.study.transforms import image

MOST_ROWS = 14
"""Predictions shown."""


def typical_rows(subject: Subject) -> tuple[list[str], dict[str, list[object]]]:
    """The middle of every range with reference levels, and one change at a time."""
    study = subject.posterior.model
    base: dict[str, object] = {**usual(study)}
    labels = ["the usual case"]
    rows = [base]
    for feature in study.features:
        for change in _changes(feature):
            labels.append(f"{feature.shown}: {_value(change)}")
            rows.append(base | {feature.name: change})
    kept = rows[:MOST_ROWS]
    columns = {feature.name: [row[feature.name] for row in kept] for feature in study.features}
    return labels[:MOST_ROWS], columns


def _changes(feature: Feature) -> Sequence[object]:
    """Other values than the usual one: the quarters of a range, or levels."""
    if feature.levels is not None:
        return feature.all_levels[1:]
    middle, half = feature.mapping
    return (middle - half / 2, middle + half / 2)


def new_cases(subject: Subject) -> Html:
    """Predictions at typical rows."""
    study = subject.posterior.model
    if not study.features:
        return Html("")
    labels, columns = typical_rows(subject)
    predictions = subject.posterior.predict(columns, subject.probability)
    rows = predictions.to_pylist()
    shown = [_expected(label, row) for label, row in zip(labels, rows, strict=True)]
    title = f"Expected {expected(subject)} of typical cases"
    named = listed([f"{f.shown} {_value(columns[f.name][0])}" for f in study.features])
    introduction = paragraph(
        "Take as the usual case one with $usual: the middle of every range, and reference levels. "
        "The other lines change one thing.",
        usual=named,
    )
    chart = charts.predictions("cases", title, shown, expected(subject))
    parts = [
        introduction,
        figure(_caption(subject), chart),
        _variance(subject, rows[0]),
        _table(subject, title, shown),
        *_beyond(subject, shown),
    ]
    return section("cases", "What to expect of a new case", *parts)


def _caption(subject: Subject) -> Html:
    return html(
        "Expected $response: the dot is the estimate, "
        'the <span class="key interval"></span> thick line the $interval of the mean '
        "of many such cases, "
        'the <span class="key new"></span> thin line that of a single new case.',
        response=expected(subject),
        interval=subject.interval,
    )


def _beyond(subject: Subject, shown: Sequence[charts.Expected]) -> list[Html]:
    """That some intervals reach beyond the response's range, where they do."""
    response = subject.posterior.asked.response
    low, high = image(response.function, response.range)
    if not any(case.of_new[0] < low or case.of_new[1] > high for case in shown):
        return []
    said = exact if response.function is None else number
    note = paragraph(
        "Some intervals reach beyond the range of $response, $low to $high: "
        "a line with bell-shaped noise knows no limits.",
        low=said(low),
        high=said(high),
        response=subject.response,
    )
    return [note]


def _value(value: object) -> str:
    return f"{value:,.4g}" if isinstance(value, float) else str(value)


def _expected(label: str, row: dict[str, float | None]) -> charts.Expected:
    values = {name: math.nan if value is None else value for name, value in row.items()}
    spread = values["high"] - values["low"]
    words = number(values["mean"], spread)
    if math.isfinite(spread):
        words += f" ({between(values['low'], values['high'])})"
    return charts.Expected(
        label=label,
        words=words,
        mean=values["mean"],
        of_mean=(values["mean_low"], values["mean_high"]),
        of_new=(values["low"], values["high"]),
    )


def _variance(subject: Subject, usual_case: dict[str, float | None]) -> Html:
    """What the uncertainty of a new usual case is made of."""
    names = ("residual", "sampling", "privacy")
    variances = {name: usual_case[f"variance_{name}"] for name in names}
    known = {name: value for name, value in variances.items() if value is not None}
    if len(known) < len(names):
        return Html("")
    total = sum(known.values())
    return paragraph(
        "Of what is uncertain about the $response of a single usual case, "
        "$residual is how cases differ from each other, "
        "$sampling limited data, and $privacy privacy.",
        response=subject.posterior.asked.response.shown,
        **{name: percent(value / total) for name, value in known.items()},
    )


def _table(subject: Subject, title: str, shown: Sequence[charts.Expected]) -> Html:
    rows = [
        (
            case.label,
            number(case.mean, case.of_mean[1] - case.of_mean[0]),
            _interval(case.of_mean),
            _interval(case.of_new),
        )
        for case in shown
    ]
    mean_head = f"{subject.interval} of the mean"
    return table(title, ("case", "estimate", mean_head, f"{subject.interval} of a new case"), rows)


def _interval(ends: tuple[float, float]) -> str:
    return between(*ends) if math.isfinite(ends[1] - ends[0]) else "none"
