"""The requests that wait in a federation, each with what a person must know to decide."""

import hashlib
from collections.abc import Sequence

from tacit.desk.pages.frame import (
    NOTHING,
    Frame,
    capital,
    facts,
    hidden,
    note,
    paragraph,
    problem,
)
from tacit.desk.pages.study import attack
from tacit.federation.client.described import Described
from tacit.federation.client.requests import Request
from tacit.page.markup import Html, html, join, listing, section, table
from tacit.page.numbers import moment
from tacit.study import words


def requests_page(frame: Frame, requests: Sequence[Request], broken: Sequence[str]) -> str:
    """All requests, those that wait first."""
    waiting = [each for each in requests if each.decision == "waiting"]
    decided = [each for each in requests if each.decision != "waiting"]
    return frame.page(
        "Requests",
        *(problem(complaint) for complaint in broken),
        section("waiting", "Waiting for you", _listed(frame, waiting, "Nothing waits.")),
        section("decided", "Decided", _listed(frame, decided, "Nothing was decided yet.")),
        here="requests",
    )


def _listed(frame: Frame, requests: Sequence[Request], none: str) -> Html:
    if not requests:
        return paragraph("$none", none=none)
    return html(
        '<ul class="plain">$items</ul>',
        items=join(
            html(
                '<li class="card"><p><a href="$room/requests/$digits"><b>$name</b></a><br>'
                "asked $asked; $decision; ε = $epsilon</p></li>",
                room=frame.room,
                digits=each.study_hash.removeprefix("sha256:"),
                name=each.agreement().name,
                asked=moment(each.asked),
                decision=each.decision,
                epsilon=f"{each.agreement().epsilon:g}",
            )
            for each in requests
        ),
    )


def request_page(frame: Frame, described: Described, *, complaint: str = "") -> str:
    """One request, and the two buttons."""
    study = described.study
    return frame.page(
        f"Request: {study.name}",
        problem(complaint) if complaint else NOTHING,
        facts(
            {
                "who asks": described.origin,
                "state": described.state,
                "what would leave": described.leaves,
                "what it would cost": described.cost,
                **({"but the policy objects": described.objection} if described.objection else {}),
            }
        ),
        _tells(described),
        _peers(described),
        section(
            "words",
            "The study in words",
            table("Columns that it asks for", ("column", "kind", "values"), words.inputs(study)),
            attack(study),
            facts({fact.name: capital(fact.sentence) + "." for fact in words.facts(study)}),
            note(f"Hash: {study.hash}"),
        ),
        section("decide", "Decide", _buttons(frame, described)),
        here="requests",
    )


def _tells(described: Described) -> Html:
    if not described.tells:
        return NOTHING
    return listing(html("$text.", text=capital(each)) for each in described.tells)


def _peers(described: Described) -> Html:
    if not described.peers:
        return NOTHING
    return section(
        "peers",
        "Who takes part",
        paragraph("The sum is private only if these are real, separate holders with these keys."),
        table(
            "Holders and the fingerprints of their keys",
            ("holder", "fingerprint", "known how"),
            [(peer.name, peer.fingerprint, peer.note) for peer in described.peers],
        ),
    )


def _buttons(frame: Frame, described: Described) -> Html:
    request = described.request
    return html(
        '<form method="post" action="$room/requests/$digits/decision" class="card" '
        'data-once="yes">$seen'
        '<p class="pair"><button type="submit" name="decision" value="approved">Approve</button> '
        '<button type="submit" name="decision" value="refused" class="quiet">Refuse</button></p>'
        "</form>",
        room=frame.room,
        digits=request.study_hash.removeprefix("sha256:"),
        seen=hidden("seen", shown(described)),
    )


def shown(described: Described) -> str:
    """The hash of what a person is asked to decide on."""
    text = f"{described.study.hash}\n{described.state}\n{described.leaves}\n{described.cost}"
    return hashlib.sha256(text.encode()).hexdigest()
