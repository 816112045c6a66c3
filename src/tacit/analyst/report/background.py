"""What the findings rest on: the study, the holders, the guarantee and the computation."""

import shlex
from importlib.metadata import version

from tacit.analyst.posterior.density import densities
from tacit.analyst.posterior.estimand import left_out
from tacit.analyst.report import charts
from tacit.analyst.report.subject import Subject
from tacit.analyst.report.words import applied, terms_in_words
from tacit.page import markup
from tacit.page.markup import Html, figure, html, paragraph, section, table
from tacit.page.numbers import exact, listed, moment, number, power
from tacit.study import Study
from tacit.study import words as explanation
from tacit.study.columns import Feature
from tacit.study.toml import study_toml
from tacit.study.visits import has_places

PERSONS = "all rows of a person count together as one, and may depend on each other in any way."
MOST_LISTED = 20
"""Releases that are listed at once; more are folded away."""
HASH_LETTERS = 19
"""Letters of a hash that are shown where it only tells documents apart."""


def asked(subject: Subject) -> Html:
    """The study in words."""
    study = subject.posterior.model
    response = study.response
    low, high = response.range
    being = "a number" if response.function is None else f"{response.name} being a number"
    features = "nothing: its mean alone is asked for"
    if study.features:
        features = listed([feature.name for feature in study.features])
    return section(
        "asked",
        "What was asked",
        paragraph(
            "How <b>$response</b>, $being between $low and $high, goes with $features. "
            "All parties agreed on the study “$name” before anybody looked at data; "
            "these ranges and levels are part of the agreement.",
            response=applied(response.function, response.name),
            being=being,
            low=exact(low),
            high=exact(high),
            features=features,
            name=study.name,
        ),
        markup.listing(_feature(feature) for feature in study.features),
        _terms(study),
        _left_out(subject),
        paragraph("In every holder's table, $missing.", missing=explanation.missing(study)),
        paragraph("Of persons: $person.", person=explanation.person(study)),
    )


def _left_out(subject: Subject) -> Html:
    """What the study holds and this question does not."""
    names = left_out(subject.posterior)
    if not names:
        return Html("")
    said = "The study also holds $names, which this question leaves out."
    return paragraph(said, names=listed(names))


def _terms(study: Study) -> Html:
    """What the features enter as, where they do not each enter by themselves."""
    if not study.terms:
        return Html("")
    said = "They enter as a sum of these, each with a coefficient of its own, or several:"
    entered = markup.listing(html("$words", words=words) for words in terms_in_words(study))
    return markup.join([paragraph(said), entered])


def _feature(feature: Feature) -> Html:
    if feature.range is not None:
        low, high = map(exact, feature.range)
        typical = ""
        if feature.typical is not None:
            bottom, top = map(exact, feature.typical)
            typical = f", typically between {bottom} and {top}"
        return html(
            "<b>$name</b>: a number between $low and $high$typical",
            name=feature.name,
            low=low,
            high=high,
            typical=typical,
        )
    first, *others = feature.all_levels
    return html(
        "<b>$name</b>: $first (the reference), or $others",
        name=feature.name,
        first=first,
        others=listed(others, "or"),
    )


def contributed(subject: Subject) -> Html:
    """Who contributed what."""
    contributions = subject.posterior.contributions
    if not contributions:
        return section("holders", "Who contributed", paragraph("This posterior does not say."))
    about = "about " if subject.posterior.study.count == "noisy" else ""
    rows = [
        (
            c.holder + (" (simulated)" if c.simulated else ""),
            "not published" if c.n is None else f"{about}{c.n:,.0f}",
            f"{c.epsilon:g}",
            power(c.delta),
            moment(c.created),
            c.release[:HASH_LETTERS] + "…" if c.release else "not known",
        )
        for c in contributions
    ]
    one = "One holder" if len(contributions) == 1 else f"{len(contributions)} holders each"
    visits = subject.posterior.study.visit_count
    each_time = visits > 1 and len(subject.posterior.study.planned_rows) > 1
    times = f" at each of {visits} visits" if each_time else ", once"
    counted = explanation.counted(subject.posterior.study)
    heads = ("holder", counted, "ε", "δ", "published", "release")
    releases = table("Releases behind this report", heads, rows)
    return section(
        "holders",
        "Who contributed",
        paragraph(
            "$one published a small file of noisy sums$times. No row left any house.",
            one=one,
            times=times,
        ),
        releases
        if len(rows) <= MOST_LISTED
        else markup.details(f"All {len(rows)} releases", releases),
    )


def promised(subject: Subject) -> Html:
    """The guarantee in words and numbers."""
    study = subject.posterior.study
    contributions = subject.posterior.contributions
    budgets = {(c.epsilon, c.delta) for c in contributions} or {(study.epsilon, study.delta)}
    mu = max(study.mechanism(*budget).mu for budget in budgets)
    guess = 100 * explanation.best_guess(mu)
    rows = [
        ("guessing blindly", "50 in 100", 0.5),
        ("with a release, at most", f"{guess:.1f} in 100", guess / 100),
    ]
    caption = html(
        "How often an attacker who knows all $counted but one guesses right "
        "which of two candidates the last one is.",
        counted=explanation.counted(study),
    )
    parts = [
        paragraph(
            "Each release is differentially private with ε = $epsilon and δ = $delta: "
            "$neighbours would hardly change what is published.",
            epsilon=listed(sorted({f"{epsilon:g}" for epsilon, _ in budgets})),
            delta=listed(sorted({power(delta) for _, delta in budgets})),
            neighbours=explanation.neighbours(study),
        ),
        paragraph(
            "What an attacker can learn: $words", words=" ".join(explanation.attack(mu, study))
        ),
        figure(caption, charts.ratios("guess", "What an attacker gains", rows)),
    ]
    if study.stage_one is not None:
        first = "The typical intervals came from a first stage, "
        parts.append(paragraph(first + "whose budget each holder paid beside this."))
    if study.visit_count > 1:
        parts.append(paragraph("$visits", visits=_visits(study)))
    if any(c.simulated for c in contributions):
        trial = "Simulated releases, whose seed is known, protect nobody: this is a trial."
        parts.append(html('<p class="warning" role="note">$trial</p>', trial=trial))
    return section("promised", "What was promised", *parts)


def _visits(study: Study) -> str:
    """What several visits asked, and that they cost one budget."""
    corrections = study.visit_count - 1 - has_places(study)
    asked = ["where values lie"] if has_places(study) else []
    asked += ["a first answer", "one correction of it"]
    if corrections > 1:
        asked[-1] = f"{corrections} corrections of it"
    return (
        f"The same rows were visited {study.visit_count} times within this one budget, for "
        f"{listed(asked)}. Each question was made of answers that were published before it, and "
        "tells nothing more of anybody."
    )


def trust(subject: Subject) -> Html:
    """Diagnostics, the verdict, and what is assumed."""
    verdict = html(
        '<p class="$style" role="note">$verdict $caveat</p>',
        style="verdict" if subject.sound else "warning",
        verdict=subject.summary.verdict.value,
        caveat=subject.summary.caveat,
    )
    parts = [verdict]
    if subject.has_chains:
        parts.append(_mixing(subject))
    parts += [
        _panels(subject),
        paragraph("$sentence", sentence=subject.summary.estimand),
        paragraph("The numbers hold as far as these do:"),
        markup.listing(_assumptions(subject)),
    ]
    return section("trust", "Can the numbers be trusted", *parts)


def _mixing(subject: Subject) -> Html:
    rows = [
        (
            markup.breakable(row.name),
            f"{row.ess_bulk:,.0f}",
            f"{row.ess_tail:,.0f}",
            f"{row.rhat:.3f}",
        )
        for row in subject.summary.rows
    ]
    return table(
        "Mixing of the chains (the verdict looks at the residual variance too)",
        ("coefficient", "effective draws, middle", "effective draws, tails", "R-hat"),
        rows,
    )


def _assumptions(subject: Subject) -> list[Html]:
    study = subject.posterior.model
    shape = "changes along a straight line with each number, and by a fixed amount with each level"
    if study.terms:
        shape = "is a sum of the terms that were asked for, each times a fixed number"
    response = "the response" if study.response.function is None else subject.response
    scatter = html(
        "cases scatter around it alike everywhere (residual standard deviation $sd);",
        sd=number(subject.summary.residual_sd),
    )
    if subject.posterior.family is not None:
        response = f"the {subject.response}"
        scatter = html(
            "features are spread within their ranges as their means, variances and correlations "
            "say: levels as 0 and 1, numbers nearly normal, skewed where they lie near one end;"
        )
    return [
        html("$response $shape;", response=response, shape=shape),
        scatter,
        html("rows lie within the agreed ranges; values outside were taken to be at the end."),
        *([] if subject.posterior.study.person is None else [html(PERSONS)]),
    ]


def _panels(subject: Subject) -> Html:
    posterior = subject.posterior
    curves = densities(posterior)
    if not curves:
        return Html("")
    chains = posterior.draws() if subject.has_chains else None
    shown = []
    for k, (row, curve) in enumerate(zip(subject.summary.rows, curves, strict=True)):
        estimate = charts.Estimate(
            label=row.name,
            words=number(row.mean, row.high - row.low),
            mean=row.mean,
            low=row.low,
            high=row.high,
            curve=curve,
        )
        own = None if chains is None else chains[..., k]
        shown.append(charts.Panel(name=row.name, estimate=estimate, chains=own))
    sampled = "With it the chains that sampled it: they should look like one band."
    caption = html(
        "Every coefficient by itself, in its own unit: where it probably lies, "
        "and its $interval.$sampled",
        interval=subject.interval,
        sampled="" if chains is None else f" {sampled}",
    )
    return figure(caption, charts.panels("panels", "Posterior density of every coefficient", shown))


def again(subject: Subject) -> Html:
    """How to make it again."""
    posterior = subject.posterior
    named = [shlex.quote(f"{c.holder}.json") for c in posterior.contributions]
    files = " ".join(named) if 0 < len(named) <= MOST_LISTED else "releases/"
    simulated = " --allow-simulated" if any(c.simulated for c in posterior.contributions) else ""
    commands = [
        f"tacit fit {files}{simulated} \\",
        f"    {posterior.options} \\",
        "    --out posterior.parquet",
        "tacit report posterior.parquet \\",
        f"    --interval {subject.probability:g} --out report.html",
    ]
    code = '<pre tabindex="0"><code>$text</code></pre>'
    hashes = _hashes(subject)
    if len(named) > MOST_LISTED:
        hashes = markup.details("The releases, by hash", hashes)
    return section(
        "again",
        "How to do it again",
        paragraph("From the same releases, the same commands give the same numbers:"),
        html(code, text="\n".join(commands)),
        table(
            "What went in",
            ("document", "identity"),
            [
                ("study", posterior.study.hash),
                ("fitted by", f"{posterior.software or 'not known'}, method {posterior.method}"),
                ("this report by", f"tacit {version('tacit-dp')}"),
            ],
        ),
        hashes,
        markup.details("The study, in full", html(code, text=study_toml(posterior.study))),
    )


def _hashes(subject: Subject) -> Html:
    rows = [(c.holder, c.release or "not known") for c in subject.posterior.contributions]
    heads = ("holder", "SHA-256 of the release without its signature")
    return table("Releases, by hash", heads, rows)
