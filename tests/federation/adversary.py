"""A malicious server with colluding holders, for the explorer: what it can say, and what it learns.

It talks to the real state machine (`tacit.federation.secure_sum.holder.Holder`, or the old one of
old_sum.py) over symbolic cryptography (symbols.py), a store and a ledger in memory whose power can
be cut before any write.
"""

import json
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import cache

from sites import changed
from symbols import LOW, Knowledge, Symbols

from tacit.errors import LedgerError, TableError, TacitError
from tacit.federation.secure_sum.holder import Holder
from tacit.federation.secure_sum.statements import digest, keys_statement, route
from tacit.federation.wire import Step
from tacit.holder.charge import Purpose
from tacit.holder.share import share_charge
from tacit.release.attestation import stay_statement
from tacit.visits.sitting import Sitting

SESSION = "aa" * 16
MOST_WRITES = 4
"""In one answer: a state, the charge, the vector, a state."""
AWAY = "away"
"""The fault that a table is not there; the others are numbers of writes before a power cut."""
FAULTS = (None, AWAY, *range(MOST_WRITES + 1))


class PowerCut(BaseException):
    """The machine stops."""


@dataclass(frozen=True)
class Case:
    """A study's sum, who colludes, and which holder's code is tried."""

    holders: int
    least: int
    colluding: int
    bad: int
    kind: type = Holder
    faults: tuple = FAULTS
    tricks: tuple = ("low", "twin")
    visits: int = 1
    sitting: type = Sitting
    once: bool = True
    """Whether the ledger answers a visit once, as it does, and not once in every session."""

    @property
    def names(self):
        return tuple("abcdefgh"[: self.holders])

    @property
    def colluders(self):
        """The first ones: a twin's key cancels a mask where its name comes before."""
        return self.names[: self.bad]

    @property
    def honest(self):
        return self.names[self.bad :]


@cache
def study_of(holders, least, colluding, visits=1):
    keys = {name: f"{name * 43}=" for name in "abcdefgh"[:holders]}
    planned = {} if visits == 1 else {"visits": visits, "planned_rows": [1000] * holders}
    agreed = {"holders": keys, "least": least, "colluding": colluding}
    return changed(secure_sum=agreed, **planned)


def study_in(case):
    return study_of(case.holders, case.least, case.colluding, case.visits)


# One holder: a function from what it remembers and what it is asked to what it remembers then.


@dataclass(frozen=True)
class Memory:
    """All that survives a power cut at one holder: states of its sessions, and its ledger."""

    sessions: tuple = ()
    ledger: tuple = ()
    """(session, what was stored or None) of each charge."""


class Machine:
    """A holder's disk while it answers; power is cut before write number `cut`."""

    def __init__(self, memory, question, sitting, case):
        self.sitting = sitting
        self.once = case.once
        self.session = question.session
        fault = question.fault
        self.sessions = dict(memory.sessions)
        self.ledger = dict(memory.ledger)
        self.fault = fault
        self.writes = 0

    def memory(self):
        return Memory(tuple(sorted(self.sessions.items())), tuple(sorted(self.ledger.items())))

    def _write(self, where, name, value):
        if self.writes == self.fault:
            raise PowerCut
        self.writes += 1
        where[name] = value

    def alone(self):
        return nullcontext()

    def read(self, session):
        return self.sessions.get(session)

    def write(self, session, text):
        self._write(self.sessions, session, text)

    def publish(self, seal):
        """As `publish_share` does: give what is stored, or charge, draw, mask and store.

        What stands for the noise names the question, too.
        """
        charge = share_charge(self.sitting, Purpose("a"), self.session)
        name = charge.study_hash if self.once else f"{charge.study_hash} {self.session}"
        if charge.epsilon:
            name = self.session
        if self.ledger.get(name):
            return self.ledger[name]
        if self.sitting.question is not None and not self.ledger.get(self.sitting.opening):
            raise LedgerError("the first visit was not paid for")
        if self.fault == AWAY:
            raise TableError("the table is away")
        self._write(self.ledger, name, "")
        sealed = seal([f"{len(self.ledger)} of {Sitting.subject.fget(self.sitting)}"])
        self._write(self.ledger, name, sealed)
        return sealed


@dataclass(frozen=True)
class Question:
    """What a holder is asked, and the fault that happens meanwhile."""

    session: str
    round: str
    payload: str
    fault: object = None
    sitting: object = None


@cache
def answered(case, name, memory, question):
    """What a holder remembers after a question, and its answer; None where there is none."""
    study = study_in(case)
    sitting = question.sitting or Sitting(study)
    machine = Machine(memory, question, sitting, case)
    session = question.session
    holder = case.kind(
        name=name,
        key=study.secure_sum.holders[name],
        sitting=sitting,
        store=machine,
        publish=machine.publish,
        arithmetic=Symbols(name, session, bound=getattr(case.kind, "bound", True)),
    )
    try:
        answer = holder.answer(Step("", session, question.round, question.payload))
    except (TacitError, PowerCut):
        answer = None
    if machine.writes == question.fault:
        answer = None  # the power was cut after the last write, and before the answer was sent
    return machine.memory(), answer


# The adversary.


@dataclass
class Adversary:
    """What was given to the server and its colluders, and what they can say because of it."""

    case: Case
    session: str = SESSION
    answers: dict = field(default_factory=dict)
    """By (holder, round): the answer's text."""
    sitting: object = None
    """What is said to be summed; the first visit's where nothing is said."""

    @property
    def study(self):
        return study_in(self.case)

    @property
    def subject(self):
        return (self.sitting or Sitting(self.study)).subject

    def told(self, name, round_):
        text = self.answers.get((name, round_))
        return None if text is None else json.loads(text)

    def keys(self, name, trick="fresh"):
        """A holder's signed keys; a colluder's may be of low order, or show another's mask key."""
        if name in self.case.honest:
            return self.told(name, "keys")
        cipher = f"public {name} {self.session[:2]} 1"
        mask = {"fresh": f"public {name} {self.session[:2]} 2", "low": LOW}.get(trick)
        if mask is None:
            mask = self.told(trick.removeprefix("twin "), "keys")["mask"]
        text = keys_statement(self.sitting or Sitting(self.study), self.session, name, cipher, mask)
        signature = Symbols.sign(self.study.secure_sum.holders[name], text)
        return {"cipher": cipher, "mask": mask, "signature": signature}

    def tricks(self):
        """Mask keys that colluders may show."""
        twins = [f"twin {name}" for name in self.case.honest if (name, "keys") in self.answers]
        return ["fresh", *(["low"] if "low" in self.case.tricks else [])] + (
            twins if "twin" in self.case.tricks else []
        )

    def shares_payload(self, chosen, tricks):
        keys = {name: self.keys(name, tricks.get(name, "fresh")) for name in chosen}
        return {name: told for name, told in keys.items() if told is not None}

    def masked_payload(self, target, chosen):
        """Sealed shares of some holders for one; None for those that were never given."""
        sealed = {}
        for name in chosen:
            if name in self.case.honest:
                sealed[name] = (self.told(name, "shares") or {}).get(target)
            else:
                ends = sorted([self.keys(name)["cipher"], f"public {target} {self.session[:2]} 1"])
                way = route(self.session, name, target).decode()
                shares = {"seed": "junk", "key": "junk"}
                sealed[name] = json.dumps({"ends": ends, "route": way, "shares": shares})
        return None if None in sealed.values() else sealed

    def vectors(self, chosen):
        """Digests of vectors; one that was not sent is invented."""
        sent = {name: self.told(name, "masked") for name in chosen}
        return {name: digest(told["vector"]) if told else "0" * 64 for name, told in sent.items()}

    def unmask_payload(self, sharers, vectors):
        """All signatures that there are, and colluders' on this very statement."""
        text = stay_statement(self.subject, self.session, sharers, vectors)
        keys = self.study.secure_sum.holders
        signed = {name: Symbols.sign(keys[name], text) for name in self.case.colluders}
        for name in self.case.honest:
            if told := self.told(name, "agree"):
                signed[name] = told["signature"]
        return signed

    def knowledge(self, known=None):
        known = known or Knowledge(self.study.secure_sum.threshold)
        for name in self.case.colluders:
            known.secrets |= {f"secret {name} {self.session[:2]} {k}" for k in (1, 2, 3)}
        for (_name, round_), text in self.answers.items():
            told = json.loads(text)
            if round_ == "shares":
                for receiver in set(told) & set(self.case.colluders):
                    for share in json.loads(told[receiver])["shares"].values():
                        known.learn_share(share)
            elif round_ == "masked":
                known.vectors.add(told["vector"])
            elif round_ == "unmask":
                for shares in told.values():
                    for share in shares.values():
                        known.learn_share(share)
        return known


def violation(case, sums):
    """Why the promise is broken by what can be unmasked; None where it is kept."""
    promised = case.least - case.colluding
    if len(sums) > 1:
        return f"{len(sums)} different sums are unmasked: {sums}"
    for weights in sums:
        if len(set(weights.values())) > 1:
            return f"unequal weights are unmasked: {weights}"
        if len(weights) < promised:
            return f"{len(weights)} honest shares of noise, and {promised} were promised: {weights}"
    return None


def violation_in_visits(case, adversaries):
    """The same over all sessions of several visits: one sum of one question at each visit.

    Gives how many later visits have a sum, too.
    """
    known = Knowledge(study_in(case).secure_sum.threshold)
    for adversary in adversaries:
        adversary.knowledge(known)
    by_visit = {}
    for weights in known.sums():
        subjects = {noise.partition(" of ")[2] for _, noise in weights}
        if len(subjects) > 1:
            return f"a sum of answers to different questions is unmasked: {weights}", 0
        visit = min(subjects).split("/")[1]
        by_visit.setdefault(visit, []).append(weights)
    reasons = [violation(case, sums) for sums in by_visit.values()]
    return next((reason for reason in reasons if reason), None), len(set(by_visit) - {"visit-1"})
