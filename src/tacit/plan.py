"""Plan: how wide intervals will be, from public quantities and a guess, before anybody publishes.

Statistics of imagined rows (`imagined.py`) go through the real encoder and the default method, with
the noise that each ε would bring and without any. It is a forecast: features that fill less of
their ranges, or are nearly collinear, give wider intervals. Where nothing is said of how much they
fill, a band is given. Of several visits the whole talk is imagined: every question is made of the
answers before it, which hold expected sums and the noise.

Where noise hides most of the rows intervals are those of what is usual, and may be narrower than
those of what is then learnt, which is no reason to spend less. So widths are found at budgets of a
fixed ladder alone, are nowhere narrower than at a higher rung, and are interpolated between rungs:
they fall with ε by construction, whichever budgets are asked for, together or one by one.
"""

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.analyst.collection import Collection
from tacit.analyst.fit import fit
from tacit.analyst.methods.method import Settings
from tacit.analyst.posterior.laws import Mixture
from tacit.analyst.posterior.outlook import expected, widths
from tacit.analyst.posterior.posterior import Posterior
from tacit.errors import StudyError
from tacit.holder.places import PLACES
from tacit.holder.share import sum_tally
from tacit.holder.statistics import statistics_of
from tacit.holder.tally import Tally, total_of
from tacit.holder.visits import mapped
from tacit.imagined import Guess, imagined_rows
from tacit.privacy.gaussian import EPSILON_RANGE
from tacit.rows.table import table_of
from tacit.simulation import talk, talk_in_sum
from tacit.study import Study

Array = NDArray[np.float64]

IMAGINED_ROWS = 20_000
PROBABILITY = 0.9
BAND = ((1.0, 0.7), (0.25, 1.4))
"""Fills, and responses' sds over the guessed one, between which it may be: the band where nothing
is said of the fill."""
RUNGS = (*(10 ** (k / 4) for k in range(-12, 5)), 10**1.5, 100.0)
"""Budgets at which widths are found: all that a study may state, four to a factor of ten, and two
above 10, where little changes."""
MOST_EPSILON = 20.0
"""Largest ε that is looked at: beyond it little is promised."""
EPSILON_STEP = 1.01
"""How closely the smallest ε that suffices is found, as a factor."""


@dataclass(frozen=True)
class Forecast:
    """Expected widths of 90 % intervals at one ε, and the share of their variance that is noise.

    `widths` are in the user's units, and lie between `narrow` and `wide` if features fill between
    all and a quarter of their intervals, and responses spread up to a third of theirs; both are
    `widths` where the guess says how much features fill. `verdict` is what `fit` would say of such
    releases. Widths by encoded column, `scaled_widths` and what sampling alone would leave of them,
    are for a numeric feature in units of the response's whole range over the feature's.
    """

    epsilon: float
    names: tuple[str, ...]
    widths: Array
    scaled_sampling: Array
    scaled_widths: Array
    privacy_share: Array
    narrow: Array
    wide: Array
    verdict: str
    visits: int = 1


def persons_of(study: Study, rows: list[int], rows_per_person: float) -> list[int]:
    """How many persons, or rows where the study has no person, holders with so many rows count."""
    if rows_per_person == 1:
        return rows
    if study.person is None:
        raise StudyError(
            "rows_per_person is for a study with a person: name the column that says whose a row is"
        )
    if not 1 < rows_per_person < math.inf:
        raise StudyError(f"rows_per_person must be at least 1, such as 4; got {rows_per_person:g}")
    return [max(1, round(count / rows_per_person)) for count in rows]


def with_visits(study: Study, rows: list[int], visits: int) -> Study:
    """The study with so many visits, planned for these rows where it plans none."""
    planned = list(study.planned_rows) or rows
    fields = {"visits": visits, "planned_rows": planned}
    return Study.from_document(study.model_dump(mode="json") | fields)


def forecast(
    study: Study, rows: list[int], epsilons: list[float], guess: Guess | None = None
) -> list[Forecast]:
    """Forecast the intervals for holders with the given numbers of rows, or persons, at each ε."""
    if not rows or min(rows) < 1:
        raise StudyError("rows must list each holder's number of rows, such as 12000,8000,5000")
    agreed = study.secure_sum
    if agreed is not None and not agreed.least <= len(rows) <= len(agreed.holders):
        raise StudyError(
            f"rows must list {agreed.least} to {len(agreed.holders)} holders' numbers of rows: "
            "so many may stay in the study's secure_sum"
        )
    plan = _Plan(study, rows, guess or Guess())
    return [plan.forecast(epsilon) for epsilon in epsilons]


def _study_at(study: Study, epsilon: float) -> Study:
    """The study with another ε, which planned rows may make another form of."""
    least, most = EPSILON_RANGE
    if not least <= epsilon <= most:
        raise StudyError(f"epsilon must lie between {least:g} and {most:g}; got {epsilon:g}")
    return Study.from_document(study.model_dump(mode="json") | {"epsilon": epsilon})


class _Widths(NamedTuple):
    """Widths at one ε, in the user's units and by encoded column."""

    user: Array
    scaled: Array


def _wider(one: _Widths, other: _Widths) -> _Widths:
    """The wider of two widths, one by one."""
    return _Widths(*map(np.maximum, one, other))


class _Plan:
    """Widths of a study's intervals as they fall with ε, for holders with so many rows."""

    def __init__(self, study: Study, rows: list[int], guess: Guess) -> None:
        self.study = study
        self.rows = rows
        self.guess = guess
        self._known: dict[float, tuple[Posterior, Posterior]] = {}

    def forecast(self, epsilon: float) -> Forecast:
        """The forecast at one ε."""
        central, sampling = self._posteriors(epsilon)
        planned = self.widths(epsilon)
        narrow, wide = self._band(epsilon)
        bare = widths(sampling, PROBABILITY, "user")
        outcome = central.outcome
        return Forecast(
            epsilon=epsilon,
            names=central.names(),
            widths=planned.user,
            scaled_sampling=widths(sampling, PROBABILITY, "scaled"),
            scaled_widths=planned.scaled,
            privacy_share=np.clip(1 - (bare / planned.user) ** 2, 0.0, 1.0),
            narrow=narrow * planned.user,
            wide=wide * planned.user,
            verdict=outcome.warning if isinstance(outcome, Mixture) else "",
            visits=central.study.visit_count,
        )

    def widths(self, epsilon: float) -> _Widths:
        """Widths at any ε, which fall from rung to rung."""
        place = bisect_left(RUNGS, epsilon)
        above = reduce(_wider, map(self._alone, RUNGS[place:]))
        if RUNGS[place] == epsilon:
            return above
        below = _wider(self._alone(RUNGS[place - 1]), above)
        share = math.log(epsilon / RUNGS[place - 1]) / math.log(RUNGS[place] / RUNGS[place - 1])
        pairs = zip(below, above, strict=True)
        return _Widths(*(low * (high / low) ** share for low, high in pairs))

    def _alone(self, epsilon: float) -> _Widths:
        """Widths as one ε alone has them."""
        central, _ = self._posteriors(epsilon)
        return _Widths(
            user=widths(central, PROBABILITY, "user"),
            scaled=widths(central, PROBABILITY, "scaled"),
        )

    def _band(self, epsilon: float) -> tuple[Array, Array]:
        """The ends of the band, over the widths at this ε alone."""
        central, _ = self._posteriors(epsilon)
        middle = widths(central, PROBABILITY, "user")
        ends = [np.ones_like(middle)]
        if self.guess.fill is None:
            for fill, factor in BAND:
                response_sd = factor * self.guess.response_sd
                guess = replace(self.guess, fill=fill, response_sd=response_sd)
                private, _ = _posteriors(central.study, self.rows, epsilon, guess)
                ends.append(widths(private, PROBABILITY, "user") / middle)
        return np.min(ends, axis=0), np.max(ends, axis=0)

    def _posteriors(self, epsilon: float) -> tuple[Posterior, Posterior]:
        """What rows would give at one ε, with its noise and without; found once."""
        if epsilon not in self._known:
            study = _study_at(self.study, epsilon)
            self._known[epsilon] = _posteriors(study, self.rows, epsilon, self.guess)
        return self._known[epsilon]


def _posteriors(
    study: Study, rows: list[int], epsilon: float, guess: Guess
) -> tuple[Posterior, Posterior]:
    """What imagined rows would give with the noise of ε, and without any."""
    gram = _imagine(study, guess)
    imagine = partial(expected, study, rows, gram, spread=guess.spread, family=guess.family)
    if study.visit_count > 1:
        return _visited(study, rows, guess), imagine(None)
    return imagine([epsilon] * len(rows)), imagine(None)


def _visited(study: Study, rows: list[int], guess: Guess) -> Posterior:
    """What all visits of a study would give: no noise is drawn, and all of it is stated."""
    alone = _plain(study)
    table, _ = imagined_rows(alone, guess, np.random.default_rng(0), IMAGINED_ROWS)

    def read(tally: Tally[Any], count: int) -> Any:  # noqa: ANN401
        numbers = tally.to_numbers(total_of(tally, alone, table))
        return tally.from_numbers(alone, [number * count // IMAGINED_ROWS for number in numbers])

    imagine = partial(fit, family=guess.family, settings=Settings(spread=guess.spread))
    if alone.secure_sum is not None:
        total = sum(rows)
        summed = talk_in_sum(alone, len(rows), lambda each: read(sum_tally(each), total), silent)
        return imagine(Collection(study=alone, releases=(summed,)))
    releases = talk(
        alone,
        len(rows),
        lambda j, asked: read(PLACES if asked is None else mapped(asked), rows[j]),
        silent,
    )
    return imagine(Collection(study=alone, releases=tuple(releases)))


def silent(sds: Sequence[float], _lattice: int) -> list[int]:
    """No noise, where it is only stated."""
    return [0] * len(sds)


def epsilon_for(
    study: Study, rows: list[int], width: float, guess: Guess | None = None
) -> float | None:
    """Smallest ε at which every slope's interval is at most `width` wide in scaled units.

    None if no ε does it.
    """
    plan = _Plan(study, rows, guess or Guess())
    first = int(study.intercept)
    low = EPSILON_RANGE[0]
    high = MOST_EPSILON
    if plan.widths(high).scaled[first:].max() > width:
        return None
    while high > EPSILON_STEP * low:
        middle = math.sqrt(low * high)
        if plan.widths(middle).scaled[first:].max() <= width:
            high = middle
        else:
            low = middle
    return high


def _imagine(study: Study, guess: Guess) -> Array:
    """Statistics per row, of (x, y) jointly."""
    rng = np.random.default_rng(0)
    table, _ = imagined_rows(study, guess, rng, IMAGINED_ROWS)
    rows = _plain(study)
    batches = table_of(table, rows).batches()
    gram = statistics_of(rows, batches, order=rng.permutation).floats()
    own = study.d + 1  # the study's own response; others have the same noise
    return gram[:own, :own] / IMAGINED_ROWS


def _plain(study: Study) -> Study:
    """The study of rows alone.

    A person adds what one row does, and the heaviest row what each does without weights.
    """
    fields = {"person": None, "missing_person": "refuse", "weight": None}
    return study.model_copy(update=fields | {"visits": study.visit_count})
