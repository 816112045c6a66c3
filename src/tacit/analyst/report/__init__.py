"""The report: one self-contained page for a reader who is no statistician."""

from collections.abc import Callable
from importlib.resources import files
from pathlib import Path

from tacit.analyst.posterior.convergence import Verdict
from tacit.analyst.posterior.posterior import Posterior
from tacit.analyst.report.background import again, asked, contributed, promised, trust
from tacit.analyst.report.cases import new_cases
from tacit.analyst.report.differing import differing
from tacit.analyst.report.findings import findings, in_short, outlook, privacy_part
from tacit.analyst.report.subject import Subject
from tacit.analyst.report.words import applied
from tacit.files import write_whole
from tacit.page.markup import Html, html, join, stylesheet
from tacit.page.numbers import listed

CONTENTS = {
    "found": "What was found",
    "differ": "How holders differ",
    "privacy": "How much of the uncertainty is privacy",
    "cases": "What to expect of a new case",
    "asked": "What was asked",
    "holders": "Who contributed",
    "promised": "What was promised",
    "outlook": "What more would bring",
    "trust": "Can the numbers be trusted",
    "again": "How to do it again",
}
SECTIONS: dict[str, Callable[[Subject], Html]] = {
    "found": findings,
    "differ": differing,
    "privacy": privacy_part,
    "cases": new_cases,
    "asked": asked,
    "holders": contributed,
    "promised": promised,
    "outlook": outlook,
    "trust": trust,
    "again": again,
}
"""What makes each section, in their order on the page."""
MOST_NAMES = 4
"""Features that a title names."""


def report(posterior: Posterior, probability: float = 0.9) -> str:
    """The page as text."""
    subject = Subject(posterior=posterior, probability=probability)
    sections = {name: make(subject) for name, make in SECTIONS.items()}
    here = {name: text for name, text in sections.items() if text}
    return html(
        _file("page.html"),
        style=stylesheet(),
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


def _file(name: str) -> str:
    return files("tacit.analyst.report").joinpath(name).read_text(encoding="utf-8")


def _title(posterior: Posterior) -> str:
    study = posterior.model
    names = [feature.name for feature in study.features]
    response = applied(study.response.function, study.response.name)
    if 0 < len(names) <= MOST_NAMES:
        return f"How {response} goes with {listed(names)}"
    return f"What goes with {response}"


def _standfirst(posterior: Posterior) -> str:
    holders = len(posterior.contributions)
    who = "one data holder, who" if holders == 1 else f"{holders} data holders, none of whom"
    rows = "" if posterior.rows is None else f" over {posterior.rows:,.0f} rows"
    shown = "showed no row to anyone" if holders == 1 else "showed a row to anyone"
    return f"One regression{rows} of {who} {shown}."


def _facts(subject: Subject) -> Html:
    posterior = subject.posterior
    budgets = {f"{c.epsilon:g}" for c in posterior.contributions}
    facts = {
        "data holders": f"{len(posterior.contributions)}",
        "rows": "not published" if posterior.rows is None else f"{posterior.rows:,.0f}",
        "privacy budget ε": listed(sorted(budgets or {f"{posterior.study.epsilon:g}"})),
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
    otherwise = "to be read with care" if subject.summary.caveat else "sound"
    return words.get(subject.summary.verdict, otherwise)
