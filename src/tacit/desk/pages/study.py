"""A study in words, and the form that chooses a table for it."""

from collections.abc import Sequence

from tacit.desk.chosen import Chosen
from tacit.desk.pages.choice import choice
from tacit.desk.pages.frame import NOTHING, Frame, capital, facts, note, paragraph, problem
from tacit.desk.setting import Setting, Source
from tacit.page.markup import Html, html, join, section, table
from tacit.study import Study, words


def study_page(
    frame: Frame,
    study: Study,
    setting: Setting,
    sources: Sequence[Source],
    chosen: Chosen,
    *,
    complaint: str = "",
) -> str:
    """What a study asks and promises, and what to do next; `complaint`: why that did not work."""
    place = f"{frame.room}/studies/{study.hash.removeprefix('sha256:')}"
    return frame.page(
        f"Study {study.name}",
        problem(complaint) if complaint else NOTHING,
        section("asks", "What it asks", *_asks(study)),
        section("promises", "What it promises", *_promises(study)),
        section("form", "Choose a table", choice(frame, place, setting, sources, chosen)),
        section("dossier", "For the ethics board", *_dossier(place)),
        here="",
        step=1,
    )


def _asks(study: Study) -> tuple[Html, ...]:
    return (
        paragraph(
            "How $response goes with the other columns below: one linear regression.",
            response=html("<b>$name</b>", name=study.response.modelled),
        ),
        table(
            "Columns that your table must have", ("column", "kind", "values"), words.inputs(study)
        ),
    )


def _promises(study: Study) -> tuple[Html, ...]:
    told = {fact.name: capital(fact.sentence) + "." for fact in words.facts(study)}
    return (
        paragraph("$unit.", unit=capital(words.unit(study))),
        attack(study),
        html(
            "<details><summary>Everything the study says, as <code>tacit study check</code> "
            "tells it</summary>$facts<p>Hash: <code>$hash</code></p></details>",
            facts=facts(told),
            hash=study.hash,
        ),
    )


def attack(study: Study) -> Html:
    """What an attacker can learn, in words."""
    return paragraph(
        "<b>What an attacker can learn:</b> $text",
        text=" ".join(words.attack(study.mechanism().mu, study)),
    )


def _dossier(place: str) -> tuple[Html, ...]:
    links = join(
        (
            html('<a href="$place/dossier$ending">$name</a>', place=place, ending=ending, name=name)
            for ending, name in (
                (".html", "as a page to print"),
                (".md", "as Markdown"),
                (".json", "for a registry of deployments"),
            )
        ),
        ", ",
    )
    return (
        paragraph("What is promised, spent and not covered, for who has to approve: $l.", l=links),
        note("It tells nothing of your rows, and may leave the house."),
    )
