"""First chapter: what is promised, to whom, in which figures, and what was spent so far."""

from tacit.holder.dossier.blocks import Block, Chapter, Grid, Paragraph, Points, Section
from tacit.holder.dossier.subject import Subject
from tacit.page.numbers import moment, percent, power
from tacit.privacy.gaussian import epsilon_of
from tacit.study import words

NOT_COVERED = (
    "What is true of people in general: a study is made to learn that.",
    (
        "Public inputs that are not public: a range, level or bound chosen after looking at rows "
        "tells of them, and nothing can see that from outside."
    ),
    "Whether, when and how fast the holder publishes.",
    (
        "The same person at another holder: each protects its own rows, and together the two "
        "guarantees compose as two releases do."
    ),
    (
        "Anything else that is published about the same persons, by other means than this ledger: "
        "it does not add up what it does not know."
    ),
    "The machine: who can read the holder's disk, memory or random generator sees everything.",
)
"""What the guarantee does not speak of, whatever the study."""


def guarantee(subject: Subject) -> Chapter:
    """The promise, its figures, its unit, what was spent, and where it ends."""
    return Chapter(
        "The guarantee",
        (
            Section("The promise", _promise(subject)),
            Section("Privacy parameters", _parameters(subject)),
            Section("Unit of privacy", _unit(subject)),
            Section("Composition so far", _composition(subject)),
            Section("What the guarantee does not cover", (Points(NOT_COVERED),)),
        ),
    )


def _promise(subject: Subject) -> tuple[Block, ...]:
    study = subject.study
    return (
        Paragraph(
            f"What leaves the holder differs little, in the sense of differential privacy, by "
            f"{words.neighbours(study)}. Whoever reads it, and whatever else they know, can "
            "hardly tell the two apart."
        ),
        Paragraph(
            "In words: "
            + " ".join(words.attack(study.mechanism().mu, study))
            + " It cannot be undone by later processing: whatever is computed from a release has "
            "the same guarantee."
        ),
    )


def _parameters(subject: Subject) -> tuple[Block, ...]:
    study = subject.study
    lines = [_line("one release of this study", study.epsilon, study.delta, study.mechanism().mu)]
    account = subject.account
    if account is not None and account.charges:
        spent = ("all charges to the data set so far", account.epsilon_spent, account.delta)
        lines.append(_line(*spent, account.spent))
    if account is not None:
        limit = ("the most that may ever be spent on it", account.epsilon, account.delta)
        lines.append(_line(*limit, account.limit))
    return (
        Paragraph(
            "The variant is (ε, δ)-differential privacy. Noise is Gaussian, so the guarantee is "
            "the exact curve of a Gaussian mechanism with parameter μ, and (ε, δ) is one point of "
            "it: with μ every other point can be worked out. δ bounds how often the bound ε may "
            "fail; it should lie well below one over the number of persons."
        ),
        Grid(
            "What an attacker can do at most, who must tell two candidates for one unit apart",
            ("what", "ε", "δ", "μ", "guesses right at most"),
            tuple(lines),
        ),
        Paragraph(f"The same budget at other δ: {_curve(study.mechanism().mu)}."),
    )


def _line(name: str, epsilon: float, delta: float, mu: float) -> tuple[str, ...]:
    return (
        name,
        f"{epsilon:.4g}",
        power(delta),
        f"{mu:.4g}",
        f"{percent(words.best_guess(mu))} of the time",
    )


def _curve(mu: float) -> str:
    return ", ".join(f"ε = {epsilon_of(mu, delta):.3g} at {power(delta)}" for delta in CURVE)


CURVE = (1e-5, 1e-7, 1e-9)
"""Values of δ at which the guarantee is stated besides the study's own."""


def _unit(subject: Subject) -> tuple[Block, ...]:
    bounded = {
        "replace-one": "bounded: the number of units is the same in both tables",
        "add-remove": "unbounded: one table has one unit more",
    }[subject.study.relation]
    return (
        Paragraph(f"{_capital(words.unit(subject.study))}."),
        Paragraph(
            f"Neighbouring tables differ by {words.neighbours(subject.study)} "
            f"({subject.study.relation}; {bounded}). Of their number: "
            f"{words.count(subject.study)}."
        ),
    )


def _composition(subject: Subject) -> tuple[Block, ...]:
    account = subject.account
    if account is None:
        return (
            Paragraph(
                f"The ledger knows no charge to data set “{subject.dataset}” yet. The first one "
                "sets its limit, unless a limit was set before."
            ),
        )
    state = (
        f"Data set “{account.dataset}” has spent ε = {account.epsilon_spent:.4g} of "
        f"{account.epsilon:g} at δ = {power(account.delta)}; one more charge of at most "
        f"ε = {account.epsilon_left:.4g} fits. The squares of μ add up, not the ε: so what was "
        "spent and what is left make more than the limit when they are added, and are right."
    )
    lines = tuple(
        (
            str(charge.id),
            moment(charge.time),
            charge.study,
            charge.holder,
            f"{charge.epsilon:.4g}",
            power(charge.delta),
            f"{charge.mu:.4g}",
            _state(charge.release is not None, charge.batches),
        )
        for charge in account.charges
    )
    heads = ("charge", "time", "study", "holder", "ε", "δ", "μ", "what left")
    table = (Grid("Every charge to the data set", heads, lines),) if lines else ()
    chain = Paragraph(
        "A charge is on disk before noise is drawn, and each carries a hash of all before it; "
        "the release that it paid for states that hash."
    )
    return (Paragraph(state), *table, chain)


def _state(stored: bool, batches: int | None) -> str:  # noqa: FBT001
    if batches is not None:
        return f"a stream of {batches} batches"
    return "one release" if stored else "nothing: it was interrupted"


def _capital(sentence: str) -> str:
    return sentence[:1].upper() + sentence[1:]
