"""What was found: the sections of the report that are about the response."""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from tacit.analyst.density import densities
from tacit.analyst.diagnostics import Verdict
from tacit.analyst.forecast import scenarios
from tacit.analyst.pooled import disagreement_of
from tacit.analyst.posterior import Posterior
from tacit.analyst.report import charts
from tacit.analyst.report.markup import Html, breakable, figure, html, join, listing, paragraph, section, table
from tacit.analyst.report.words import Term, exact, listed, number, percent, terms
from tacit.analyst.summary import Summary

MOST_ROWS = 14
"""Predictions shown."""


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
    def terms(self) -> list[Term]:
        """The coefficients but the intercept, in words."""
        return terms(self.posterior.study)

    @cached_property
    def contrasts(self) -> list[charts.Estimate]:
        """What goes with each feature's whole (typical) range, or with a level, in the response's units."""
        posterior = self.posterior
        mean, bounds = posterior.mean("contrast"), posterior.interval(self.probability, "contrast")
        curves = densities(posterior, "contrast")
        kept = np.sqrt(1 - posterior.privacy_share("contrast"))
        found = []
        for k, (term, m, (low, high)) in enumerate(zip(self.terms, mean.tolist(), bounds.tolist(), strict=True)):
            bare = (m + kept[k] * (low - m), m + kept[k] * (high - m)) if np.isfinite(kept[k]) else None
            found.append(charts.Estimate(term.contrast, _estimate(m, low, high), m, low, high, curves[k] if curves else None, bare))
        return found

    @property
    def sound(self) -> bool:
        """Whether the computation can be relied on."""
        return self.summary.verdict in {Verdict.CONVERGED, Verdict.COMPUTED}

    @property
    def response(self) -> str:
        """Name of the response."""
        return self.posterior.study.response.name

    @property
    def interval(self) -> str:
        """What intervals are called."""
        return f"{100 * self.probability:g} % interval"


def _estimate(mean: float, low: float, high: float) -> str:
    signed = ("+" if mean > 0 else "") + number(mean, high - low if math.isfinite(high - low) else None)
    return f"{signed} ({_between(low, high)})" if math.isfinite(high - low) else signed


def _between(low: float, high: float) -> str:
    return f"{number(low, high - low)} to {number(high, high - low)}"


# Coefficients.


def sentences(subject: Subject) -> list[Html]:
    """Each coefficient that is clear in a sentence, and all others in one; without a claim of cause."""
    told = list(zip(subject.terms, subject.contrasts, strict=True))
    clear = [_sentence(subject, term, estimate) for term, estimate in told if not _unclear(estimate)]
    names = [term.label for term, estimate in told if _unclear(estimate)]
    if not names:
        return clear
    template = "No clear difference in $response goes with $names: the $interval includes zero, so it may be more or less."
    return [*clear, html(template, response=subject.response, names=listed(names), interval=subject.interval)]


def _unclear(estimate: charts.Estimate) -> bool:
    return estimate.low < 0 < estimate.high


def _sentence(subject: Subject, term: Term, estimate: charts.Estimate) -> Html:
    if term.level is None:
        low, high = term.feature.typical or term.feature.range or (0.0, 1.0)
        factor = term.step / (high - low)
        step = "unit" if term.step == 1 else f"{term.step:,.10g}"
        where = html("Each additional $step of <b>$name</b>", step=step, name=term.feature.name)
    else:
        factor = 1.0
        values = {"name": term.feature.name, "level": term.level, "reference": term.ends[0]}
        where = html("<b>$name</b> being $level instead of $reference", **values)
    size, bounds = _sizes(subject, estimate, factor)
    word = "more" if estimate.mean > 0 else "less"
    template = "$where goes with <b>$size $word</b> $response ($bounds)."
    return html(template, where=where, size=size, word=word, response=subject.response, bounds=bounds)


def _sizes(subject: Subject, estimate: charts.Estimate, factor: float = 1.0) -> tuple[str, str]:
    """Size of a clear difference, whose sign the sentence tells, and its interval."""
    near, far = sorted((factor * abs(estimate.low), factor * abs(estimate.high)))
    if not math.isfinite(far - near):
        return number(factor * abs(estimate.mean)), "this method gives no interval"
    return number(factor * abs(estimate.mean), far - near), f"{subject.interval} {_between(near, far)}"


def headline(subject: Subject, term: Term, estimate: charts.Estimate) -> Html:
    """A contrast as a sentence."""
    bottom, top = term.ends
    size, bounds = _sizes(subject, estimate)
    at = "at $name $top than at $bottom" if term.level is None else "where $name is $top than where it is $bottom"
    return html(
        f"<b>$response</b> is on average <b>$size $word</b> {at}, all else equal ($bounds).",
        response=subject.response,
        size=size,
        word="higher" if estimate.mean > 0 else "lower",
        name=term.feature.name,
        top=top,
        bottom=bottom,
        bounds=bounds,
    )


def in_short(subject: Subject) -> Html:
    """The clearest findings, then what they rest on."""
    clear = [k for k, e in enumerate(subject.contrasts) if math.isfinite(e.high - e.low) and not _unclear(e)]
    clear.sort(key=lambda k: -abs(subject.contrasts[k].mean))
    found = [headline(subject, subject.terms[k], subject.contrasts[k]) for k in clear[:3]]
    if not found and subject.summary.verdict is not Verdict.POINT:
        found = [html("No feature goes clearly with <b>$response</b>: every interval includes zero.", response=subject.response)]
    warning = " ".join(filter(None, ["" if subject.sound else subject.summary.verdict.value, subject.summary.caveat]))
    parts = [listing(found, style="lead")]
    if warning:
        parts.append(html('<p class="warning" role="note">$warning</p>', warning=warning))
    return join(parts)


def findings(subject: Subject) -> Html:
    """The coefficients: a chart, sentences, and a table."""
    if not subject.terms:
        return section(
            "found", "What was found", paragraph("The study has no features: it asks for the mean of $response.", response=subject.response)
        )
    caption = html(
        "The difference in $response that goes with each feature, other features being equal: the top of its range against the bottom, "
        "or a level against the reference. Curves show where the value probably lies, lines are $interval<wbr>s; "
        'the <span class="key interval"></span> inner part would be left without privacy noise.',
        response=subject.response,
        interval=subject.interval,
    )
    chart = charts.forest("forest", f"Differences in {subject.response} by feature", subject.contrasts, f"difference in {subject.response}")
    return section(
        "found",
        "What was found",
        figure(caption, chart),
        paragraph("In words, always comparing cases that are alike in all other features:"),
        listing(sentences(subject)),
        paragraph("These are associations. They do not say that changing a feature would change $response.", response=subject.response),
        _coefficients(subject),
    )


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
    heads = ("coefficient", "estimate", "standard deviation", subject.interval, "privacy's share of its variance")
    return table(f"Coefficients, in {subject.response} per unit of the feature", heads, rows)


# Privacy's part.


def privacy_part(subject: Subject) -> Html:
    """How much of each interval is privacy."""
    share = subject.posterior.privacy_share("contrast")
    title = "How much of the uncertainty is privacy"
    if not len(share) or not np.isfinite(share).all():
        return section("privacy", title, paragraph("This posterior does not hold what is needed to tell privacy from sampling."))
    narrower = 1 - np.sqrt(1 - share)
    least, most = percent(float(narrower.min())), percent(float(narrower.max()))
    said = least if least == most else f"{least} to {most}"
    rows = [
        (term.contrast, ((1 - float(s), "sampling", "limited data"), (float(s), "privacy", "privacy")))
        for term, s in zip(subject.terms, share, strict=True)
    ]
    differ = " and differences between holders" if disagreement_of(subject.posterior.outcome) > 0 else ""
    caption = html(
        'What the variance of each coefficient is made of: <span class="key sampling"></span> limited data$differ, which exact statistics '
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
    base: dict[str, object] = {f.name: f.mapping[0] if f.levels is None else f.all_levels[0] for f in study.features}
    labels, rows = ["the usual case"], [base]
    for feature in study.features:
        middle, half = feature.mapping
        changes: tuple[object, ...] = (middle - half / 2, middle + half / 2) if feature.levels is None else feature.all_levels[1:]
        for change in changes:
            words = f"{change:,.4g}" if isinstance(change, float) else str(change)
            labels.append(f"{feature.name}: {words}")
            rows.append(base | {feature.name: change})
    kept = rows[:MOST_ROWS]
    return labels[:MOST_ROWS], {feature.name: [row[feature.name] for row in kept] for feature in study.features}


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
        figure(caption, charts.predictions("cases", f"Expected {subject.response} of typical cases", shown, subject.response)),
        _variance(subject, found),
        _cases(subject, labels, found),
    ]
    low, high = study.response.range
    if any(row["low"] is not None and (row["low"] < low or row["high"] > high) for row in found.to_pylist()):
        note = "Some intervals reach beyond the range of $response, $low to $high: a straight line with bell-shaped noise knows no limits."
        parts.append(paragraph(note, low=exact(low), high=exact(high), response=subject.response))
    return section("cases", "What to expect of a new case", *parts)


def _value(value: object) -> str:
    return f"{value:,.4g}" if isinstance(value, float) else str(value)


def _expected(label: str, row: dict[str, float | None]) -> charts.Expected:
    values = {name: math.nan if value is None else value for name, value in row.items()}
    spread = values["high"] - values["low"]
    words = number(values["mean"], spread) + (f" ({_between(values['low'], values['high'])})" if math.isfinite(spread) else "")
    return charts.Expected(label, words, values["mean"], (values["mean_low"], values["mean_high"]), (values["low"], values["high"]))


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
        bounds = [_between(*ends) if math.isfinite(ends[1] - ends[0]) else "none" for ends in (expected.of_mean, expected.of_new)]
        rows.append((label, number(expected.mean, expected.of_mean[1] - expected.of_mean[0]), *bounds))
    heads = ("case", "estimate", f"{subject.interval} of the mean", f"{subject.interval} of a new case")
    return table(f"Expected {subject.response} of typical cases", heads, rows)


# What more would bring.


def outlook(subject: Subject) -> Html:
    """What more budget or more rows would bring."""
    found = scenarios(subject.posterior) if subject.terms else []
    if not found:
        return Html("")
    rows = [(s.change, f"{number(float(np.median(s.ratios)) * 100, 10)} % as wide", float(np.median(s.ratios))) for s in found]
    caption = html("Median width of the coefficients' intervals, over what it is now. A forecast, for rows like those seen.")
    table_rows = [(term.contrast, *(percent(float(s.ratios[k])) for s in found)) for k, term in enumerate(subject.terms)]
    return section(
        "outlook",
        "What more would bring",
        paragraph(
            "Intervals become narrower with more rows, or with a larger privacy budget ε, which protects less. "
            "Another release of the same rows adds to what was spent on them."
        ),
        figure(caption, charts.ratios("outlook", "Width of intervals if something changed", rows)),
        table("Width of each interval, over what it is now", ("coefficient", *(s.change for s in found)), table_rows),
    )
