"""An explorer of secure sums: it plays a malicious server with colluding holders, and counts noise.

It drives the real state machine of a holder (adversary.py). Whatever the adversary was given is put
together; every combination of masked vectors from which it can strip all masks must be one sum,
with equal weights, of at least `least − colluding` honest shares of noise.

`exhaust` tries everything for a few holders: any subset of holders told to any honest one in rounds
2, 3 and 4, colluders' keys fresh, of low order or another's, each round asked again and again with
any other question, the table away or the power cut at any write. What a holder does depends on its
own past alone, so for each holder all that it can be brought to are found once, and combined.
`wander` takes random steps in any order, in two sessions at once, for more holders.
"""

import itertools
import json
import sys
from dataclasses import dataclass, field, replace
from functools import cache

from adversary import SESSION, Adversary, Case, Memory, Question, answered, study_of, violation
from old_sum import OldHolder
from wander import wander


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


def main(histories=1000):
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
    say_random(RANDOM, histories)
    say("the same of the old holder, in which there is something to find:")
    say_random([replace(case, kind=OldHolder) for case in RANDOM], histories)


def say_random(cases, histories):
    for case in cases:
        walks = [wander(case, seed, 15 * case.holders) for seed in range(histories)]
        broken = sum(reason is not None for reason, _ in walks)
        sums = sum(unmasked for _, unmasked in walks)
        say(f"{label(case)}: {histories} random histories, {sums} sums, {broken} violations")


def say(line):
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
