"""What was found: the sections of the report that are about the response."""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from tacit.analyst.posterior.density import densities
from tacit.analyst.posterior.diagnostics import Verdict
from tacit.analyst.posterior.outlook import scenarios
from tacit.analyst.posterior.posterior import Posterior
from tacit.analyst.posterior.summary import Summary
from tacit.analyst.posterior.units import Units
from tacit.analyst.report import charts
from tacit.analyst.report.comparisons import (
    MOST_CASES,
    Comparison,
    comparison_units,
    comparisons,
    usual,
)
from tacit.analyst.report.markup import (
    Html,
    breakable,
    figure,
    html,
    join,
    listing,
    paragraph,
    section,
    table,
)
from tacit.analyst.report.words import applied, exact, listed, number, percent
from tacit.study.transforms import FUNCTIONS, image

MOST_ROWS = 14
"""Predictions shown."""
RATIOS = ("log", "log2", "log10")
"""Functions whose differences are ratios."""


@dataclass(frozen=True)
class Subject:
    """The posterior a report is about, and what all sections read of it."""

    posterior: Posterior
    probability: float

    @cached_property
    def summary(self) -> Summary:
        """The table in the user's units, with its verdict."""
        return self.posterior.summary(self.probability)

    @cached_property
    def differ(self) -> str:
        """The sentence on how holders differ; empty where none clearly does."""
        holders = self.posterior.holders(self.probability, "contrast")
        return "" if holders is None else holders.sentence

    @cached_property
    def compared(self) -> list[Comparison]:
        """What is compared, feature by feature."""
        return comparisons(self.posterior.study)

    @cached_property
    def units(self) -> Units:
        """The comparisons as a map of θ, in the response's units."""
        return comparison_units(self.posterior.study, self.compared)

    @cached_property
    def contrasts(self) -> list[charts.Estimate]:
        """What was found of each comparison, in the response's units."""
        posterior, units = self.posterior, self.units
        mean, bounds = posterior.mean(units), posterior.interval(self.probability, units)
        curves = densities(posterior, units)
        kept = np.sqrt(1 - posterior.privacy_share(units))
        found = []
        for k, (c, m, (low, high)) in enumerate(
            zip(self.compared, mean.tolist(), bounds.tolist(), strict=True)
        ):
            bare = (
                (m + kept[k] * (low - m), m + kept[k] * (high - m))
                if np.isfinite(kept[k])
                else None
            )
            curve = curves[k] if curves else None
            found.append(
                charts.Estimate(
                    c.contrast, _estimate(m, low, high), m, low, high, curve, bare, c.where
                )
            )
        return found

    @property
    def sound(self) -> bool:
        """Whether the computation can be relied on."""
        return self.summary.verdict in {Verdict.CONVERGED, Verdict.COMPUTED}

    @property
    def response(self) -> str:
        """What is modelled: the response, or its function."""
        return self.posterior.study.response.label

    @property
    def interval(self) -> str:
        """What intervals are called."""
        return f"{100 * self.probability:g} % interval"


def _estimate(mean: float, low: float, high: float) -> str:
    signed = ("+" if mean > 0 else "") + number(
        mean, high - low if math.isfinite(high - low) else None
    )
    return f"{signed} ({_between(low, high)})" if math.isfinite(high - low) else signed


def _between(low: float, high: float) -> str:
    return f"{number(low, high - low)} to {number(high, high - low)}"


# Coefficients.


def sentences(subject: Subject) -> list[Html]:
    """Each difference that is clear in a sentence, and all others in one; without a claim of cause."""
    told = list(zip(subject.compared, subject.contrasts, strict=True))
    clear = [
        _sentence(subject, compared, estimate)
        for compared, estimate in told
        if not _unclear(estimate)
    ]
    names = [compared.name for compared, estimate in told if _unclear(estimate)]
    if not names:
        return clear
    template = "No clear difference in $response goes with $names: the $interval includes zero, so it may be more or less."
    return [
        *clear,
        html(template, response=subject.response, names=listed(names), interval=subject.interval),
    ]


def _unclear(estimate: charts.Estimate) -> bool:
    return estimate.low < 0 < estimate.high


def _sentence(subject: Subject, compared: Comparison, estimate: charts.Estimate) -> Html:
    bottom, top = compared.ends
    factor = 1.0
    template = "<b>$name</b> being $top instead of $bottom"
    if compared.has_slope:
        low, high = compared.feature.typical or compared.feature.range or (0.0, 1.0)
        factor = compared.step / (high - low)
        template = ("each" if compared.where else "Each") + " additional $step of <b>$name</b>"
    step = "unit" if compared.step == 1 else f"{compared.step:,.10g}"
    size, bounds = _sizes(subject, estimate, factor)
    return html(
        "$where$what goes with <b>$size $word</b> $response ($bounds).",
        where=_opening(compared),
        what=html(template, name=compared.feature.name, top=top, bottom=bottom, step=step),
        size=size,
        word="more" if estimate.mean > 0 else "less",
        response=subject.response,
        bounds=bounds,
    )


def _opening(compared: Comparison) -> str:
    """Where a sentence holds, as its beginning."""
    return f"{compared.where[0].upper()}{compared.where[1:]}, " if compared.where else ""


def _sizes(subject: Subject, estimate: charts.Estimate, factor: float = 1.0) -> tuple[str, str]:
    """Size of a clear difference, whose sign the sentence tells, and its interval."""
    near, far = sorted((factor * abs(estimate.low), factor * abs(estimate.high)))
    if not math.isfinite(far - near):
        return number(factor * abs(estimate.mean)), "this method gives no interval"
    return number(
        factor * abs(estimate.mean), far - near
    ), f"{subject.interval} {_between(near, far)}"


def headline(subject: Subject, compared: Comparison, estimate: charts.Estimate) -> Html:
    """A comparison as a sentence."""
    bottom, top = compared.ends
    size, bounds = _sizes(subject, estimate)
    at = (
        "where $name is $top than where it is $bottom"
        if compared.feature.range is None
        else "at $name $top than at $bottom"
    )
    return html(
        f"$where<b>$response</b> is on average <b>$size $word</b> {at}, all else equal ($bounds).",
        where=_opening(compared),
        response=subject.response,
        size=size,
        word="higher" if estimate.mean > 0 else "lower",
        name=compared.feature.name,
        top=top,
        bottom=bottom,
        bounds=bounds,
    )


def in_short(subject: Subject) -> Html:
    """The clearest findings, then what they rest on."""
    clear = [
        k
        for k, e in enumerate(subject.contrasts)
        if math.isfinite(e.high - e.low) and not _unclear(e)
    ]
    clear.sort(key=lambda k: -abs(subject.contrasts[k].mean))
    told: dict[object, int] = {}
    for k in clear:  # of a feature that depends on others, the largest difference alone
        told.setdefault(subject.compared[k].feature.name if subject.compared[k].where else k, k)
    found = [
        headline(subject, subject.compared[k], subject.contrasts[k])
        for k in list(told.values())[:3]
    ]
    if not found and subject.summary.verdict is not Verdict.POINT:
        found = [
            html(
                "No feature goes clearly with <b>$response</b>: every interval includes zero.",
                response=subject.response,
            )
        ]
    warning = " ".join(
        filter(
            None, ["" if subject.sound else subject.summary.verdict.value, subject.summary.caveat]
        )
    )
    parts = [*_scale(subject), listing(found, style="lead")]
    if warning:
        parts.append(html('<p class="warning" role="note">$warning</p>', warning=warning))
    return join(parts)


def _scale(subject: Subject) -> list[Html]:
    """That numbers are of a function of the response, where they are, and how to read them."""
    response = subject.posterior.study.response
    if response.function is None:
        return []
    values = {
        "name": response.name,
        "response": subject.response,
        "words": applied(response.function, response.name),
    }
    factor = ""
    if response.function in RATIOS:
        ratio = FUNCTIONS[response.function].inverse(0.1)
        factor = f" A difference of 0.1 in it is a factor of {ratio:.2f} in {response.name}."
    template = "All estimates, intervals and predictions are of <b>$response</b>, $words, and not of $name itself.$factor"
    return [paragraph(template, **values, factor=factor)]


def findings(subject: Subject) -> Html:
    """The comparisons in a chart and in sentences, and the coefficients in a table."""
    if not subject.compared:
        return section(
            "found",
            "What was found",
            paragraph(
                "The study has no features: it asks for the mean of $response.",
                response=subject.response,
            ),
        )
    caption = html(
        "The difference in $response that goes with each feature, other features being equal: the top of its range against the bottom, "
        "or a level against the reference.$terms Curves show where the value probably lies, lines are $interval<wbr>s; "
        'the <span class="key interval"></span> inner part would be left without privacy noise.',
        terms=_how_compared(subject),
        response=subject.response,
        interval=subject.interval,
    )
    chart = charts.forest(
        "forest",
        f"Differences in {subject.response} by feature",
        subject.contrasts,
        f"difference in {subject.response}",
    )
    return section(
        "found",
        "What was found",
        figure(caption, chart),
        paragraph("In words, always comparing cases that are alike in all other features:"),
        listing(sentences(subject)),
        paragraph(
            "These are associations. They do not say that changing a feature would change $response.",
            response=subject.response,
        ),
        _coefficients(subject),
    )


def _how_compared(subject: Subject) -> str:
    """How features are compared that stand in products or go along curves."""
    said = ""
    if any(c.where for c in subject.compared):
        said += f" Where that depends on other features, it is shown for some cases of them, {MOST_CASES} at most."
    if any(c.where and not c.held for c in subject.compared):
        said += " The usual case is the middle of every range with reference levels."
    if not all(c.is_straight for c in subject.compared):
        said += " Along a curve the middle of the range is compared with the bottom, and the top with the middle."
    return said


def _coefficients(subject: Subject) -> Html:
    share = subject.posterior.privacy_share()
    rows = [
        (
            breakable(row.name),
            number(row.mean, row.high - row.low),
            number(row.sd, row.sd),
            _between(row.low, row.high) if math.isfinite(row.high - row.low) else "none",
            percent(float(share[k])),
        )
        for k, row in enumerate(subject.summary.rows)
    ]
    heads = (
        "coefficient",
        "estimate",
        "standard deviation",
        subject.interval,
        "privacy's share of its variance",
    )
    unit = "column, power or product" if subject.posterior.study.terms else "feature"
    return table(f"Coefficients, in {subject.response} per unit of the {unit}", heads, rows)


# Privacy's part.


def privacy_part(subject: Subject) -> Html:
    """How much of each interval is privacy."""
    share = subject.posterior.privacy_share(subject.units)
    title = "How much of the uncertainty is privacy"
    if not len(share) or not np.isfinite(share).all():
        return section(
            "privacy",
            title,
            paragraph("This posterior does not hold what is needed to tell privacy from sampling."),
        )
    narrower = 1 - np.sqrt(1 - share)
    least, most = percent(float(narrower.min())), percent(float(narrower.max()))
    said = least if least == most else f"{least} to {most}"
    rows = [
        (name, ((1 - float(s), "sampling", "limited data"), (float(s), "privacy", "privacy")))
        for name, s in zip(subject.units.names, share, strict=True)
    ]
    differ = " and differences between holders" if subject.differ else ""
    caption = html(
        'What the variance of each difference is made of: <span class="key sampling"></span> limited data$differ, which exact statistics '
        'of the same rows would leave too, and <span class="key privacy"></span> the noise that protects persons.',
        differ=differ,
    )
    return section(
        "privacy",
        title,
        paragraph(
            "Two things blur the picture: the holders have a limited number of rows, and each added noise to protect them. "
            "Without that noise the intervals above would be $said narrower.",
            said=said,
        ),
        figure(caption, charts.shares("shares", "Shares of limited data and of privacy", rows)),
    )


# New cases.


def typical_rows(subject: Subject) -> tuple[list[str], dict[str, list[object]]]:
    """The middle of every range with reference levels, and one change at a time."""
    study = subject.posterior.study
    base: dict[str, object] = {**usual(study)}
    labels, rows = ["the usual case"], [base]
    for feature in study.features:
        middle, half = feature.mapping
        changes: tuple[object, ...] = (
            (middle - half / 2, middle + half / 2)
            if feature.levels is None
            else feature.all_levels[1:]
        )
        for change in changes:
            words = f"{change:,.4g}" if isinstance(change, float) else str(change)
            labels.append(f"{feature.name}: {words}")
            rows.append(base | {feature.name: change})
    kept = rows[:MOST_ROWS]
    return labels[:MOST_ROWS], {
        feature.name: [row[feature.name] for row in kept] for feature in study.features
    }


def new_cases(subject: Subject) -> Html:
    """Predictions at typical rows."""
    study = subject.posterior.study
    if not study.features:
        return Html("")
    labels, columns = typical_rows(subject)
    found = subject.posterior.predict(columns, subject.probability)
    usual = listed([f"{f.name} {_value(columns[f.name][0])}" for f in study.features])
    shown = [_expected(label, row) for label, row in zip(labels, found.to_pylist(), strict=True)]
    caption = html(
        'Expected $response: the dot is the estimate, the <span class="key interval"></span> thick line the $interval of the mean '
        'of many such cases, the <span class="key new"></span> thin line that of a single new case.',
        response=subject.response,
        interval=subject.interval,
    )
    parts = [
        paragraph(
            "Take as the usual case one with $usual: the middle of every range, and reference levels. The other lines change one thing.",
            usual=usual,
        ),
        figure(
            caption,
            charts.predictions(
                "cases", f"Expected {subject.response} of typical cases", shown, subject.response
            ),
        ),
        _variance(subject, found),
        _cases(subject, labels, found),
    ]
    low, high = image(study.response.function, study.response.range)
    if any(
        row["low"] is not None and (row["low"] < low or row["high"] > high)
        for row in found.to_pylist()
    ):
        said = exact if study.response.function is None else number
        note = "Some intervals reach beyond the range of $response, $low to $high: a line with bell-shaped noise knows no limits."
        parts.append(paragraph(note, low=said(low), high=said(high), response=subject.response))
    return section("cases", "What to expect of a new case", *parts)


def _value(value: object) -> str:
    return f"{value:,.4g}" if isinstance(value, float) else str(value)


def _expected(label: str, row: dict[str, float | None]) -> charts.Expected:
    values = {name: math.nan if value is None else value for name, value in row.items()}
    spread = values["high"] - values["low"]
    words = number(values["mean"], spread) + (
        f" ({_between(values['low'], values['high'])})" if math.isfinite(spread) else ""
    )
    return charts.Expected(
        label,
        words,
        values["mean"],
        (values["mean_low"], values["mean_high"]),
        (values["low"], values["high"]),
    )


def _variance(subject: Subject, found: pa.Table) -> Html:
    """What the uncertainty of a new usual case is made of."""
    parts = [found[f"variance_{name}"][0].as_py() for name in ("residual", "sampling", "privacy")]
    if any(part is None for part in parts):
        return Html("")
    residual, sampling, privacy = (part / sum(parts) for part in parts)
    return paragraph(
        "Of what is uncertain about the $response of a single usual case, $residual is how cases differ from each other, "
        "$sampling limited data, and $privacy privacy.",
        residual=percent(residual),
        sampling=percent(sampling),
        privacy=percent(privacy),
        response=subject.response,
    )


def _cases(subject: Subject, labels: list[str], found: pa.Table) -> Html:
    rows = []
    for label, row in zip(labels, found.to_pylist(), strict=True):
        expected = _expected(label, row)
        bounds = [
            _between(*ends) if math.isfinite(ends[1] - ends[0]) else "none"
            for ends in (expected.of_mean, expected.of_new)
        ]
        rows.append(
            (label, number(expected.mean, expected.of_mean[1] - expected.of_mean[0]), *bounds)
        )
    heads = (
        "case",
        "estimate",
        f"{subject.interval} of the mean",
        f"{subject.interval} of a new case",
    )
    return table(f"Expected {subject.response} of typical cases", heads, rows)


# What more would bring.


def outlook(subject: Subject) -> Html:
    """What more budget or more rows would bring."""
    found = scenarios(subject.posterior, subject.units) if subject.compared else []
    if not found:
        return Html("")
    rows = [
        (
            s.change,
            f"{number(float(np.median(s.ratios)) * 100, 10)} % as wide",
            float(np.median(s.ratios)),
        )
        for s in found
    ]
    caption = html(
        "Median width of the differences' intervals, over what it is now. A forecast, for rows like those seen."
    )
    table_rows = [
        (name, *(percent(float(s.ratios[k])) for s in found))
        for k, name in enumerate(subject.units.names)
    ]
    return section(
        "outlook",
        "What more would bring",
        paragraph(
            "Intervals become narrower with more rows, or with a larger privacy budget ε, which protects less. "
            "Another release of the same rows adds to what was spent on them."
        ),
        figure(caption, charts.ratios("outlook", "Width of intervals if something changed", rows)),
        table(
            "Width of each interval, over what it is now",
            ("difference", *(s.change for s in found)),
            table_rows,
        ),
    )
