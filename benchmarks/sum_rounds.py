"""All rounds of a real secure sum, as one holder meets them: documents for fuzz.py to break."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tacit.demo.hospitals import STUDY
from tacit.federation import wire
from tacit.federation.secure_sum.holder import Holder
from tacit.federation.secure_sum.statements import digest
from tacit.release.signature import load_key, new_key, public_key
from tacit.study import Study
from tacit.visits.first import first_question
from tacit.visits.sitting import Sitting

SESSION = "ab" * 16


class Memory:
    """Sessions of a secure sum in memory."""

    def __init__(self, texts: dict[str, str]) -> None:
        self.texts = texts

    @contextmanager
    def alone(self) -> Iterator[None]:
        yield

    def read(self, session: str) -> str | None:
        return self.texts.get(session)

    def write(self, session: str, text: str) -> None:
        self.texts[session] = text


@dataclass(frozen=True)
class Round:
    """A round of a secure sum as one holder meets it: what it remembers, and what it is told."""

    holder: Holder
    texts: dict[str, str]
    name: wire.Round
    payload: str


def rounds(folder: Path) -> list[Round]:
    """All rounds of a real sum of four holders, alone and as the second of two visits."""
    names = [f"site-{k}" for k in range(4)]
    for name in names:
        new_key(folder / name)
    keys = {name: public_key(load_key(folder / name)) for name in names}
    agreed = {"secure_sum": {"holders": keys, "least": 3, "colluding": 0}, "release": {}}
    study = Study.from_document(Study.from_toml(STUDY).document() | agreed)
    several = {"planned_rows": [300] * len(names), "visits": 2}
    visited = Study.from_document(study.document() | several | {"release": {}})
    question = first_question(visited, []).model_copy(update={"visit": 2})
    sittings = (Sitting(study), Sitting(visited, question, "cd" * 16))
    return [met for sitting in sittings for met in rounds_of(sitting, folder, names)]


def rounds_of(sitting: Sitting, folder: Path, names: list[str]) -> list[Round]:
    """All rounds of one sum, as the first holder meets them."""
    share = [1] * sitting.length
    holders = {
        name: Holder(name, str(folder / name), sitting, Memory({}), lambda seal: seal(share))
        for name in names
    }
    first = names[0]
    met: list[Round] = []

    def ask(round_: wire.Round, told: Callable[[str], object]) -> dict[str, Any]:
        answers = {}
        for name, holder in holders.items():
            payload = json.dumps(told(name))
            if name == first:
                texts = dict(holder.store.texts)  # type: ignore[attr-defined]
                met.append(Round(holder, texts, round_, payload))
            step = wire.Step("", SESSION, round_, payload)
            answers[name] = json.loads(holder.answer(step))
        return answers

    public = ask("keys", lambda _name: {})
    sealed = ask("shares", lambda _name: public)
    masked = ask(
        "masked",
        lambda name: {other: told[name] for other, told in sealed.items() if other != name},
    )
    vectors = {name: digest(told["vector"]) for name, told in masked.items()}
    signed = ask("agree", lambda _name: {"survivors": vectors})
    ask("unmask", lambda _name: {name: told["signature"] for name, told in signed.items()})
    return met
