"""Visits of a study: how many there are, what each asks for, and the noise of each."""

import math
from typing import TYPE_CHECKING

from tacit.errors import StudyError
from tacit.privacy.gaussian import mu_of
from tacit.privacy.mechanism import Form, Mechanism, summed
from tacit.privacy.places import PlacesMechanism, calibrate_places, places_entries
from tacit.privacy.visits import LEAST_WITH_PLACES, calibrate_visit, shares_of, visit_form
from tacit.study.form import MOST_ENTRY

if TYPE_CHECKING:
    from tacit.study.study import Study

MOST_VISITS = 12
"""Most visits: more would spend the budget on ever smaller steps."""
MOST_VISITED = 100
"""Most encoded columns of a study of several visits: each message holds all its holder's answers,
with a map of d² numbers each."""
MOST_HIDDEN = 1.5
"""Noise over what planned rows hold, along one of d directions, up to which visits are several."""
LEAST_HIDDEN = 1e-5
"""The same, below which one visit tells as much: what bounds cut would outweigh what they save."""
DEFAULT_ALONE = 10
DEFAULT_TOGETHER = 4
"""Visits of a single holder or of a secure sum, and of several holders that exchange files."""
Budget = tuple[float, float]


def default_visits(study: "Study") -> int:
    """How many visits a study has that states none: what suits rows, ε, d, holders and relation.

    One where no rows are planned, where they are few or very many, where further visits are
    excluded, and where the response is 0 or 1: where such answers are rare, one visit tells more
    of log-odds (docs/families.md). On public tables (`benchmarks/league.py`) ten visits win up to
    `MOST_HIDDEN`, as far as was tried.
    """
    if not study.planned_rows or _excludes_visits(study) or is_yes_or_no(study):
        return 1
    if not LEAST_HIDDEN <= hidden(study) <= MOST_HIDDEN:
        return 1
    apart = len(study.planned_rows) > 1 and study.secure_sum is None
    return DEFAULT_TOGETHER if apart else DEFAULT_ALONE


def is_yes_or_no(study: "Study") -> bool:
    """Whether the response has the range of 0/1 answers, of which families speak."""
    return study.response.function is None and study.response.range == (0.0, 1.0)


def hidden(study: "Study") -> float:
    """Noise over what planned rows hold, along one of d directions."""
    noise = study.d / mu_of(study.epsilon, study.delta)
    if study.secure_sum is None:
        return noise / math.hypot(*study.planned_rows)  # J holders' noise adds up in squares
    shares = len(study.secure_sum.holders) / study.secure_sum.covering
    return noise * math.sqrt(shares) / sum(study.planned_rows)


def _excludes_visits(study: "Study") -> bool:
    """Whether a rule of the study's excludes further visits."""
    release = study.release
    return (
        release.average > 1
        or release.noise != "frobenius"
        or release.smallest_eigenvalue
        or not study.response_square
        or study.weight is not None
        or bool(study.responses)
        or study.stage_one is not None
        or study.count == "withheld"
        or (study.secure_sum is not None and len(study.planned_rows) == 1)
        or study.d > MOST_VISITED
        or study.widest > MOST_ENTRY
    )


def has_places(study: "Study") -> bool:
    """Whether the first visit asks where values lie."""
    return study.visit_count >= LEAST_WITH_PLACES


def placed(study: "Study") -> tuple[int, ...]:
    """Encoded columns whose places are asked for: plain numbers within [−1, 1].

    A column with a typical interval has its place already.
    """
    places = []
    row = int(study.intercept)
    for product in study.products:
        first, *others = product.parts
        plain = not others and first.is_plain and first.feature.range is not None
        if plain and max(map(abs, first.limits)) <= 1:
            places.append(row)
        row += product.width
    return tuple(places)


def statistics_form(study: "Study") -> Form:
    """What a visit publishes, once rows are mapped."""
    return visit_form(
        study.d,
        study.relation,
        noisy_count=study.count == "noisy",
        shape=study.release.noise,
    )


def all_entries(study: "Study") -> int:
    """How many numbers all visits publish together."""
    statistics = study.visit_count - has_places(study)
    places = places_entries(len(placed(study)) + 1) if has_places(study) else 0
    return statistics * statistics_form(study).layout.entries + places


def visit_mechanism(study: "Study", number: int, budget: Budget) -> Mechanism:
    """Noise of the statistics of a visit, counted from 1, at the budget (ε, δ) of all visits."""
    share = shares_of(study.visit_count)[number - 1]
    return calibrate_visit(statistics_form(study), share, all_entries(study), *budget)


def places_mechanism(study: "Study", budget: Budget) -> PlacesMechanism:
    """Noise of the first visit where it asks for places."""
    if not has_places(study):
        raise StudyError("the study asks for no places: it has fewer than three visits")
    share = shares_of(study.visit_count)[0]
    columns = len(placed(study)) + 1
    return calibrate_places(columns, study.relation, share, all_entries(study), budget)


def summed_visit(study: "Study", number: int, holders: int) -> Mechanism:
    """Noise of so many holders' shares of a visit's statistics in a secure sum."""
    whole = visit_mechanism(study, number, study.budget())
    return summed(whole, holders, _covering(study))


def summed_places(study: "Study", holders: int) -> PlacesMechanism:
    """Noise of so many holders' shares of places in a secure sum."""
    return places_mechanism(study, study.budget()).summed(holders, _covering(study))


def _covering(study: "Study") -> int:
    """How many honest shares make up a visit's noise."""
    if study.secure_sum is None:
        raise StudyError("the study has no secure_sum: each holder publishes a release of its own")
    return study.secure_sum.covering
