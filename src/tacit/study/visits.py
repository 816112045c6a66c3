"""Visits of a study: how many there are, what each asks for, and the noise of each."""

import math
from typing import TYPE_CHECKING

from tacit.errors import StudyError
from tacit.privacy.gaussian import mu_of
from tacit.privacy.mechanism import Form, Mechanism
from tacit.privacy.places import PlacesMechanism, calibrate_places, places_entries
from tacit.privacy.visits import LEAST_WITH_PLACES, calibrate_visit, shares_of, visit_form

if TYPE_CHECKING:
    from tacit.study.study import Study

MOST_VISITS = 12
"""Most visits: more would spend the budget on ever smaller steps."""
MOST_VISITED = 100
"""Most encoded columns of a study of several visits: each message holds all its holder's answers,
with a map of d² numbers each."""
MOST_HIDDEN = 0.3
"""Noise over what planned rows hold, along one of d directions, up to which visits are advised."""
ADVISED_ALONE = 10
ADVISED_TOGETHER = 3
"""Visits that are advised to a single holder, and to several that exchange files."""
Budget = tuple[float, float]


def advised(study: "Study") -> int:
    """How many visits suit the planned rows, ε, d, holders and relation; 1 where they are few.

    On public tables (`benchmarks/visits.py`) visits win up to `MOST_HIDDEN` and beyond.
    """
    plain = study.release.average == 1 and study.release.noise == "frobenius"
    plain = plain and study.weight is None and not study.responses
    fits = plain and study.secure_sum is None and study.scales_share is None
    if not (fits and study.planned_rows and study.d <= MOST_VISITED and study.count != "withheld"):
        return 1
    rows = math.hypot(*study.planned_rows)  # J holders' noise adds up in squares
    if study.d / rows / mu_of(study.epsilon, study.delta) > MOST_HIDDEN:
        return 1
    return ADVISED_ALONE if len(study.planned_rows) == 1 else ADVISED_TOGETHER


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
