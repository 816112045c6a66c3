"""A study in words, and the form that chooses a table for it."""

from collections.abc import Sequence
from dataclasses import dataclass

from tacit.desk.pages.frame import NOTHING, Frame, capital, facts, note, paragraph, problem
from tacit.desk.setting import Setting, Source
from tacit.page.markup import Html, html, join, section, table
from tacit.study import Study, words


@dataclass(frozen=True)
class Chosen:
    """What the form holds: as it was sent, or as it begins."""

    source: str = ""
    holder: str = ""
    dataset: str = ""
    new_name: str = ""


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
        section("form", "Choose a table", _form(frame, place, setting, sources, chosen)),
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
            "<details><summary>Everything the study says, as `tacit study check` tells it"
            "</summary>$facts<p>Hash: <code>$hash</code></p></details>",
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


def _form(
    frame: Frame, place: str, setting: Setting, sources: Sequence[Source], chosen: Chosen
) -> Html:
    return html(
        '<form method="post" action="$place/rehearsals" class="card" '
        'data-uploads="$room/uploads">'
        "$table$holder$dataset"
        '<p><button type="submit">Rehearse: nothing is paid yet</button></p>'
        '<p class="progress" role="status" aria-live="polite"></p>'
        "<noscript><p>Without scripts a file cannot be handed over: start the desk with "
        "<code>tacit desk --table FILE</code> and pick it here.</p></noscript></form>",
        place=place,
        room=frame.room,
        table=_tables(sources, chosen),
        holder=_holder(chosen),
        dataset=_datasets(setting.ledger.datasets(), chosen),
    )


def _tables(sources: Sequence[Source], chosen: Chosen) -> Html:
    radios = join(
        _radio("source", source.id, source.name, checked=source.id == chosen.source)
        for source in sources
    )
    return html(
        "<fieldset><legend>The table</legend>"
        '<div class="drop"><p><label for="table-file">Drop a table here, or choose it: Excel, CSV, '
        "Parquet, and what else Tacit reads</label></p>"
        '<input type="file" id="table-file"></div>$radios</fieldset>',
        radios=radios,
    )


def _holder(chosen: Chosen) -> Html:
    return html(
        "<fieldset><legend>Who publishes</legend>"
        '<p><label for="holder">Name of your house, as the analyst knows it</label>'
        '<input id="holder" name="holder" value="$value" required maxlength="200" '
        'autocomplete="organization"></p></fieldset>',
        value=chosen.holder,
    )


def _datasets(names: Sequence[str], chosen: Chosen) -> Html:
    known = join(
        _radio("dataset", f"={name}", name, checked=chosen.dataset == f"={name}") for name in names
    )
    other = (
        _radio(
            "dataset",
            "+",
            "another one: its rows are of other persons than those of all the others",
            checked=chosen.dataset == "+",
        )
        if names
        else html('<input type="hidden" name="dataset" value="+">')
    )
    label = "Name of the new data set" if names else "A name for your data set, such as patients"
    return html(
        "<fieldset><legend>Which data set pays</legend>"
        "<p>Tables about the same persons share one, whatever the file is called.</p>"
        '$known$other<p><label for="new-name">$label</label>'
        '<input id="new-name" name="new_name" value="$value" maxlength="200"></p></fieldset>',
        known=known,
        other=other,
        label=label,
        value=chosen.new_name,
    )


def _radio(group: str, value: str, label: str, *, checked: bool) -> Html:
    return html(
        '<p class="choice"><label><input type="radio" name="$group" value="$value"$checked> '
        "<span>$label</span></label></p>",
        group=group,
        value=value,
        label=label,
        checked=Html(" checked") if checked else NOTHING,
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
