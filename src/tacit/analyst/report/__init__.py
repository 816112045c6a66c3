"""The report: one self-contained page for a reader who is no statistician."""

from importlib.resources import files
from pathlib import Path

from tacit.analyst.posterior.diagnostics import Verdict
from tacit.analyst.posterior.posterior import Posterior
from tacit.analyst.report.background import again, asked, contributed, promised, trust
from tacit.analyst.report.findings import (
    Subject,
    findings,
    in_short,
    new_cases,
    outlook,
    privacy_part,
)
from tacit.analyst.report.markup import Html, html, join
from tacit.analyst.report.words import applied, listed
from tacit.files import write_whole

CONTENTS = {
    "found": "What was found",
    "privacy": "How much of the uncertainty is privacy",
    "cases": "What to expect of a new case",
    "asked": "What was asked",
    "holders": "Who contributed",
    "promised": "What was promised",
    "outlook": "What more would bring",
    "trust": "Can the numbers be trusted",
    "again": "How to do it again",
}
MOST_NAMES = 4
"""Features that a title names."""


def report(posterior: Posterior, probability: float = 0.9) -> str:
    """The page as text."""
    subject = Subject(posterior, probability)
    makers = (
        findings,
        privacy_part,
        new_cases,
        asked,
        contributed,
        promised,
        outlook,
        trust,
        again,
    )
    sections = dict(zip(CONTENTS, (make(subject) for make in makers), strict=True))
    here = {name: text for name, text in sections.items() if text}
    page = files("tacit.analyst.report").joinpath("page.html").read_text(encoding="utf-8")
    style = files("tacit.analyst.report").joinpath("style.css").read_text(encoding="utf-8")
    return html(
        page,
        style=Html(style),
        title=_title(posterior),
        study=posterior.study.name,
        standfirst=_standfirst(posterior),
        facts=_facts(subject),
        short=in_short(subject),
        contents=join(
            html('<li><a href="#$name">$title</a></li>', name=name, title=CONTENTS[name])
            for name in here
        ),
        sections=join(here.values(), "\n\n"),
    )


def write_report(posterior: Posterior, path: Path, probability: float = 0.9) -> None:
    """Write the page; the file appears whole or not at all."""
    write_whole(path, report(posterior, probability))


def _title(posterior: Posterior) -> str:
    study = posterior.study
    names = [feature.name for feature in study.features]
    response = applied(study.response.function, study.response.name)
    return (
        f"How {response} goes with {listed(names)}"
        if 0 < len(names) <= MOST_NAMES
        else f"What goes with {response}"
    )


def _standfirst(posterior: Posterior) -> str:
    holders = len(posterior.contributions)
    who = "one data holder" if holders == 1 else f"{holders} data holders"
    counts = [c.n for c in posterior.contributions]
    rows = (
        f" over {sum(n for n in counts if n is not None):,.0f} rows"
        if counts and None not in counts
        else ""
    )
    return f"One regression{rows} of {who or 'several data holders'}, none of whom showed a row to anyone."


def _facts(subject: Subject) -> Html:
    contributions = subject.posterior.contributions
    counts = [c.n for c in contributions if c.n is not None]
    facts = {
        "data holders": f"{len(contributions)}",
        "rows": f"{sum(counts):,.0f}"
        if counts and len(counts) == len(contributions)
        else "not published",
        "privacy budget ε": listed(
            sorted(
                {f"{c.epsilon:g}" for c in contributions}
                or {f"{subject.posterior.study.epsilon:g}"}
            )
        ),
        "the numbers are": _state(subject),
    }
    return join(
        html("<div><dt>$name</dt><dd>$value</dd></div>", name=name, value=value)
        for name, value in facts.items()
    )


def _state(subject: Subject) -> str:
    """The verdict in a word or two."""
    words = {
        Verdict.POINT: "a point only",
        Verdict.TOO_SHORT: "not yet sound",
        Verdict.STUCK: "not usable",
    }
    return words.get(
        subject.summary.verdict, "to be read with care" if subject.summary.caveat else "sound"
    )
