"""Visits in processes that are killed, and gone on with; started by test_visit_crash.py.

A holder answers every visit, its questions made of its own answers, or all of them in one message
where it is the only one. The process is killed just before its n-th SQL statement, and another goes
on from what the ledger and the folder hold.
"""

import json
import os
import signal
import sqlite3
import sys
from pathlib import Path

import numpy as np
from crashing import forked

from tacit.errors import LedgerError
from tacit.holder.ledger import Ledger
from tacit.holder.publish import publish
from tacit.holder.visits import visit_hash
from tacit.privacy.gaussian import compose, mu_of
from tacit.release.question import Question
from tacit.study import Study
from tacit.visits.ask import next_question
from tacit.visits.messages import load_message

VISITS = 3
ROWS = {"x": np.linspace(0, 1, 20), "y": np.linspace(1, 0, 20)}


def study_for(holders: int) -> Study:
    return Study.from_document(
        {
            "name": "crash-test",
            "epsilon": 0.5,
            "delta": 1e-6,
            "response": {"name": "y", "range": [0, 1]},
            "features": [{"name": "x", "range": [0, 1]}],
            "planned_rows": [20] * holders,
            "visits": VISITS,
        }
    )


def take_part(study: Study, folder: Path) -> None:
    """Answer every visit that is not answered yet; what the ledger has is handed out again."""
    ledger = Ledger(folder / "ledger.db")
    question = None
    visits = [1] if len(study.planned_rows) == 1 else range(1, VISITS + 1)
    for visit in visits:
        path = folder / f"answer{visit}.json"
        stored = ledger.released("default", visit_hash(study, visit))
        if stored is None:
            message = publish(study, ROWS, holder="north", ledger=ledger, question=question)
            message.save(path)
        elif not path.exists():
            path.write_text(stored, encoding="utf-8")
        if visit < visits[-1]:
            question = next_question(study, [load_message(path)])


def killed_at(study: Study, folder: Path, statement: int) -> bool:
    """Kill a process just before it runs its n-th SQL statement; False where it ended before."""
    connect = sqlite3.connect
    count = 0

    def traced(_sql: str) -> None:
        nonlocal count
        count += 1
        if count == statement:
            os.kill(os.getpid(), signal.SIGKILL)

    def connect_traced(*args, **kwargs):
        database = connect(*args, **kwargs)
        database.set_trace_callback(traced)
        return database

    def work() -> None:
        sqlite3.connect = connect_traced
        take_part(study, folder)

    _, status = os.waitpid(forked(work), 0)
    return os.WIFSIGNALED(status)


def check(study: Study, folder: Path) -> int:
    """What must hold at any time; gives how many answers are stored."""
    accounts = Ledger(folder / "ledger.db").accounts() if (folder / "ledger.db").exists() else []
    charges = [charge for account in accounts for charge in account.charges]
    spent = compose(charge.mu for charge in charges)
    assert spent <= mu_of(study.epsilon, study.delta) * (1 + 1e-12), "overspent"
    names = [charge.study_hash for charge in charges if charge.release is not None]
    assert len(set(names)) == len(names), "a visit was answered twice"
    stored = {charge.release for charge in charges}
    for path in folder.glob("answer*.json"):
        assert path.read_text(encoding="utf-8") in stored, "an answer that was not paid for"
    return len(names)


def refuses_another_offset(study: Study, folder: Path) -> bool:
    """Whether a visit that is answered is not answered again with another question."""
    ledger = Ledger(folder / "ledger.db")
    text = ledger.released("default", visit_hash(study, 2))
    if text is None:
        return True
    asked = Question.model_validate(json.loads(text)["visit"]["question"])
    other = asked.model_copy(update={"offset": tuple(0.1 + each for each in asked.offset)})
    try:
        publish(study, ROWS, holder="north", ledger=ledger, question=other)
    except LedgerError:
        return True
    return False


def kills(folder: Path, holders: int, step: int) -> dict[str, int]:
    """Kill at every `step`-th statement, go on, and check all the while."""
    study = study_for(holders)
    take_part(study, _house(folder, "warm"))
    answers = {}
    statement = 1
    while True:
        house = _house(folder, f"house{statement}")
        if not killed_at(study, house, statement):
            break
        answers[statement] = check(study, house)
        before = {path: path.read_bytes() for path in house.glob("answer*.json")}
        assert refuses_another_offset(study, house), "another offset was answered"
        take_part(study, house)
        assert check(study, house) == (1 if holders == 1 else VISITS), "it does not go on"
        assert all(path.read_bytes() == data for path, data in before.items())
        statement += step
    return {"kills": len(answers), "stages": len(set(answers.values()))}


def _house(folder: Path, name: str) -> Path:
    house = folder / name
    house.mkdir()
    return house


if __name__ == "__main__":
    print(json.dumps(kills(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))))  # noqa: T201
