"""Documents that go to and fro: questions of visits and their answers, parcels, invitations.

Each kind is made by the real code, and read and used as its receiver does: a question maps rows,
a message of a visit leads to the next question or to evidence, a parcel is unpacked.
"""

import base64
import json
import random
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from mutations import mutated_text, mutated_value

from tacit.analyst.collection import collect
from tacit.analyst.plausibility import check_plausible
from tacit.analyst.visited import evidence_of
from tacit.demo.hospitals import patients
from tacit.errors import FederationError
from tacit.federation.invitation import Invitation, Reply
from tacit.holder.charge import Purpose
from tacit.holder.places import PLACES, privatise_places
from tacit.holder.share import sum_tally
from tacit.holder.statistics import STEP_BITS
from tacit.holder.tally import total_of
from tacit.holder.visits import Message, answer, check_question, mapped
from tacit.release import Release
from tacit.release.parcel import Parcel, standings, unpack
from tacit.release.places import PlacesRelease
from tacit.release.question import LEAST_BOUND, LEAST_RADIUS, MOST_ENTRY, Question
from tacit.release.signature import load_key, new_key, public_key
from tacit.simulation import seeded, sums_of
from tacit.study import Study
from tacit.study.toml import study_toml
from tacit.study.visits import has_places
from tacit.visits.ask import next_question
from tacit.visits.messages import ask

KINDS = ("question", "places", "visit", "parcel", "letter")
ROWS = 60
ENTRIES = (0.0, -0.0, 1.0, 5e-324, 1e-300, 1e-12, MOST_ENTRY, -MOST_ENTRY, 1 / 3)
RADII = (LEAST_RADIUS, 1e-3, 1.0, MOST_ENTRY)
BOUNDS = (LEAST_BOUND, 1.0, 100.0)
CERTIFICATE = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"


def talk(study: Study, rng: np.random.Generator) -> tuple[list[Question], list[Message]]:
    """All questions of a study of visits, and one holder's messages or those of the sum."""
    table = patients(rng, ROWS)
    if study.secure_sum is not None:
        holders = len(study.secure_sum.holders)
        sums = list(
            sums_of(
                study,
                holders,
                lambda sitting: total_of(sum_tally(sitting), study, table),
                seeded(rng),
            )
        )
        asked = [sitting.question for sitting, _ in sums if sitting.question is not None]
        return asked, [message for _, message in sums]
    purpose = Purpose("north", "simulated")
    questions: list[Question] = []
    messages: list[Message] = []
    if has_places(study):
        sums = total_of(PLACES, study, table)
        messages.append(privatise_places(study, sums, purpose, seeded(rng)))
    while not questions or questions[-1].visit < study.visit_count:
        question = next_question(study, messages[-1:])
        release = answer(
            study,
            total_of(mapped(question), study, table),
            question,
            before=messages[-1] if messages else None,
            purpose=purpose,
            sampler=seeded(rng),
        )
        questions.append(question)
        messages.append(release)
    return questions, messages


class Letters:
    """Whole documents of these kinds, and how each is broken and read."""

    def __init__(self, studies: Sequence[Study], folder: Path) -> None:
        rng = np.random.default_rng(1)
        visited = [study for study in studies if study.visit_count > 1]
        talks = [talk(study, rng) for study in visited]
        messages = [message for _, answers in talks for message in answers]
        self.folder = folder
        self.studies = {study.hash: study for study in visited}
        self.rows = patients(rng, ROWS)
        self.key = folder / "key"
        new_key(self.key)
        self.texts = {
            "question": [each.to_json() for questions, _ in talks for each in questions],
            "places": [each.to_json() for each in messages if isinstance(each, PlacesRelease)],
            "visit": [each.to_json() for each in messages if isinstance(each, Release)],
            "parcel": [self._parcel(study_toml(studies[0]), messages[-1].to_json())],
            "letter": [
                Invitation(
                    holder="north",
                    address="localhost:9092",
                    authority=CERTIFICATE,
                    study=study_toml(studies[0]),
                ).model_dump_json(),
                Reply.of("north", "ecdsa-sha2-nistp384 AAAA", self.key).model_dump_json(),
            ],
        }
        self.readers: dict[str, Callable[[str], object]] = {
            "question": self._question,
            "places": lambda text: _asked(PlacesRelease.from_json(text)),
            "visit": _visit,
            "parcel": self._unpacked,
            "letter": self._letter,
        }

    def broken(self, kind: str, rng: random.Random) -> str:
        """A document of a kind, broken or made hostile."""
        text = rng.choice(self.texts[kind])
        if rng.random() < 0.3:
            return mutated_text(rng, text, rng.choice(self.texts[kind]))
        document = json.loads(text)
        if kind == "parcel":
            return self._signed(rng, mutated_value(rng, document))
        if kind in {"question", "visit"} and rng.random() < 0.5:
            for question in _questions(document):
                _make_hostile(rng, question)
            return json.dumps(document)
        return json.dumps(mutated_value(rng, document))

    def _parcel(self, *texts: str) -> str:
        names = ("study.toml", "north.json")
        files = [self.folder / name for name in names]
        for file, text in zip(files, texts, strict=True):
            file.write_text(text, encoding="utf-8")
        path = self.folder / "parcel"
        Parcel.of("north", files, self.key, expects=["north", "south"]).save(path)
        return path.read_text(encoding="utf-8")

    def _signed(self, rng: random.Random, document: dict[str, Any]) -> str:
        """The parcel, mostly signed anew by whoever changed it."""
        if rng.random() < 0.8:
            private = load_key(self.key)
            document["public_key"] = public_key(private)
            document.pop("signature", None)
            content = json.dumps(document, sort_keys=True, ensure_ascii=True).encode()
            document["signature"] = base64.b64encode(private.sign(content)).decode()
        return json.dumps(document)

    def _question(self, text: str) -> None:
        """Read a question and map rows by it: no sum may be more than rows of length 1 give."""
        question = Question.from_json(text)
        study = self.studies.get(question.study_hash, next(iter(self.studies.values())))
        check_question(study, question)
        statistics = total_of(mapped(question), study, self.rows)
        assert max(map(abs, statistics.gram.ravel())) <= ROWS << STEP_BITS  # noqa: S101

    def _unpacked(self, text: str) -> None:
        path = self.folder / "arrived"
        path.write_text(text, encoding="utf-8", errors="replace")
        place = self.folder / "place"
        shutil.rmtree(place, ignore_errors=True)
        unpack(Parcel.load(path), place)
        standings(place)

    def _letter(self, text: str) -> None:
        path = self.folder / "letter"
        path.write_text(text, encoding="utf-8", errors="replace")
        try:
            invitation = Invitation.load(path)
        except FederationError:
            reply = Reply.load(path)
            reply.check()
            len(reply.fingerprint)
        else:
            invitation.agreement()
            len(invitation.fingerprint)


def _asked(message: Message) -> None:
    """What `tacit next` does."""
    check_plausible([message])
    ask([message], allow_simulated=True)


def _visit(text: str) -> None:
    """Read a message and go on from it: to the next question, or to evidence after the last."""
    release = Release.from_json(text)
    asked = None if release.visit is None else release.visit.question.visit
    if asked is None or asked < release.study.visit_count:
        _asked(release)
        return
    collection = collect([release], allow_simulated=True)
    evidence_of(collection.study, collection.releases)


def _questions(document: dict[str, Any]) -> list[dict[str, Any]]:
    """The questions in a document of plain values: itself, or those of a visit."""
    if "map" in document:
        return [document]
    visit = document["visit"]
    return [visit["question"], *(each["question"] for each in visit["earlier"])]


def _make_hostile(rng: random.Random, question: dict[str, Any]) -> None:
    """Extreme numbers that may be accepted, in the place of some or of all."""
    share = rng.choice((0.1, 0.5, 1.0))
    for row in (*question["map"], question["offset"]):
        for place in range(len(row)):
            if rng.random() < share:
                row[place] = rng.choice(ENTRIES)
    question["radius"] = rng.choice((question["radius"], *RADII))
    question["bound"] = rng.choice((question["bound"], *BOUNDS))
