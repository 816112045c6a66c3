"""An explorer of secure sums: it plays a malicious server with colluding holders, and counts noise.

It drives the real state machine (`tacit.federation.secure_sum.holder.Holder`, or the old one of
old_sum.py) over symbolic cryptography (symbols.py), a store and a ledger in memory whose power can
be cut before any write. Whatever the adversary was given is put together; every combination of
masked vectors from which it can strip all masks must be one sum, with equal weights, of at least
`least − colluding` honest shares of noise.

`exhaust` tries everything for a few holders: any subset of holders told to any honest one in rounds
2, 3 and 4, colluders' keys fresh, of low order or another's, each round asked again and again with
any other question, the table away or the power cut at any write. What a holder does depends on its
own past alone, so for each holder all that it can be brought to are found once, and combined.
`wander` takes random steps in any order, in two sessions at once, for more holders.
"""

import itertools
import json
import random
import sys
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import cache

from sites import changed
from symbols import LOW, Knowledge, Symbols

from tacit.errors import TableError, TacitError
from tacit.federation.secure_sum.holder import Holder
from tacit.federation.secure_sum.statements import digest, keys_statement, route
from tacit.federation.wire import ROUNDS, Step
from tacit.release.attestation import stay_statement

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
def study_of(holders, least, colluding):
    keys = {name: f"{name * 43}=" for name in "abcdefgh"[:holders]}
    return changed(secure_sum={"holders": keys, "least": least, "colluding": colluding})


# One holder: a function from what it remembers and what it is asked to what it remembers then.


@dataclass(frozen=True)
class Memory:
    """All that survives a power cut at one holder: states of its sessions, and its ledger."""

    sessions: tuple = ()
    ledger: tuple = ()
    """(session, what was stored or None) of each charge."""


class Machine:
    """A holder's disk while it answers; power is cut before write number `cut`."""

    def __init__(self, memory, fault):
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

    def publish(self, session, seal):
        """As `publish_share` does: give what is stored, or charge, draw, mask and store."""
        if self.ledger.get(session):
            return self.ledger[session]
        if self.fault == AWAY:
            raise TableError("the table is away")
        self._write(self.ledger, session, "")
        sealed = seal([len(self.ledger)])
        self._write(self.ledger, session, sealed)
        return sealed


@dataclass(frozen=True)
class Question:
    """What a holder is asked, and the fault that happens meanwhile."""

    session: str
    round: str
    payload: str
    fault: object = None


@cache
def answered(case, name, memory, question):
    """What a holder remembers after a question, and its answer; None where there is none."""
    study = study_of(case.holders, case.least, case.colluding)
    machine = Machine(memory, question.fault)
    session = question.session
    holder = case.kind(
        name=name,
        key=study.secure_sum.holders[name],
        study=study,
        store=machine,
        publish=lambda seal: machine.publish(session, seal),
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

    @property
    def study(self):
        return study_of(self.case.holders, self.case.least, self.case.colluding)

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
        text = keys_statement(self.study, self.session, name, cipher, mask)
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
        text = stay_statement(self.study.hash, self.session, sharers, vectors)
        keys = self.study.secure_sum.holders
        signed = {name: Symbols.sign(keys[name], text) for name in self.case.colluders}
        for name in self.case.honest:
            if told := self.told(name, "agree"):
                signed[name] = told["signature"]
        return signed

    def knowledge(self):
        known = Knowledge(self.study.secure_sum.threshold)
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


# Everything, for a few holders.


def subsets(names, least=0):
    return [
        chosen
        for size in range(least, len(names) + 1)
        for chosen in itertools.combinations(names, size)
    ]


@dataclass
class Count:
    """What was tried."""

    histories: int = 0
    """Ways in which all holders together can have been brought somewhere, told apart by answers."""
    unmasked: int = 0
    """Those in which a sum came out."""
    violations: list = field(default_factory=list)


@cache
def reached(case, name, memory, round_, texts):
    """All (memory, answer) a holder can be brought to in a round, however often it is asked.

    Every payload and fault is tried in every memory that is reached, until nothing new comes.
    """
    seen = {memory}
    waiting = [memory]
    outcomes = set()
    while waiting:
        before = waiting.pop()
        for text, fault in itertools.product(texts, case.faults):
            question = Question(SESSION, round_, text, fault)
            after, answer = answered(case, name, before, question)
            if answer is not None:
                outcomes.add((after, answer))
            if after not in seen:
                seen.add(after)
                waiting.append(after)
    return sorted(outcomes, key=repr)


def exhaust(case, *, stop=False):
    """Try everything; returns what was counted, and the first violations."""
    count = Count()
    adversary = Adversary(case)
    memories = {}
    for name in case.honest:
        ((memory, answer),) = reached(case, name, Memory(), "keys", ("{}",))
        memories[name] = memory
        adversary.answers[name, "keys"] = answer
    _rounds(case, adversary, memories, ("shares", "masked", "agree", "unmask"), count, stop=stop)
    return count


def _payloads(case, adversary, name, round_, memory):
    """All that the adversary may say to a holder in a round."""
    others = [other for other in case.names if other != name]
    if round_ == "shares":
        for chosen in subsets(others, case.least - 2):
            bad = [other for other in chosen if other in case.colluders]
            for tricks in itertools.product(adversary.tricks(), repeat=len(bad)):
                yield adversary.shares_payload((*chosen, name), dict(zip(bad, tricks, strict=True)))
    elif round_ == "masked":
        for chosen in subsets(others, case.least - 2):
            payload = adversary.masked_payload(name, chosen)
            if payload is not None:
                yield payload
    elif round_ == "agree":
        for chosen in subsets(others, case.least - 2):
            yield {"survivors": adversary.vectors((*chosen, name))}
    else:
        state = json.loads(dict(memory.sessions)[SESSION])
        yield adversary.unmask_payload(state["held"], state["vectors"])


def _rounds(case, adversary, memories, rounds, count, *, stop):
    """Combine what each holder can be brought to, round by round."""
    if stop and count.violations:
        return
    if not rounds:
        _judge(case, adversary, count)
        return
    round_ = rounds[0]
    options = {}
    for name, memory in memories.items():
        payloads = _payloads(case, adversary, name, round_, memory)
        texts = tuple(json.dumps(payload, sort_keys=True) for payload in payloads)
        options[name] = reached(case, name, memory, round_, texts)
    if round_ == "agree" and case.holders > 3:
        options = _viable(case, options)
    if round_ == "unmask":
        choices = [options[name][:1] or [None] for name in memories]
    else:
        choices = [[*options[name], None] for name in memories]
    combinations = itertools.product(*choices)
    if round_ == "shares" and not case.bad:
        combinations = _unlike(case, combinations)
    for chosen in combinations:
        given = {
            (name, round_): outcome[1]
            for name, outcome in zip(memories, chosen, strict=True)
            if outcome is not None
        }
        after = {
            name: outcome[0]
            for name, outcome in zip(memories, chosen, strict=True)
            if outcome is not None
        }
        following = Adversary(case, answers=adversary.answers | given)
        if not after and round_ != "unmask":
            _judge(case, following, count)
        else:
            _rounds(case, following, after, rounds[1:], count, stop=stop)


def _unlike(case, combinations):
    """One of all combinations that differ by holders' names alone, where all are honest."""
    orders = [dict(zip(case.names, order, strict=True)) for order in _orders(case.names)]
    seen = set()
    for chosen in combinations:
        told = [outcome and _sharing(outcome) for outcome in chosen]
        shapes = [
            tuple(
                sorted(
                    (order[name], sorted(order[other] for other in names or ()))
                    for name, names in zip(case.names, told, strict=True)
                )
            )
            for order in orders
        ]
        shape = repr(min(shapes))
        if shape not in seen:
            seen.add(shape)
            yield chosen


def _orders(names):
    return list(itertools.permutations(names))


def _sharing(outcome):
    """Those with whom a holder shared its secrets."""
    return sorted(json.loads(dict(outcome[0].sessions)[SESSION])["keys"])


def _viable(case, options):
    """Leave out statements that too few can sign: nothing is unmasked under them.

    That holders give nothing out on fewer signatures is tried with fewer holders, and by `wander`.
    """
    statements = {}
    for outcomes in options.values():
        for _memory, answer in outcomes:
            text = json.loads(answer)["signature"].partition(" signed ")[2]
            statements[text] = statements.get(text, 0) + 1
    threshold = study_of(case.holders, case.least, case.colluding).secure_sum.threshold
    return {
        name: [
            outcome
            for outcome in outcomes
            if statements[json.loads(outcome[1])["signature"].partition(" signed ")[2]] + case.bad
            >= threshold
        ]
        or outcomes[:1]
        for name, outcomes in options.items()
    }


def _judge(case, adversary, count):
    count.histories += 1
    sums = adversary.knowledge().sums()
    count.unmasked += bool(sums)
    if reason := violation(case, sums):
        count.violations.append((reason, dict(adversary.answers)))


# Random steps, for more holders.


@dataclass(frozen=True)
class Habits:
    """What one random history likes: so that holders are often told things that go together."""

    faults: float
    tricks: float
    surprise: float
    sharers: tuple
    """Whose shares a holder is told of, first, then, and then again."""
    survivors: dict
    """Who is said to have stayed, to each honest holder."""

    @classmethod
    def of(cls, rng, case, **fixed):
        def some():
            return tuple(rng.sample(case.names, rng.randint(case.least, case.holders)))

        likes = {
            "faults": rng.choice((0.0, 0.2, 0.5)),
            "tricks": rng.choice((0.0, 0.5, 1.0)),
            "surprise": rng.choice((0.0, 0.02, 0.2)),
            "sharers": (case.names, some(), some()),
            "survivors": cls.stories(rng, case, some),
        }
        return cls(**(likes | fixed))

    @staticmethod
    def stories(rng, case, some):
        """Mostly one story for all; in some histories others for some or all."""
        common = some()
        other = rng.choice((0.0, 0.0, 0.3, 1.0))
        return {name: some() if rng.random() < other else common for name in case.honest}


def wander(case, seed, steps, **fixed):
    """One random history of two sessions; returns a violation, or None, and how many sums came."""
    rng = random.Random(seed)  # noqa: S311 - a test's choices
    habits = Habits.of(rng, case, **fixed)
    adversaries = [Adversary(case, session) for session in (SESSION, "bb" * 16)]
    memories = dict.fromkeys(case.honest, Memory())
    asked = []
    for _ in range(steps):
        adversary = rng.choices(adversaries, [1, habits.surprise])[0]
        name, round_ = _whom(rng, adversary, habits)
        chosen = habits.sharers[asked.count((name, round_)) % len(habits.sharers)]
        asked.append((name, round_))
        if rng.random() < habits.surprise:
            chosen = rng.sample(case.names, rng.randint(0, case.holders))
        if round_ == "unmask":
            payload = _random_signatures(rng, adversary, memories[name], habits)
        else:
            payload = _random_payload(rng, adversary, asked[-1], habits, set(chosen))
        fault = rng.choice(case.faults) if rng.random() < habits.faults else None
        text = json.dumps(payload, sort_keys=True)
        question = Question(adversary.session, round_, text, fault)
        memories[name], answer = answered.__wrapped__(case, name, memories[name], question)
        if answer is not None:
            known = adversary.answers.setdefault((name, round_), answer)
            if known != answer:
                return f"{name} gave two answers to round {round_!r}", 0
    unmasked = [adversary.knowledge().sums() for adversary in adversaries]
    reasons = [violation(case, sums) for sums in unmasked]
    return next((reason for reason in reasons if reason), None), sum(map(bool, unmasked))


def _whom(rng, adversary, habits):
    """A holder and a round to ask it for: mostly who is furthest behind; sometimes any."""
    honest = adversary.case.honest
    if rng.random() < habits.surprise:
        return rng.choice(honest), rng.choice(ROUNDS)
    answers = adversary.answers
    for round_ in ROUNDS:
        late = [name for name in honest if (name, round_) not in answers]
        if round_ in {"agree", "unmask"}:
            late = [name for name in late if name in habits.survivors[name]]
        if late and rng.random() < 0.97:
            return rng.choice(late), round_
    return rng.choice(honest), rng.choice(ROUNDS)


def _random_payload(rng, adversary, asked, habits, chosen):
    """Something that could be sent: mostly well formed, and of a set that this history likes."""
    case = adversary.case
    name, round_ = asked
    others = sorted(chosen - {name})
    if round_ == "keys":
        return {}
    if round_ == "shares":
        tricks = adversary.tricks() if rng.random() < habits.tricks else ["fresh"]
        whom = case.names if rng.random() < 0.8 else [*others, name]
        return adversary.shares_payload(whom, {c: rng.choice(tricks) for c in case.colluders})
    if round_ == "masked":
        sealed = {other: adversary.masked_payload(name, [other]) for other in others}
        return {other: told[other] for other, told in sealed.items() if told}
    stayed = chosen if rng.random() < habits.surprise else set(habits.survivors[name])
    return {"survivors": adversary.vectors(sorted(stayed | {name}))}


def _random_signatures(rng, adversary, memory, habits):
    """Most of the signatures there are, and colluders' on what the holder itself signed."""
    state = json.loads(dict(memory.sessions).get(adversary.session, "{}"))
    sharers = state.get("held") or habits.sharers[0]
    vectors = state.get("vectors") or adversary.vectors(adversary.case.names)
    signed = adversary.unmask_payload(sharers, vectors)
    return {who: text for who, text in signed.items() if rng.random() >= habits.surprise}


# What is explored; `python tests/federation/explorer.py` prints the figures of docs/privacy.md.

ALLOWED = [
    Case(holders, least, colluding, bad)
    for holders in (2, 3, 4)
    for least in range(2, holders + 1)
    for colluding in range(least)
    for bad in range(colluding + 1)
    if 2 * least > holders + colluding
]
"""Every sum of up to four holders that a study may have, with every number of colluders."""
LARGE = [case for case in ALLOWED if (case.holders, case.least) == (4, 3)]
SMALL = [case for case in ALLOWED if case not in LARGE]
RANDOM = [
    Case(4, 3, 1, 1),
    Case(5, 3, 0, 0),
    Case(5, 4, 1, 1),
    Case(5, 4, 2, 2),
    Case(6, 4, 0, 0),
    Case(6, 4, 1, 1),
    Case(6, 5, 2, 2),
]


def label(case):
    return f"J={case.holders} m={case.least} t={case.colluding} c={case.bad}"


def main(histories=3000):
    """Explore everything, and say what was found."""
    totals = [0, 0, 0]
    for case in SMALL + LARGE:
        before = answered.cache_info().misses
        count = exhaust(case)
        questions = answered.cache_info().misses - before
        totals = [totals[0] + count.histories, totals[1] + questions, totals[2] + count.unmasked]
        say(
            f"{label(case)}: {count.histories} histories, {questions} different questions, "
            f"{count.unmasked} sums, {len(count.violations)} violations"
        )
    say(f"in all: {totals[0]} histories, {totals[1]} questions, {totals[2]} sums")
    for case in RANDOM:
        walks = [wander(case, seed, 15 * case.holders) for seed in range(histories)]
        broken = sum(reason is not None for reason, _ in walks)
        sums = sum(unmasked for _, unmasked in walks)
        say(f"{label(case)}: {histories} random histories, {sums} sums, {broken} violations")


def say(line):
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
