"""The first page: open a study, see what is left, and who signs."""

from collections.abc import Sequence

from tacit.desk.pages.frame import (
    NOTHING,
    Frame,
    capital,
    facts,
    note,
    paragraph,
    post,
    problem,
)
from tacit.desk.setting import Setting
from tacit.federation.keys import fingerprint
from tacit.holder.account import Account
from tacit.page.markup import Html, html, join, section
from tacit.page.numbers import power
from tacit.study import Study


def home(
    frame: Frame,
    setting: Setting,
    studies: Sequence[Study],
    accounts: Sequence[Account],
    *,
    complaint: str = "",
    text: str = "",
) -> str:
    """The page; `complaint` says why the study that was given cannot be read."""
    return frame.page(
        "Publish from a table, privately",
        paragraph(
            "Open the study that you were sent. The desk tells you in words what it asks and what "
            "it promises, rehearses with your table, and shows the price before anything is paid."
        ),
        problem(complaint) if complaint else NOTHING,
        section("open", "Open a study", _form(frame, text)),
        _known(frame, studies),
        section("left", "What is left", _left(frame, accounts)),
        section("key", "Who signs", _key(frame, setting)),
        here="",
        step=0,
    )


def _form(frame: Frame, text: str) -> Html:
    return html(
        '<form method="post" action="$room/studies" class="card" data-reads="study-text">'
        '<div class="drop"><p><label for="study-file">Drop the study file here, or choose it'
        '</label></p><input type="file" id="study-file" accept=".toml,text/plain"></div>'
        "<details$open><summary>Or paste its text</summary>"
        '<p><label for="study-text">Text of the study</label></p>'
        '<textarea id="study-text" name="text" rows="10" spellcheck="false">$text</textarea>'
        "</details>"
        '<p><button type="submit">Read the study</button></p></form>',
        room=frame.room,
        text=text,
        open=Html(" open") if text else NOTHING,
    )


def _known(frame: Frame, studies: Sequence[Study]) -> Html:
    if not studies:
        return NOTHING
    items = join(
        html(
            '<li><a href="$room/studies/$hash">$name</a></li>',
            room=frame.room,
            hash=study.hash.removeprefix("sha256:"),
            name=study.name,
        )
        for study in studies
    )
    return section("studies", "Studies at the desk", html("<ul>$items</ul>", items=items))


def _left(frame: Frame, accounts: Sequence[Account]) -> Html:
    if not accounts:
        return paragraph(
            "Nothing was ever published from this ledger. The first release sets the limit of its "
            "data set, unless you set one before, on the page of the $link.",
            link=html('<a href="$room/ledger">ledger</a>', room=frame.room),
        )
    return facts(
        {
            f"data set {account.dataset}": (
                f"ε = {account.epsilon_left:.4g} of {account.epsilon:g} left "
                f"at δ = {power(account.delta)}"
            )
            for account in accounts
        }
    )


def _key(frame: Frame, setting: Setting) -> Html:
    public = setting.public_key()
    if public is None:
        return join(
            [
                paragraph(
                    "There is no signing key yet. With one, an analyst can tell your releases "
                    "from those of somebody who uses your name."
                ),
                post(f"{frame.room}/key", NOTHING, "Make a signing key"),
                note(f"It is written to {setting.key}, readable by you alone."),
            ]
        )
    return join(
        [
            facts({"public key": public, "fingerprint, to read out": fingerprint(public)}),
            note(capital("give the public key to the analyst; the private one stays here.")),
        ]
    )
