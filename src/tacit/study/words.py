"""A study in words, for screens and reports alike.

What it asks, what it promises, and what an attacker could learn.
"""

from dataclasses import dataclass

from scipy.special import ndtr

from tacit.privacy.gaussian import EPSILON_RANGE, part_of
from tacit.privacy.visits import shares_of
from tacit.study import Study
from tacit.study.visits import (
    LEAST_HIDDEN,
    MOST_HIDDEN,
    default_visits,
    has_places,
    hidden,
    is_yes_or_no,
)


@dataclass(frozen=True)
class Fact:
    """One thing that a study says: what it is about, and the sentence."""

    name: str
    sentence: str


def facts(study: Study) -> tuple[Fact, ...]:
    """Everything that a study says, in the order in which a person asks.

    The one list that the command line, the desk and the dossier show.
    """
    sentences = {
        "columns": f"d = {study.d}: {', '.join(study.columns)}",
        "rows": shrinking(study),
        "responses": responses(study) if study.responses else None,
        "person": person(study),
        "weight": None if study.weight is None else weighting(study),
        "average": averaging(study) if study.release.average > 1 else None,
        "missing": missing(study),
        "count": count(study),
        "visits": visits(study),
        "sum": secure_sum(study) if study.secure_sum is not None else None,
        "holders": holders(study),
        "guarantee": guarantee(study),
    }
    return tuple(Fact(name, sentence) for name, sentence in sentences.items() if sentence)


def responses(study: Study) -> str:
    """What one release serves, and what that costs against a study for each response."""
    number = study.response_count
    sentence = (
        f"one release serves {', '.join(study.responses)}: X'X, and X'y and y'y of each; no "
        "product of two responses is published, so that none can be a term of another's model"
    )
    share = part_of(study.epsilon, study.delta, 1 / number)
    if share < EPSILON_RANGE[0]:
        return sentence
    joint = study.mechanism().noise
    release = study.release.model_copy(update={"response_weight": None})
    single = {"responses": (), "release": release}
    kept = tuple(each for each in study.features if each.name not in study.responses)
    alone = study.model_copy(update=single | {"features": kept}).mechanism(share).noise
    return (
        f"{sentence}. Noise against {number} studies of one visit that share the budget: "
        f"{joint.xtx_diagonal / alone.xtx_diagonal:.3g} times on X'X, "
        f"{joint.xty / alone.xty:.3g} times on each X'y"
    )


def holders(study: Study) -> str | None:
    """Who is expected to publish, where the study says so."""
    if not study.holders:
        return None
    return f"{len(study.holders)} are expected: {', '.join(study.holders)}"


def inputs(study: Study) -> tuple[tuple[str, str, str], ...]:
    """Every column that a table must have: its name, its kind, and its public values."""
    lines = [(study.response.name, "response", _interval(study.response.range))]
    for feature in study.features:
        if feature.range is not None:
            kind = "response" if feature.name in study.responses else "number"
            lines.append((feature.name, kind, _interval(feature.range)))
        else:
            *most, last = feature.all_levels
            lines.append((feature.name, "one of", f"{', '.join(most)} or {last}"))
    if study.person is not None:
        lines.append((study.person, "person", "whatever tells whose row it is"))
    return tuple(lines)


def _interval(bounds: tuple[float, float]) -> str:
    return f"{bounds[0]:,.10g} to {bounds[1]:,.10g}"


def guarantee(study: Study) -> str:
    """The promise, and the two numbers that noise is made from."""
    mechanism = study.mechanism()
    promise = (
        f"epsilon = {study.epsilon:g}, delta = {study.delta:g}, for {neighbours(study)} "
        f"(mu = {mechanism.mu:.4g})"
    )
    if study.visit_count > 1:
        return f"{promise}, all visits together"
    return (
        f"{promise}; sensitivity {mechanism.sensitivity:.4g}, "
        f"noise multiplier {mechanism.multiplier:.4g}"
    )


def visits(study: Study) -> str | None:
    """What is asked of the same rows, one question after the other, how that is paid, and why.

    Nothing of one visit where no rows are planned.
    """
    if not study.planned_rows:
        return None
    if study.visit_count == 1:
        return f"1: the statistics in the study's own columns; {_why_visits(study)}"
    shares = shares_of(study.visit_count)
    asked = ["where values lie"] if has_places(study) else []
    asked += ["a first answer", *["a correction of it"] * (len(shares) - len(asked) - 1)]
    parts = [f"{what} ({share:.0%})" for what, share in zip(asked, shares, strict=True)]
    alone = "each a message of its own"
    if study.secure_sum is not None:
        alone = "each a secure sum of its own"
    elif len(study.planned_rows) == 1:
        alone = "all in one message"
    return (
        f"{len(shares)} to the same rows, {alone}, which together spend the budget once: "
        f"{', '.join(parts)}; {_why_visits(study)}"
    )


def _why_visits(study: Study) -> str:
    """Where the number of visits comes from."""
    suited = default_visits(study)
    share = hidden(study)
    if study.visit_count != suited:
        return f"the study says so, and {suited} would suit its planned rows, epsilon and columns"
    rule = f"of what a direction of the planned rows holds, noise hides {share:.2g}"
    if suited > 1:
        return (
            f"{rule}, at most {MOST_HIDDEN:g}, so that several visits tell more than one "
            "(for a stream state visits = 1)"
        )
    if share > MOST_HIDDEN:
        return f"{rule}, above {MOST_HIDDEN:g}, and up to there more visits were tried"
    if share < LEAST_HIDDEN:
        return f"{rule}, below {LEAST_HIDDEN:g}, so that one visit tells as much"
    if is_yes_or_no(study):
        return (
            "answers of 0 and 1 may be rare, which one visit tells better; where neither is below "
            "a fifth of rows, state visits = 10 for one holder, 3 for several"
        )
    return "its release, weights or responses exclude more"


def secure_sum(study: Study) -> str:
    """What a secure sum asks of its holders, and what the sum's noise will be."""
    agreed = study.secure_sum
    if agreed is None:
        return ""
    most = study.summed(len(agreed.holders)).noise.xtx_diagonal
    return (
        f"one secure sum of {len(agreed.holders)} holders instead of a release of each; nobody "
        f"sees a part of it: {', '.join(agreed.holders)}; at least {agreed.least} must stay to "
        f"the end, of whom at most {agreed.colluding} may collude with the server; each adds a "
        "share of noise: honest ones together make up the noise below, and all of them make "
        f"{most:.4g} on the diagonal of X'X"
    )


def best_guess(mu: float) -> float:
    """How often an attacker who knows all other rows tells two candidates for one apart: Φ(μ/2)."""
    return float(ndtr(mu / 2))


def unit(study: Study) -> str:
    """Whom the guarantee protects."""
    if study.person is not None:
        return (
            "the unit that is protected is a person: all rows of the table with the same "
            f"{study.person!r} together, however many they are"
        )
    return (
        "the unit that is protected is one row of the table: a person where each person has one "
        f"row, and the agreement of study {study.name!r} takes that for granted"
    )


def counted(study: Study) -> str:
    """What n is the number of."""
    return "rows" if study.person is None else "persons"


def person(study: Study) -> str:
    """What a person is, and what its rows count for."""
    if study.person is None:
        return (
            "a row is taken to be a person: where one has several, each row is protected by itself "
            "alone; name the column that says whose a row is (person) to protect them together"
        )
    unknown = {
        "refuse": "a table with a row that is nobody's is refused, which may be seen by others",
        "alone": "a row that is nobody's is a person of its own",
    }[study.missing_person]
    return (
        f"all rows with the same {study.person!r} are one person, and count together as one row: "
        f"each is divided by the root of their number; {unknown}"
    )


def weighting(study: Study) -> str:
    """What survey weights do."""
    if study.weight is None:
        return ""
    return (
        f"a row counts by its {study.weight.column!r}: one of {study.weight.most:g} or more for a "
        "whole row, any other for so much less"
    )


def neighbours(study: Study) -> str:
    """What the guarantee makes hard to notice."""
    who = "one row" if study.person is None else "all rows of a person together"
    other = "any other" if study.person is None else "those of any other, however many"
    return {
        "replace-one": f"exchanging {who} for {other}",
        "add-remove": f"adding or removing {who}",
    }[study.relation]


def count(study: Study) -> str:
    """What is told of the number of rows, or of persons."""
    n = "n" if study.person is None else "n, the number of persons,"
    one = "row" if study.person is None else "person"
    return {
        "exact": f"{n} is published exactly: exchanging a {one} does not change it",
        "withheld": f"{n} is not published",
        "noisy": f"{n} is published with noise of sd {study.mechanism().noise.count or 0:.4g}",
        "public": f"{n} is declared public and published exactly, outside the guarantee",
    }[study.count]


def shrinking(study: Study) -> str:
    """What happens to long rows."""
    if study.visit_count > 1:
        return (
            "each question says, from what was published before, how long a row and how large a "
            "residual may be: a longer row is shrunk to that, a larger residual cut"
        )
    if study.row_radius >= study.longest_row:
        return "no row is shrunk"
    return (
        f"one longer than {study.row_radius:.4g} (none exceeds {study.longest_row:.4g}) "
        "is shrunk to that, response included"
    )


def noise_of_averaging(study: Study) -> float:
    """Noise on X'X over that of the same study without averaging."""
    single = study.model_copy(update={"release": study.release.model_copy(update={"average": 1})})
    return study.mechanism().noise.xtx_diagonal / single.mechanism().noise.xtx_diagonal


def averaging(study: Study) -> str:
    """What averaging does, costs, and is good for."""
    k = study.release.average
    factor = noise_of_averaging(study)
    return (
        f"{k} rows, dealt at random, become one: noise on X'X is {factor:.3g} times that without "
        f"averaging, and what rows say of slopes is {k} times less: against it, noise is "
        f"{factor * k:.3g} times larger (mean response: {factor:.3g}). It is worth it only for a "
        "method that needs nearly normal rows, where noise is negligible all the same"
    )


def missing(study: Study) -> str:
    """What happens to missing values when a holder publishes."""
    return {
        "drop": (
            "a row with a missing value counts as a row of zeros: "
            "it adds nothing, and n does not tell"
        ),
        "impute": (
            "a missing feature becomes the middle of its range, or the reference (other) level"
        ),
        "refuse": (
            "a table with missing values is refused; that it was refused may be seen by others"
        ),
    }[study.missing]


def telling(study: Study) -> list[str]:
    """Everything for which this study could be refused because of what rows say; mostly nothing.

    The one list of such refusals: docs/privacy.md, "Rows are made to obey", names the same.
    """
    reasons = [
        f"a row whose {feature.name!r} is none of its levels, as there is no `other`"
        for feature in study.features
        if feature.levels is not None and feature.other is None
    ]
    if study.missing == "refuse":
        reasons.append("a missing value")
    if study.person is not None and study.missing_person == "refuse":
        reasons.append(f"a row without its {study.person!r}")
    return reasons


def attack(mu: float, study: Study) -> tuple[str, ...]:
    """What an attacker can learn from a release of that μ, sentence by sentence."""
    known = "every row but one, and that this one is"
    if study.person is not None:
        known = "all rows of every person but one, and that those of this one are"
    once = 100 * best_guess(mu)
    twice = 100 * best_guess(mu * 2**0.5)
    return (
        f"suppose they know {known} either A or B.",
        (
            "Before the release they guess right 50 times in 100; with it, whatever they do, "
            f"at most {once:.1f} times."
        ),
        f"Two such releases from the same persons make it {twice:.1f}; the ledger adds them up.",
        "It does not hide what is true of people in general: that is what the study is for.",
    )
