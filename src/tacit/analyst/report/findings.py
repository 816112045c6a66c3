"""What was found: the sections of the report that are about the response."""

import math

import numpy as np

from tacit.analyst.methods.noise_aware.verdict import TOO_LITTLE
from tacit.analyst.posterior.convergence import Verdict
from tacit.analyst.posterior.outlook import scenarios
from tacit.analyst.report import charts
from tacit.analyst.report.comparisons import MOST_CASES, Comparison
from tacit.analyst.report.families import multiplied, ratio_of, ratios
from tacit.analyst.report.subject import Subject
from tacit.analyst.report.words import applied
from tacit.page.markup import (
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
from tacit.page.numbers import between, listed, number, percent
from tacit.study import words as explanation
from tacit.study.transforms import FUNCTIONS

MOST_HEADLINES = 3
"""Differences that the report begins with."""
RATIOS = ("log", "log2", "log10")
"""Functions whose differences are ratios."""


# Coefficients.


def sentences(subject: Subject) -> list[Html]:
    """Each difference that is clear in a sentence, and all others in one; no claim of cause."""
    told = list(zip(subject.compared, subject.contrasts, strict=True))
    clear = [
        _sentence(subject, compared, estimate)
        for compared, estimate in told
        if not _unclear(estimate)
    ]
    names = [compared.name for compared, estimate in told if _unclear(estimate)]
    if not names:
        return clear
    unclear = html(
        "No clear difference in $response goes with $names: "
        "the $interval includes zero, so it may be more or less.",
        response=subject.response,
        names=listed(names),
        interval=subject.interval,
    )
    return [*clear, unclear]


def _unclear(estimate: charts.Estimate) -> bool:
    return estimate.low <= 0 <= estimate.high


def _sentence(subject: Subject, compared: Comparison, estimate: charts.Estimate) -> Html:
    bottom, top = compared.ends
    factor = 1.0
    template = "<b>$name</b> being $top instead of $bottom"
    if compared.has_slope and not compared.is_zero_to_one:
        low, high = compared.feature.typical or compared.feature.range or (0.0, 1.0)
        factor = compared.step / (high - low)
        template = ("each" if compared.where else "Each") + " additional $step of <b>$name</b>"
    unit = compared.feature.unit
    step = "unit" if compared.step == 1 and unit is None else f"{compared.step:,.10g}"
    step += "" if unit is None else f" {unit}"
    what = html(template, name=compared.feature.shown, top=top, bottom=bottom, step=step)
    if ratio_of(subject) is not None:
        return html(
            "$where$what goes with $times.",
            where=_opening(compared),
            what=what,
            times=multiplied(subject, estimate, factor),
        )
    size, bounds = _sizes(subject, estimate, factor)
    return html(
        "$where$what goes with <b>$size $word</b> $response ($bounds).",
        where=_opening(compared),
        what=what,
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
    size = number(factor * abs(estimate.mean), far - near)
    return size, f"{subject.interval} {between(near, far)}"


def headline(subject: Subject, compared: Comparison, estimate: charts.Estimate) -> Html:
    """A comparison as a sentence."""
    bottom, top = compared.ends
    size, bounds = _sizes(subject, estimate)
    at = "at $name $top than at $bottom"
    if compared.feature.range is None:
        at = "where $name is $top than where it is $bottom"
    if ratio_of(subject) is not None:
        return html(
            "$where$name being $top instead of $bottom goes with $times, all else equal.",
            where=_opening(compared),
            name=compared.feature.name,
            top=top,
            bottom=bottom,
            times=multiplied(subject, estimate),
        )
    return html(
        f"$where<b>$response</b> is on average <b>$size $word</b> {at}, all else equal ($bounds).",
        where=_opening(compared),
        response=subject.response,
        size=size,
        word="higher" if estimate.mean > 0 else "lower",
        name=compared.feature.shown,
        top=top,
        bottom=bottom,
        bounds=bounds,
    )


def in_short(subject: Subject) -> Html:
    """The clearest findings, then what they rest on."""
    headlines = [headline(subject, *clear) for clear in _clearest(subject)]
    if not headlines and subject.summary.verdict is not Verdict.POINT:
        nothing = "No feature goes clearly with <b>$response</b>: every interval includes zero."
        if TOO_LITTLE in subject.summary.caveat:
            nothing = "The study is too small to tell what goes with <b>$response</b>."
        headlines = [html(nothing, response=subject.response)]
    verdict = "" if subject.sound else subject.summary.verdict.value
    warning = " ".join(filter(None, [verdict, subject.summary.caveat]))
    parts = [*_scale(subject), listing(headlines, style="lead")]
    if warning:
        parts.append(html('<p class="warning" role="note">$warning</p>', warning=warning))
    return join(parts)


def _clearest(subject: Subject) -> list[tuple[Comparison, charts.Estimate]]:
    """The largest clear differences; of a feature that depends on others, the largest alone."""
    pairs = list(zip(subject.compared, subject.contrasts, strict=True))
    clear = [
        (compared, estimate)
        for compared, estimate in pairs
        if math.isfinite(estimate.high - estimate.low) and not _unclear(estimate)
    ]
    clear.sort(key=lambda pair: -abs(pair[1].mean))
    chosen: dict[str, tuple[Comparison, charts.Estimate]] = {}
    for compared, estimate in clear:
        name = compared.feature.name if compared.where else compared.label
        chosen.setdefault(name, (compared, estimate))
    return list(chosen.values())[:MOST_HEADLINES]


def _scale(subject: Subject) -> list[Html]:
    """That numbers are of a function of the response, where they are, and how to read them."""
    response = subject.posterior.model.response
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
    template = (
        "All estimates, intervals and predictions are of <b>$response</b>, $words, "
        "and not of $name itself.$factor"
    )
    return [paragraph(template, **values, factor=factor)]


def findings(subject: Subject) -> Html:
    """The comparisons in a chart and in sentences, and the coefficients in a table."""
    if not subject.compared:
        none = "The study has no features: it asks for the mean of $response."
        return section("found", "What was found", paragraph(none, response=subject.response))
    caption = html(
        "The difference in $response that goes with each feature, other features being equal: "
        "the top of its range against the bottom, or a level against the reference.$terms "
        "Curves show where the value probably lies, lines are $interval<wbr>s; "
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
            "These are associations. "
            "They do not say that changing a feature would change $response.",
            response=subject.response,
        ),
        *ratios(subject),
        _coefficients(subject),
    )


def _how_compared(subject: Subject) -> str:
    """How features are compared that stand in products or go along curves."""
    said = ""
    if any(c.where for c in subject.compared):
        said += (
            " Where that depends on other features, it is shown for some cases of them, "
            f"{MOST_CASES} at most."
        )
    if any(c.where and not c.held for c in subject.compared):
        said += " The usual case is the middle of every range with reference levels."
    if not all(c.is_straight for c in subject.compared):
        said += (
            " Along a curve the middle of the range is compared with the bottom, "
            "and the top with the middle."
        )
    return said


def _coefficients(subject: Subject) -> Html:
    share = subject.posterior.privacy_share()
    rows = [
        (
            breakable(row.name),
            number(row.mean, row.high - row.low),
            number(row.sd, row.sd),
            between(row.low, row.high) if math.isfinite(row.high - row.low) else "none",
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
    unit = "column, power or product" if subject.posterior.model.terms else "feature"
    return table(f"Coefficients, in {subject.response} per unit of the {unit}", heads, rows)


# Privacy's part.


def privacy_part(subject: Subject) -> Html:
    """How much of each interval is privacy."""
    share = subject.posterior.privacy_share(subject.units)
    title = "How much of the uncertainty is privacy"
    if not len(share) or not np.isfinite(share).all():
        untold = "This posterior does not hold what is needed to tell privacy from sampling."
        return section("privacy", title, paragraph(untold))
    narrower = 1 - np.sqrt(1 - share)
    least = percent(float(narrower.min()))
    most = percent(float(narrower.max()))
    said = least if least == most else f"{least} to {most}"
    rows = [
        (name, ((1 - float(s), "sampling", "limited data"), (float(s), "privacy", "privacy")))
        for name, s in zip(subject.units.names, share, strict=True)
    ]
    caption = html(
        "What the variance of each difference is made of: "
        '<span class="key sampling"></span> limited data$differ, which exact statistics '
        'of the same rows would leave too, and <span class="key privacy"></span> '
        "the noise that protects persons.",
        differ=" and differences between holders" if subject.differ else "",
    )
    return section(
        "privacy",
        title,
        paragraph(
            "Two things blur the picture: the holders have a limited number of $counted, "
            "and each added noise to protect them. "
            "Without that noise the intervals above would be $said narrower.",
            said=said,
            counted=explanation.counted(subject.posterior.study),
        ),
        figure(caption, charts.shares("shares", "Shares of limited data and of privacy", rows)),
    )


# What more would bring.


def outlook(subject: Subject) -> Html:
    """What more budget or more rows would bring."""
    changes = scenarios(subject.posterior, subject.units) if subject.compared else []
    if not changes:
        return Html("")
    medians = [float(np.median(scenario.ratios)) for scenario in changes]
    bars = [
        (scenario.change, f"{number(median * 100, 10)} % as wide", median)
        for scenario, median in zip(changes, medians, strict=True)
    ]
    caption = html(
        "Median width of the differences' intervals, over what it is now. "
        "A forecast, for rows like those seen."
    )
    rows = [
        (name, *(percent(float(scenario.ratios[k])) for scenario in changes))
        for k, name in enumerate(subject.units.names)
    ]
    return section(
        "outlook",
        "What more would bring",
        paragraph(
            "Intervals become narrower with more rows or holders, or with a larger privacy budget "
            "ε, which protects less. ${differ}"
            "Another release of the same rows adds to what was spent on them.",
            differ="Where holders differ, only more holders help much. " if subject.differ else "",
        ),
        figure(caption, charts.ratios("outlook", "Width of intervals if something changed", bars)),
        table(
            "Width of each interval, over what it is now",
            ("difference", *(scenario.change for scenario in changes)),
            rows,
        ),
    )
