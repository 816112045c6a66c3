"""The frame that all pages stand in: where the officer is, and how to get elsewhere."""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files

from tacit.page.markup import Html, html, join, paragraph

NOTHING = Html("")
STEPS = ("Study", "Table", "Rehearsal", "File")
"""The way from a study to a file."""


@dataclass(frozen=True)
class Frame:
    """What every page needs to know of the desk."""

    room: str
    ledger: str
    has_requests: bool
    waiting: int = 0

    def page(self, title: str, *parts: Html, here: str = "", step: int | None = None) -> str:
        """A whole page; `here` is the part of the desk that it belongs to."""
        return html(
            files("tacit.desk.pages").joinpath("frame.html").read_text(encoding="utf-8"),
            title=title,
            room=self.room,
            links=join(self._links(here)),
            steps=NOTHING if step is None else _steps(step),
            body=join(parts),
            ledger=self.ledger,
        )

    def _links(self, here: str) -> list[Html]:
        parts = {"": "Publish", "ledger": "Ledger"}
        if self.has_requests:
            parts["requests"] = f"Requests ({self.waiting} waiting)"
        parts["close"] = "Close"
        return [
            html(
                '<li><a href="$room/$place"$current>$name</a></li>',
                room=self.room,
                place=place,
                name=name,
                current=Html(' aria-current="page"') if place == here else NOTHING,
            )
            for place, name in parts.items()
        ]


def _steps(now: int) -> Html:
    items = join(
        html(
            '<li class="$style"$current>$name</li>',
            style="done" if place < now else "",
            current=Html(' aria-current="step"') if place == now else NOTHING,
            name=name,
        )
        for place, name in enumerate(STEPS)
    )
    return html('<ol class="steps" aria-label="Steps">$items</ol>', items=items)


def problem(sentence: str) -> Html:
    """What went wrong, told at once to who cannot see it."""
    return html('<p class="warning" role="alert">$sentence</p>', sentence=_sentence(sentence))


def good(sentence: str) -> Html:
    """What went well."""
    return html('<p class="verdict" role="status">$sentence</p>', sentence=_sentence(sentence))


def facts(pairs: Mapping[str, object]) -> Html:
    """Names with their values."""
    return html(
        '<dl class="told">$items</dl>',
        items=join(
            html("<div><dt>$name</dt><dd>$value</dd></div>", name=name, value=value)
            for name, value in pairs.items()
        ),
    )


def figures(pairs: Mapping[str, str]) -> Html:
    """The few figures that are looked for first."""
    return html(
        '<dl class="facts">$items</dl>',
        items=join(
            html("<div><dt>$name</dt><dd>$value</dd></div>", name=name, value=value)
            for name, value in pairs.items()
        ),
    )


def post(action: str, body: Html, label: str, *, style: str = "") -> Html:
    """A form of one button."""
    return html(
        '<form method="post" action="$action" class="$style">$body'
        '<p><button type="submit">$label</button></p></form>',
        action=action,
        body=body,
        label=label,
        style=style,
    )


def hidden(name: str, value: str) -> Html:
    """What a form carries along."""
    return html('<input type="hidden" name="$name" value="$value">', name=name, value=value)


def capital(sentence: str) -> str:
    """A sentence with its first letter large; a letter such as n, or a file's name, stays small."""
    first = sentence.split(" ", 1)[0].rstrip(",:;")
    is_word = len(first) > 1 and first.replace("-", "").isalpha()
    return sentence[:1].upper() + sentence[1:] if is_word else sentence


def _sentence(text: str) -> str:
    return capital(text) if text.endswith((".", "!", "?")) else f"{capital(text)}."


def note(text: str) -> Html:
    """A paragraph of small print."""
    return html('<p class="note">$text</p>', text=text)


__all__ = [
    "NOTHING",
    "Frame",
    "capital",
    "facts",
    "figures",
    "good",
    "hidden",
    "note",
    "paragraph",
    "post",
    "problem",
]
