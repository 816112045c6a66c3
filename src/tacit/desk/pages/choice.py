"""The form of a study: which table, how it is written, who publishes, and which data set pays."""

from collections.abc import Mapping, Sequence

from tacit.desk.chosen import OTHER, Chosen
from tacit.desk.pages.frame import NOTHING, Frame, hidden
from tacit.desk.setting import Setting, Source
from tacit.page.markup import Html, html, join


def choice(
    frame: Frame, place: str, setting: Setting, sources: Sequence[Source], chosen: Chosen
) -> Html:
    """The form, filled in as far as was said."""
    return html(
        '<form method="post" action="$place/rehearsals" class="card" '
        'data-uploads="$room/uploads">'
        "$table$written$holder$dataset"
        '<p><button type="submit">Rehearse: nothing is paid yet</button></p>'
        '<p class="progress" role="status" aria-live="polite"></p>'
        "<noscript><p>Without scripts a file cannot be handed over: start the desk with "
        "<code>tacit desk --table FILE</code> and pick it here.</p></noscript></form>",
        place=place,
        room=frame.room,
        table=_tables(sources, chosen),
        written=_written(chosen.written),
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
            OTHER,
            "another one: its rows are of other persons than those of all the others",
            checked=chosen.dataset == OTHER,
        )
        if names
        else hidden("dataset", OTHER)
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


LINES = {
    "missing": ("Codes for a missing value, one a line", "-999"),
    "columns": ("Columns that your table names otherwise, one a line", "age=Age in years"),
}
FIELDS = {
    "sheet": ("Sheet of a spreadsheet", "the only one with the names"),
    "header": ("Number of the line that holds the names", "the first that does"),
    "separator": ("Sign between cells", "; or tab"),
    "decimal": ("Decimal sign", ", or ."),
    "thousands": ("Sign between groups of three digits", "."),
    "encoding": ("Encoding", "windows-1252"),
}


def _written(said: Mapping[str, str]) -> Html:
    """How the table is written, for where it is not found out."""
    lines = join(
        html(
            '<p><label for="$name">$label, such as <code>$example</code></label>'
            '<textarea id="$name" name="$name" rows="2" spellcheck="false">$value</textarea></p>',
            name=name,
            label=label,
            example=example,
            value=said.get(name, ""),
        )
        for name, (label, example) in LINES.items()
    )
    fields = join(
        html(
            '<p><label for="$name">$label <span class="note">($example)</span></label>'
            '<input id="$name" name="$name" value="$value" maxlength="200"></p>',
            name=name,
            label=label,
            example=example,
            value=said.get(name, ""),
        )
        for name, (label, example) in FIELDS.items()
    )
    return html(
        "<details$open><summary>How the table is written, if it is read wrongly</summary>"
        "<p>What is left empty is found out, and shown in the rehearsal.</p>$lines"
        '<div class="fields">$fields</div></details>',
        open=Html(" open") if said else NOTHING,
        lines=lines,
        fields=fields,
    )
