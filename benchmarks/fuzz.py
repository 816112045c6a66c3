"""Fuzzed documents: whatever is read, only Tacit's own errors come of it, soon and for little.

Documents of every kind that crosses a wall are made by the real code, broken in many ways
(mutations.py), and read by the real readers: studies, releases, lines of a stream's log, a
site's policy and stored requests, messages between server and sites, all five rounds of a secure
sum and of its later visit, and what goes to and fro beside them (letters.py): questions of visits
and their answers, summed ones too, parcels, invitations and replies. Document k of a kind is the
same in every run. A study that is accepted must also give its noise, its words, and itself again
with defaults written out and from its own file; a question must map rows, a visit's message lead to
what comes next.

The run is cut into parts of 5,000 documents, each in a process of its own that ends with it; a part
that is done is kept in --folder, and a run that was interrupted goes on with the next.

Bars (--check): no error but Tacit's, no document above 2 s of processor time, no process above
500 MB (which holds the interpreter and all libraries too, about a third of it).

    python benchmarks/fuzz.py [--documents 1000000] [--workers 2] [--folder DIR] [--quick] [--check]
"""

import json
import multiprocessing
import os
import random
import resource
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from flwr.app import ConfigRecord, RecordDict
from frame import Bench, peak_memory
from letters import KINDS, Letters
from mutations import VALUES, mutated_text, mutated_value
from sum_rounds import SESSION, Round, rounds

from tacit.cli.study import words
from tacit.demo.hospitals import STUDY, patients
from tacit.errors import TacitError
from tacit.federation import wire
from tacit.federation.client.policy import Policy
from tacit.federation.client.requests import Request
from tacit.records import now
from tacit.release import Release
from tacit.release.log import Entry
from tacit.simulation import simulate
from tacit.study import Study
from tacit.study.toml import study_toml
from tacit.study.visits import has_places, places_mechanism, visit_mechanism

PART = 5000
MOST_SECONDS = 2.0
MOST_BYTES = 500e6
PATIENCE = 60
"""Seconds after which a document that does not end is given up, and counted as a failure."""
SHARES = {
    "study": 0.3,
    "release": 0.2,
    "log": 0.08,
    "policy": 0.07,
    "request": 0.06,
    "message": 0.08,
    "sum": 0.05,
    "question": 0.06,
    "places": 0.03,
    "visit": 0.04,
    "parcel": 0.02,
    "letter": 0.01,
}
"""Which part of all documents is of which kind."""
POLICY = """\
holder = "north"
data = ["patients.parquet"]
dataset = "patients"
ledger = "ledger.db"
approval = true
least_rows = 100
studies = ["length-of-stay*"]
columns = ["age", "bmi", "days"]
[most]
epsilon = 1.0
delta = 1e-6
epsilon_in_all = 2.0
delta_in_all = 1e-6
[peers]
south = "6BzFAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="
"""


# What is broken.


def studies() -> list[Study]:
    """Studies of all forms."""
    plain = Study.from_toml(STUDY)
    document = plain.document()
    columns = {"days": (0, 30), "age": (18, 100), "bmi": (15, 50), "sex": ["female", "male"]}
    formula = Study.from_formula(
        "log1p(days) ~ age * sex + poly(bmi, 3)", columns, epsilon=1.0, delta=1e-6
    )
    keys = {f"site-{k}": f"{k:043d}=" for k in range(5)}
    changes: list[dict[str, Any]] = [
        {"relation": "add-remove", "release": {}},
        {"intercept": False, "release": {"row_radius": 0.4, "response_bound": 0.3}},
        {"release": {"average": 4, "noise": "triangular"}},
        {"release": {"smallest_eigenvalue": True, "response_square": False}},
        {"stage_one": "sha256:" + "0" * 64, "missing": "impute"},
        {"planned_rows": [12_000, 800], "visits": 1, "release": {}},
        {"planned_rows": [12_000, 800], "visits": 2, "release": {}},
        {"planned_rows": [12_000, 800], "visits": 4, "person": "patient", "release": {}},
        {"weight": {"column": "patient", "most": 9.0}, "release": {}},
        {"responses": ["days", "bmi"], "release": {}},
        {"secure_sum": {"holders": keys, "least": 4, "colluding": 1}, "release": {}},
        {
            "secure_sum": {"holders": keys, "least": 4, "colluding": 1},
            "planned_rows": [300] * len(keys),
            "visits": 4,
            "release": {},
        },
    ]
    return [plain, formula, *(Study.from_document(document | change) for change in changes)]


class Corpus:
    """Whole documents of every kind, and how each kind is broken and read."""

    def __init__(self, folder: Path) -> None:
        rng = np.random.default_rng(0)
        self.file = folder / "document"
        self.studies = studies()
        table = patients(rng, 60)
        alone = [
            study for study in self.studies if study.secure_sum is None and study.visit_count == 1
        ]
        self.texts = {
            "study": [study_toml(study) for study in self.studies] + [STUDY],
            "policy": [POLICY, POLICY.replace("approval = true", "key = 'k'")],
            "release": [simulate(study, table, rng, holder="north").to_json() for study in alone],
            "request": [_request(study) for study in self.studies],
        }
        self.texts["log"] = [
            Entry(release.in_stream("s1", number)).to_line()
            for number, text in enumerate(self.texts["release"], 1)
            for release in [Release.from_json(text)]
        ]
        self.rounds = rounds(folder)
        self.letters = Letters(self.studies, folder)
        self.texts |= self.letters.texts

    def document(self, kind: str, number: int) -> tuple[Callable[[Any], object], Any]:
        """The reader of a kind, and document `number` of it."""
        rng = random.Random(f"{kind} {number}")  # noqa: S311 - the same in every run
        if kind == "message":
            return _read_message, self._message(rng)
        if kind == "sum":
            return self._sum, self._round(rng)
        if kind in KINDS:
            return self.reader(kind), self.letters.broken(kind, rng)
        text = rng.choice(self.texts[kind])
        if kind not in {"study", "policy"} and rng.random() < 0.6:
            return self.reader(kind), json.dumps(mutated_value(rng, json.loads(text)))
        if kind == "study" and rng.random() < 0.5:
            study = rng.choice(self.studies)
            return Study.from_document, mutated_value(rng, study.document())
        return self.reader(kind), mutated_text(rng, text, rng.choice(self.texts[kind]))

    def reader(self, kind: str) -> Callable[[Any], object]:
        """What reads the text of a document."""
        readers: dict[str, Callable[[Any], object]] = {
            "study": Study.from_toml,
            "release": Release.from_json,
            "log": lambda text: Entry.from_line(text.encode(errors="replace")),
            "policy": lambda text: Policy.load(self._written(text)),
            "request": lambda text: Request.load(self._written(text)).agreement(),
            **self.letters.readers,
        }
        return readers[kind]

    def _written(self, text: str) -> Path:
        self.file.write_text(text, encoding="utf-8", errors="replace")
        return self.file

    def _message(self, rng: random.Random) -> RecordDict:
        step = wire.Step(rng.choice(self.texts["study"]), SESSION, rng.choice(wire.ROUNDS), "{}")
        later = replace(step, question=rng.choice(self.texts["question"]), opening="cd" * 16)
        messages = [
            wire.request_of(rng.choice(self.texts["study"])),
            wire.step_request(step),
            wire.step_request(later),
            wire.visit_request(
                wire.Visit(rng.choice(self.texts["study"]), rng.choice(self.texts["question"]))
            ),
            wire.record_of(wire.Answer("waiting", wire.Reason.WAITING)),
            wire.record_of(wire.Answer("released", release=rng.choice(self.texts["release"]))),
        ]
        records = dict(rng.choice(messages))
        name = rng.choice(list(records))
        fields = dict(records.pop(name))
        for _ in range(rng.choice((1, 1, 2))):
            key = rng.choice(list(fields) or ["version"])
            match rng.randrange(4):
                case 0:
                    fields.pop(key, None)
                case 1:
                    fields[rng.choice(("x", "study", "release"))] = fields.get(key, 1)
                case 2:
                    fields[key] = mutated_text(rng, str(fields.get(key)), STUDY)
                case _:
                    fields[key] = rng.choice([v for v in VALUES if _travels(v)])
        records[rng.choice((name, name, "step", "x"))] = ConfigRecord(fields)
        return RecordDict(records)

    def _round(self, rng: random.Random) -> tuple[Round, wire.Step]:
        met = rng.choice(self.rounds)
        payload = json.dumps(mutated_value(rng, json.loads(met.payload)))
        if rng.random() < 0.4:
            payload = mutated_text(rng, met.payload, rng.choice(self.rounds).payload)
        name = met.name if rng.random() < 0.9 else rng.choice(wire.ROUNDS)
        return met, wire.Step("", SESSION, name, payload)

    def _sum(self, asked: tuple[Round, wire.Step]) -> object:
        met, step = asked
        met.holder.store.texts.clear()  # type: ignore[attr-defined]
        met.holder.store.texts.update(met.texts)  # type: ignore[attr-defined]
        return met.holder.answer(step)


def _request(study: Study) -> str:
    text = study_toml(study)
    return Request(study_hash=study.hash, study=text, asked=now()).model_dump_json()


def _travels(value: object) -> bool:
    """Whether Flower's record takes a value: numbers of 64 bits, texts, bytes."""
    if isinstance(value, int):
        return -(2**63) <= value < 2**63
    return isinstance(value, float | str | bytes)


def _read_message(content: RecordDict) -> object:
    name = next((each for each in content if each != "site"), "")
    readers = {"step": wire.read_step, "answer": wire.read_answer, "visit": wire.read_visit}
    return readers.get(name, wire.read_request)(content)


# The run.


def use(study: Study) -> None:
    """What everybody does with a study that was accepted."""
    study.mechanism()
    if study.secure_sum is not None:
        study.summed(len(study.secure_sum.holders))
    if has_places(study):
        places_mechanism(study, study.budget())
    for visit in range(1 + has_places(study), study.visit_count + 1):
        visit_mechanism(study, visit, study.budget())
    words(study)
    for same in (study.resolved(), Study.from_toml(study_toml(study))):
        assert same.hash == study.hash  # noqa: S101


def judge(read: Callable[[Any], object], document: Any) -> str:  # noqa: ANN401
    """What came of a document: "accepted", "refused", or an error that must not be."""
    try:
        value = read(document)
        if isinstance(value, Study):
            use(value)
    except TacitError as error:
        return "refused" if "\n" not in str(error) else "refused in several lines"
    except BaseException as error:  # noqa: BLE001 - anything else is what is looked for
        return f"{type(error).__name__}: {str(error)[:200]}"
    return "accepted"


def run_part(kind: str, first: int, last: int) -> dict[str, Any]:
    """Read the documents of one part, in this process."""
    resource.setrlimit(resource.RLIMIT_AS, (8 * 2**30, resource.RLIM_INFINITY))
    signal.signal(signal.SIGALRM, _give_up)
    outcomes: Counter[str] = Counter()
    failures = []
    slowest = (0.0, -1)
    with tempfile.TemporaryDirectory() as folder:
        corpus = Corpus(Path(folder))
        before = peak_memory()
        for number in range(first, last):
            read, document = corpus.document(kind, number)
            signal.alarm(PATIENCE)
            begun = time.process_time()
            outcome = judge(read, document)
            slowest = max(slowest, (time.process_time() - begun, number))
            signal.alarm(0)
            outcomes[outcome if outcome in {"accepted", "refused"} else "failed"] += 1
            if outcome not in {"accepted", "refused"}:
                failures.append({"kind": kind, "number": number, "outcome": outcome})
    return {
        "kind": kind,
        "outcomes": dict(outcomes),
        "failures": failures[:20],
        "slowest": slowest,
        "memory": peak_memory(),
        "before": before,
    }


def _give_up(_number: int, _frame: object) -> None:
    raise TimeoutError(f"no end after {PATIENCE} s")


def parts(documents: int) -> list[tuple[str, int, int]]:
    """Kind, first and last document of every part."""
    every = []
    for kind, share in SHARES.items():
        count = round(documents * share)
        every += [(kind, first, min(first + PART, count)) for first in range(0, count, PART)]
    return every


def run(part: tuple[str, int, int], folder: Path) -> dict[str, Any]:
    """A part's figures: those that are kept, or else new ones, which are kept then."""
    kind, first, last = part
    path = folder / f"{kind}-{first}-{last}.json"
    if path.exists():
        kept: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return kept
    figures = run_part(kind, first, last)
    partial = path.with_suffix(".part")
    partial.write_text(json.dumps(figures), encoding="utf-8")
    partial.replace(path)
    return figures


def main() -> None:
    bench = Bench(__doc__, quick="4,000 documents, kept nowhere")
    bench.option("--documents", type=int, default=1_000_000)
    bench.option("--workers", type=int, default=len(os.sched_getaffinity(0)))
    bench.option("--folder", type=Path, default=Path(".benchmarks/fuzz"), help="of finished parts")
    options = bench.options()
    chosen = parts(4000 if options.quick else options.documents)
    with tempfile.TemporaryDirectory() as forgotten:
        folder = Path(forgotten) if options.quick else options.folder
        folder.mkdir(parents=True, exist_ok=True)
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(
            options.workers, mp_context=context, max_tasks_per_child=1
        ) as pool:
            figures = list(pool.map(run, chosen, [folder] * len(chosen)))
    tell(bench, figures)
    bench.finish()


def tell(bench: Bench, figures: list[dict[str, Any]]) -> None:
    """The table and the bars."""
    table = bench.table(
        "kinds",
        {
            "kind": "<10",
            "documents": ",",
            "accepted": ",",
            "refused": ",",
            "failed": ",",
            "slowest, s": ".2f",
            "memory, MB": ".0f",
        },
    )
    for kind in SHARES:
        own = [each for each in figures if each["kind"] == kind]
        outcomes = sum((Counter(each["outcomes"]) for each in own), Counter())
        table.row(
            kind,
            outcomes.total(),
            *(outcomes[name] for name in ("accepted", "refused", "failed")),
            max(each["slowest"][0] for each in own),
            max(each["memory"] for each in own) / 1e6,
        )
    for failure in [one for each in figures for one in each["failures"]][:20]:
        bench.say(f"{failure['kind']} {failure['number']}: {failure['outcome']}")
    total = sum(sum(each["outcomes"].values()) for each in figures)
    failed = sum(each["outcomes"].get("failed", 0) for each in figures)
    slowest = max(each["slowest"][0] for each in figures)
    memory = max(each["memory"] for each in figures)
    bench.bar("only Tacit's errors", met=failed == 0)
    bench.bar("no document above 2 s", met=slowest <= MOST_SECONDS)
    bench.bar("no process above 500 MB", met=memory <= MOST_BYTES)
    bench.say(
        f"{total:,} documents: {failed:,} errors that are not Tacit's, "
        f"slowest {slowest:.2f} s, largest process {memory / 1e6:.0f} MB"
    )


if __name__ == "__main__":
    main()
