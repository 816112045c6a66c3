"""Random histories of a secure sum under a malicious server: any order, and more holders."""

import json
import random
from dataclasses import dataclass

import numpy as np
from adversary import (
    SESSION,
    Adversary,
    Memory,
    Question,
    answered,
    study_in,
    violation,
    violation_in_visits,
)

from tacit.federation.wire import ROUNDS
from tacit.release.question import Question as VisitQuestion


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
            "faults": rng.choice((0.0, 0.4, 0.5)),
            "tricks": rng.choice((0.0, 0.5, 1.0)),
            "surprise": rng.choice((0.0, 0.0, 0.02, 0.2)),
            "sharers": (case.names, some(), some()),
            "survivors": cls.stories(rng, case, some),
        }
        return cls(**(likes | fixed))

    @staticmethod
    def stories(rng, case, some):
        """Mostly one story for all; in some histories others for some or all."""
        common = some()
        other = rng.choice((0.0, 0.0, 0.0, 0.5))
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


def retried(case, seed, steps):
    """An honest server that loses holders and begins anew, then turns malicious in all sessions.

    Up to two holders are lost in each round, by an answer that does not come or a fault, and come
    back or not. A session that fewer than `least` came through is left open, as the server of
    federation/secure_sum/server.py leaves it, and another is begun. Then whatever is left open is
    asked anything. Returns a violation, or None, how many sums came, and all memories.
    """
    rng = random.Random(seed)  # noqa: S311 - a test's choices
    memories = dict.fromkeys(case.honest, Memory())
    adversaries = []
    for session in ("aa" * 16, "bb" * 16, "cc" * 16):
        adversaries.append(Adversary(case, session))
        if _honestly(rng, adversaries[-1], memories):
            break
    habits = Habits.of(rng, case, surprise=0.2)
    for _ in range(steps):
        adversary = rng.choice(adversaries)
        name, round_ = _whom(rng, adversary, habits)
        chosen = set(rng.sample(case.names, rng.randint(0, case.holders)))
        if round_ == "unmask":
            payload = _random_signatures(rng, adversary, memories[name], habits)
        else:
            payload = _random_payload(rng, adversary, (name, round_), habits, chosen)
        _asked(adversary, memories, name, (round_, payload, rng.choice(case.faults)))
    unmasked = [adversary.knowledge().sums() for adversary in adversaries]
    reasons = [violation(case, sums) for sums in unmasked]
    return next((reason for reason in reasons if reason), None), sum(map(bool, unmasked)), memories


def later(case, visit, bound, kind=None):
    """A later visit after the first one's session, with a question that its bound tells apart."""
    study = study_in(case)
    question = VisitQuestion(
        study_hash=study.hash,
        visit=visit,
        map=np.eye(study.d).tolist(),
        offset=[0.0] * study.d,
        radius=1.0,
        bound=bound,
    )
    return (kind or case.sitting)(study, question, SESSION)


def visited(case, seed, steps):
    """All visits of a study, by a server that then does what it likes with their sessions.

    Each visit has one session or two, in which some holders may be told another question. Then any
    session is asked anything, as any visit with any question: sessions are used again for other
    visits. Returns a violation, or None, and of how many later visits there were sums.
    """
    rng = random.Random(seed)  # noqa: S311 - a test's choices
    memories = dict.fromkeys(case.honest, Memory())
    adversaries = [Adversary(case, SESSION, sitting=case.sitting(study_in(case)))]
    _honestly(rng, adversaries[0], memories, most_lost=0)
    sittings = [adversaries[0].sitting]
    sessions = iter(("bb" * 16, "cc" * 16, "dd" * 16, "ee" * 16))
    for visit in range(2, case.visits + 1):
        meant = later(case, visit, 1.0)
        other = later(case, visit, 2.0)
        sittings += [meant, other]
        share = rng.choice((0.0, 0.0, 0.3))
        for _ in range(rng.choice((1, 1, 2))):
            told = {name: other if rng.random() < share else meant for name in case.honest}
            adversaries.append(Adversary(case, next(sessions), sitting=meant))
            _honestly(rng, adversaries[-1], memories, told, most_lost=1)
    habits = Habits.of(rng, case, surprise=0.2)
    for _ in range(steps):
        adversary = rng.choice(adversaries)
        if rng.random() < 0.5:
            adversary.sitting = rng.choice(sittings)
        name, round_ = _whom(rng, adversary, habits)
        chosen = set(rng.sample(case.names, rng.randint(0, case.holders)))
        if round_ == "unmask":
            payload = _random_signatures(rng, adversary, memories[name], habits)
        else:
            payload = _random_payload(rng, adversary, (name, round_), habits, chosen)
        _asked(adversary, memories, name, (round_, payload, rng.choice(case.faults)))
    return violation_in_visits(case, adversaries)


def _honestly(rng, adversary, memories, told=None, most_lost=2):
    """One session as the server means it, or with what each holder is `told` that is summed.

    Gives whether a sum came out.
    """
    case = adversary.case
    present = set(case.honest)
    for round_ in ROUNDS:
        came = set(case.colluders)
        lost = set(rng.sample(case.honest, min(rng.randint(0, most_lost), len(case.honest))))
        for name in sorted(present):
            fault = rng.choice(case.faults) if name in lost else None
            adversary.sitting = told[name] if told else adversary.sitting
            payload = _meant(adversary, round_, name, sorted(present | set(case.colluders)))
            answers = [_asked(adversary, memories, name, (round_, payload, fault))]
            if name in lost and rng.random() < 0.5:  # it comes back, and is asked the same again
                answers.append(_asked(adversary, memories, name, (round_, payload, None)))
            if answers[-1] is not None:
                came.add(name)
        present = came & set(case.honest)
        if len(came) < case.least:
            return False
    return True


def _meant(adversary, round_, name, there):
    """What an honest server tells a holder when these came through the round before."""
    if round_ == "keys":
        return {}
    if round_ == "shares":
        return adversary.shares_payload(there, {})
    if round_ == "masked":
        return adversary.masked_payload(name, [other for other in there if other != name]) or {}
    if round_ == "agree":
        return {"survivors": adversary.vectors(there)}
    return {
        who: adversary.told(who, "agree")["signature"]
        for who in there
        if adversary.told(who, "agree")
    }


def _asked(adversary, memories, name, question):
    """A holder's answer to one question, kept by the adversary."""
    round_, payload, fault = question
    text = json.dumps(payload, sort_keys=True)
    asked = Question(adversary.session, round_, text, fault, adversary.sitting)
    memories[name], answer = answered.__wrapped__(adversary.case, name, memories[name], asked)
    if answer is not None:
        adversary.answers.setdefault((name, round_), answer)
    return answer
