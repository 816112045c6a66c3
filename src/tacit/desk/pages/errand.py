"""A rehearsal in pictures with its price, and, once it is confirmed, the file."""

import json
from typing import Any

from tacit.desk.errand import Errand
from tacit.desk.pages import pictures
from tacit.desk.pages.account import after
from tacit.desk.pages.frame import (
    NOTHING,
    Frame,
    capital,
    facts,
    figures,
    good,
    hidden,
    note,
    paragraph,
    problem,
)
from tacit.federation.keys import fingerprint
from tacit.holder.account import Account, Charge
from tacit.holder.rehearsal import Column, Cost, Lengths, Rehearsal
from tacit.page.markup import Html, html, join, listing, section
from tacit.page.numbers import exact, moment, power
from tacit.study import Study


def rehearsal_page(
    frame: Frame, errand: Errand, account: Account | None, *, form: str, complaint: str = ""
) -> str:
    """Everything to look at before paying; `form` numbers what the form before it held."""
    rehearsal = errand.rehearsal
    return frame.page(
        f"Rehearsal of {rehearsal.study.name}",
        problem(complaint) if complaint else NOTHING,
        _stops(rehearsal),
        html('<p class="stays">This page tells of single rows. It stays here.</p>'),
        figures(_counts(rehearsal)),
        section("read", "How the table was read", *_readings(frame, errand, form)),
        section("columns", "What the columns hold", _columns(rehearsal)),
        section("remarks", "Remarks", _remarks(rehearsal)),
        section("leaves", "What would leave", _leaves(rehearsal)),
        section("cost", "What it costs", *_cost(errand, account)),
        section("confirm", "Confirm", _confirm(frame, errand)),
        here="",
        step=2,
    )


def _counts(rehearsal: Rehearsal) -> dict[str, str]:
    """What is looked for first."""
    persons = rehearsal.persons
    return {
        "rows": f"{rehearsal.rows:,}",
        "complete": f"{rehearsal.rows - rehearsal.incomplete:,}",
        **({} if persons is None else {"persons": f"{persons.persons:,}"}),
        "to look at first": f"{len(rehearsal.shouts)}",
        "it would cost": f"ε = {rehearsal.cost.epsilon:.4g}",
    }


def _stops(rehearsal: Rehearsal) -> Html:
    if not rehearsal.shouts:
        return NOTHING
    return html(
        '<div class="warning" role="alert"><p><b>Stop and look.</b> This does not look like the '
        "table that the study describes:</p>$items</div>",
        items=listing(html("$text.", text=capital(each)) for each in rehearsal.shouts),
    )


def _readings(frame: Frame, errand: Errand, form: str) -> tuple[Html, ...]:
    told = [
        facts({"file": each.name, "kind": each.kind, **each.facts})
        for each in errand.rehearsal.readings
    ]
    link = html(
        '<a href="$room/studies/$digits?said=$form#form">Choose another table, or say how this one '
        "is written</a>",
        room=frame.room,
        digits=errand.study.hash.removeprefix("sha256:"),
        form=form,
    )
    return (*(told or [facts({"source": errand.source.name})]), paragraph("$link", link=link))


def _columns(rehearsal: Rehearsal) -> Html:
    cards = [_card(column) for column in rehearsal.columns]
    if rehearsal.lengths is not None:
        cards.append(_lengths(rehearsal.lengths))
    return html('<div class="cards">$cards</div>', cards=join(cards))


def _lengths(seen: Lengths) -> Html:
    return html(
        '<figure class="card"><figcaption><b>Length of rows</b></figcaption>$picture'
        "<p>$shrunk rows are longer than $radius and would count as if they had that length, as "
        "the study says.</p></figure>",
        picture=pictures.lengths(seen),
        shrunk=f"{seen.shrunk:,}",
        radius=f"{seen.radius:.3g}",
    )


def _card(column: Column) -> Html:
    picture = pictures.numbers(column) if column.kind == "numeric" else pictures.levels(column)
    return html(
        '<figure class="card"><figcaption><b>$label</b>$unit<br>$expected</figcaption>'
        "$picture<p>$state</p></figure>",
        label=column.label,
        unit=f", {column.unit}" if column.unit else "",
        expected=column.expected,
        picture=picture,
        state=_state(column),
    )


def _state(column: Column) -> str:
    counts = {
        "values": column.present,
        "missing": column.missing,
        "no number": column.unreadable,
        "outside": column.clamped,
        "not listed": column.unknown,
    }
    told = [f"{count:,} {name}" for name, count in counts.items() if count or name == "values"]
    if column.least is not None and column.most is not None:
        told.append(f"from {exact(column.least)} to {exact(column.most)}")
    return ", ".join(told)


def _remarks(rehearsal: Rehearsal) -> Html:
    if not rehearsal.remarks:
        return good("nothing is missing, outside its range or unknown")
    return listing(
        html(
            "$mark$text.",
            mark=Html("<b>Stop:</b> ") if each.loud else NOTHING,
            text=capital(each.sentence),
        )
        for each in rehearsal.remarks
    )


def _leaves(rehearsal: Rehearsal) -> Html:
    return listing(html("$text.", text=capital(each)) for each in rehearsal.leaves)


def _cost(errand: Errand, account: Account | None) -> tuple[Html, ...]:
    cost = errand.rehearsal.cost
    whose = "a new data set" if cost.is_new and account is None else "data set"
    return (
        paragraph(
            "ε = $epsilon at δ = $delta, paid by $whose $dataset.",
            epsilon=f"{cost.epsilon:.4g}",
            delta=power(cost.delta),
            whose=whose,
            dataset=html("<b>$name</b>", name=cost.dataset),
        ),
        after(errand.rehearsal, account),
        facts(
            {
                "spent so far": f"ε = {cost.spent:.4g} of {cost.limit:g}",
                "spent afterwards": f"ε = {cost.spent_afterwards:.4g}",
                "left afterwards": (
                    f"ε = {cost.left_afterwards:.4g} at δ = {power(cost.limit_delta)}"
                ),
            }
        ),
        _first(cost, account),
        note(
            "The squares of noise add up, not the ε: so spent and left make more than the limit "
            "when they are added, and are right. The bar shows the squares."
        ),
    )


def _first(cost: Cost, account: Account | None) -> Html:
    """What the first charge of a data set without a limit means."""
    if account is not None:
        return NOTHING
    return note(
        f"It is the first charge to “{cost.dataset}”, and so sets its limit: nothing would be "
        "left. To keep something for later studies, set a larger limit on the ledger's page first."
    )


def _confirm(frame: Frame, errand: Errand) -> Html:
    rehearsal = errand.rehearsal
    place = f"{frame.room}/errands/{errand.id}"
    discard = html(
        '<form method="post" action="$place/discard"><p><button type="submit" class="quiet">'
        "Do not publish: remove the table from the desk</button></p></form>",
        place=place,
    )
    if rehearsal.cost.refusal is not None:
        return join(
            [
                problem(f"publishing would be refused: {rehearsal.cost.refusal}"),
                paragraph(
                    "A release that was paid for can be had again for free, from the $link.",
                    link=html('<a href="$room/ledger">ledger</a>', room=frame.room),
                ),
                discard,
            ]
        )
    anyway = (
        html(
            '<p class="choice"><label><input type="checkbox" name="anyway" value="yes" required> '
            "<span>I have looked at what stands under “Stop and look”, and publish all the same"
            "</span></label></p>"
        )
        if rehearsal.shouts
        else NOTHING
    )
    signed = "signed" if errand.setting.signing_key else "not signed: there is no signing key"
    return html(
        '<form method="post" action="$place/publish" class="card" data-once="yes">$seen$anyway'
        "<p>The release of <b>$holder</b> for study <b>$study</b>, $signed.</p>"
        '<p><button type="submit">Publish, and pay ε = $epsilon</button></p>'
        '<p class="progress" role="status" aria-live="polite"></p></form>$discard',
        place=place,
        seen=hidden("seen", errand.binding),
        anyway=anyway,
        holder=rehearsal.holder,
        study=rehearsal.study.name,
        signed=signed,
        epsilon=f"{rehearsal.cost.epsilon:.4g}",
        discard=discard,
    )


def released_page(frame: Frame, charge: Charge, account: Account) -> str:
    """The file, what was paid for it, and what is left."""
    release = json.loads(charge.release or "{}")
    signature = release.get("signature")
    signed = fingerprint(signature["public_key"]) if signature else "nobody"
    return frame.page(
        f"Published: {charge.study}",
        good("the charge is in the ledger, and the file is yours to hand on"),
        html(
            '<p><a class="button" href="$room/charges/$number/release" download>'
            "Save the release</a></p>",
            room=frame.room,
            number=charge.id,
        ),
        paragraph(
            "This file, and nothing else, may leave the house. Send it to the analyst. The table "
            "was removed from the desk; the ledger keeps the release, and gives it again for free."
        ),
        _further(release),
        facts(
            {
                "charge": charge.id,
                "holder": charge.holder,
                "paid": f"ε = {charge.epsilon:.4g} at δ = {power(charge.delta)}",
                "data set": charge.dataset,
                "when": moment(charge.time),
                "signed by": signed,
                "spent in all": f"ε = {account.epsilon_spent:.4g} of {account.epsilon:g}",
                "left": f"ε = {account.epsilon_left:.4g} at δ = {power(account.delta)}",
            }
        ),
        here="",
        step=3,
    )


def _further(release: dict[str, Any]) -> Html:
    """What comes after the first of several visits, where each is a message of its own."""
    study = Study.from_document(release["study"]) if "study" in release else None
    if study is None or study.visit_count == 1 or len(study.planned_rows) == 1:
        return NOTHING
    return paragraph(
        "It is the first of $count visits. The analyst makes the next question of what all holders "
        "published; whoever looks after the machine answers it with $command, from the same table "
        "and ledger, at no further cost.",
        count=study.visit_count,
        command=html("<code>tacit publish --question</code>"),
    )
