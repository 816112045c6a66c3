"""What the findings rest on: the sections of the report about the study, the holders, the guarantee and the computation."""

import shlex
from importlib.metadata import version

from tacit.analyst.posterior.density import densities
from tacit.analyst.posterior.laws import Draws
from tacit.analyst.report import charts
from tacit.analyst.report.findings import Subject
from tacit.analyst.report.markup import (
    Html,
    breakable,
    details,
    figure,
    html,
    join,
    listing,
    paragraph,
    section,
    table,
)
from tacit.analyst.report.words import applied, exact, listed, moment, number, power, terms_in_words
from tacit.study import Study
from tacit.study import words as explanation
from tacit.study.columns import Feature
from tacit.study.toml import study_toml

MOST_LISTED = 20
"""Releases that are listed at once; more are folded away."""
HASH_LETTERS = 19
"""Letters of a hash that are shown where it only tells documents apart."""


def asked(subject: Subject) -> Html:
    """The study in words."""
    study = subject.posterior.study
    low, high = study.response.range
    return section(
        "asked",
        "What was asked",
        paragraph(
            "How <b>$response</b>, $being between $low and $high, goes with $features. All parties agreed on the study “$name” before "
            "anybody looked at data; these ranges and levels are part of the agreement.",
            response=applied(study.response.function, study.response.name),
            being="a number"
            if study.response.function is None
            else f"{study.response.name} being a number",
            low=exact(low),
            high=exact(high),
            features=listed([f.name for f in study.features])
            if study.features
            else "nothing: its mean alone is asked for",
            name=study.name,
        ),
        listing(_feature(feature) for feature in study.features),
        _terms(study),
        paragraph("In every holder's table, $missing.", missing=explanation.missing(study)),
    )


def _terms(study: Study) -> Html:
    """What the features enter as, where they do not each enter by themselves."""
    if not study.terms:
        return Html("")
    entered = listing(html("$words", words=words) for words in terms_in_words(study))
    return join(
        [
            paragraph(
                "They enter as a sum of these, each with a coefficient of its own, or several:"
            ),
            entered,
        ]
    )


def _feature(feature: Feature) -> Html:
    if feature.range is not None:
        typical = (
            ""
            if feature.typical is None
            else f", typically between {exact(feature.typical[0])} and {exact(feature.typical[1])}"
        )
        return html(
            "<b>$name</b>: a number between $low and $high$typical",
            name=feature.name,
            low=exact(feature.range[0]),
            high=exact(feature.range[1]),
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
    releases = table(
        "Releases behind this report", ("holder", "rows", "ε", "δ", "published", "release"), rows
    )
    return section(
        "holders",
        "Who contributed",
        paragraph(
            "$one published once, as a small file of noisy sums. No row left any house.", one=one
        ),
        releases if len(rows) <= MOST_LISTED else details(f"All {len(rows)} releases", releases),
    )


def promised(subject: Subject) -> Html:
    """The guarantee in words and numbers."""
    study = subject.posterior.study
    budgets = {(c.epsilon, c.delta) for c in subject.posterior.contributions} or {
        (study.epsilon, study.delta)
    }
    mu = max(study.mechanism(*budget).mu for budget in budgets)
    guess = 100 * explanation.best_guess(mu)
    rows = [
        ("guessing blindly", "50 in 100", 0.5),
        ("with a release, at most", f"{guess:.1f} in 100", guess / 100),
    ]
    caption = html(
        "How often an attacker who knows all rows but one guesses right which of two candidates the last one is."
    )
    parts = [
        paragraph(
            "Each release is differentially private with ε = $epsilon and δ = $delta: $neighbours would hardly change what is published.",
            epsilon=listed(sorted({f"{epsilon:g}" for epsilon, _ in budgets})),
            delta=listed(sorted({power(delta) for _, delta in budgets})),
            neighbours=explanation.neighbours(study),
        ),
        paragraph("What an attacker can learn: $words", words=" ".join(explanation.attack(mu))),
        figure(caption, charts.ratios("guess", "What an attacker gains", rows)),
    ]
    if study.stage_one is not None:
        parts.append(
            paragraph(
                "The typical intervals came from a first stage, whose budget each holder paid beside this."
            )
        )
    if any(c.simulated for c in subject.posterior.contributions):
        parts.append(
            html(
                '<p class="warning" role="note">Simulated releases, whose seed is known, protect nobody: this is a trial.</p>'
            )
        )
    return section("promised", "What was promised", *parts)


def trust(subject: Subject) -> Html:
    """Diagnostics, the verdict, and what is assumed."""
    summary, posterior = subject.summary, subject.posterior
    study = posterior.study
    plain = "changes along a straight line with each number, and by a fixed amount with each level"
    shape = (
        "is a sum of the terms that were asked for, each times a fixed number"
        if study.terms
        else plain
    )
    parts = [
        html(
            '<p class="$style" role="note">$verdict $caveat</p>',
            style="verdict" if subject.sound else "warning",
            verdict=summary.verdict.value,
            caveat=summary.caveat,
        )
    ]
    if isinstance(posterior.outcome, Draws):
        rows = [
            (breakable(row.name), f"{row.ess_bulk:,.0f}", f"{row.ess_tail:,.0f}", f"{row.rhat:.3f}")
            for row in summary.rows
        ]
        parts.append(
            table(
                "Mixing of the chains (the verdict looks at the residual variance too)",
                ("coefficient", "effective draws, middle", "effective draws, tails", "R-hat"),
                rows,
            )
        )
    parts += [
        _panels(subject),
        paragraph("The numbers hold as far as these do:"),
        listing(
            [
                html(
                    "$response $shape;",
                    response="the response"
                    if study.response.function is None
                    else subject.response,
                    shape=shape,
                ),
                html(
                    "cases scatter around it alike everywhere (residual standard deviation $sd);",
                    sd=number(summary.residual_sd),
                ),
                html(
                    "rows lie within the agreed ranges; values outside were taken to be at the end."
                ),
            ]
        ),
    ]
    return section("trust", "Can the numbers be trusted", *parts)


def _panels(subject: Subject) -> Html:
    posterior, rows = subject.posterior, subject.summary.rows
    curves = densities(posterior)
    if not curves:
        return Html("")
    chains = posterior.draws() if isinstance(posterior.outcome, Draws) else None
    shown = [
        charts.Panel(
            row.name,
            charts.Estimate(
                row.name,
                f"{number(row.mean, row.high - row.low)}",
                row.mean,
                row.low,
                row.high,
                curve,
            ),
            None if chains is None else chains[..., k],
        )
        for k, (row, curve) in enumerate(zip(rows, curves, strict=True))
    ]
    sampled = (
        " With it the chains that sampled it: they should look like one band."
        if chains is not None
        else ""
    )
    caption = html(
        "Every coefficient by itself, in its own unit: where it probably lies, and its $interval.$sampled",
        interval=subject.interval,
        sampled=sampled,
    )
    return figure(caption, charts.panels("panels", "Posterior density of every coefficient", shown))


def again(subject: Subject) -> Html:
    """How to make it again."""
    posterior = subject.posterior
    named = [shlex.quote(f"{c.holder}.json") for c in posterior.contributions]
    files = " ".join(named) if 0 < len(named) <= MOST_LISTED else "releases/"
    simulated = " --allow-simulated" if any(c.simulated for c in posterior.contributions) else ""
    commands = "\n".join(
        [
            f"tacit fit {files}{simulated} \\\n    {posterior.options} \\\n    --out posterior.parquet",
            f"tacit report posterior.parquet \\\n    --interval {subject.probability:g} --out report.html",
        ]
    )
    return section(
        "again",
        "How to do it again",
        paragraph("From the same releases, the same commands give the same numbers:"),
        html('<pre tabindex="0"><code>$commands</code></pre>', commands=commands),
        table(
            "What went in",
            ("document", "identity"),
            [
                ("study", posterior.study.hash),
                ("fitted by", f"{posterior.software or 'not known'}, method {posterior.method}"),
                ("this report by", f"tacit {version('tacit-dp')}"),
            ],
        ),
        details("The releases, by hash", _hashes(subject))
        if len(named) > MOST_LISTED
        else _hashes(subject),
        details(
            "The study, in full",
            html('<pre tabindex="0"><code>$text</code></pre>', text=study_toml(posterior.study)),
        ),
    )


def _hashes(subject: Subject) -> Html:
    rows = [(c.holder, c.release or "not known") for c in subject.posterior.contributions]
    return table(
        "Releases, by hash", ("holder", "SHA-256 of the release without its signature"), rows
    )
