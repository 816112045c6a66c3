"""Plan: how wide intervals will be, from public quantities and a guess, before anybody publishes.

Statistics of imagined rows (`imagined.py`) go through the real encoder and the default method
(`foreseen.py`). It is a forecast: features that fill less of their ranges, or are nearly collinear,
give wider intervals. Where nothing is said of how much they fill, a band is given.

A plan is of the study that plans these rows: where the study says how many are planned, the rows
asked for take their place, since its form and its visits follow from them. Widths fall with ε, with
any holder's rows and with further holders by construction (`rungs.py`), whichever are asked for,
together or one by one. Two things are no rungs. Where the study's rule says how many visits there
are, a second holder that publishes for itself makes them fewer, and may make intervals wider. And a
holder of a secure sum brings noise, too: one with few rows may cost more than it brings.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.analyst.posterior.laws import Mixture
from tacit.analyst.posterior.outlook import widths
from tacit.analyst.posterior.posterior import Posterior
from tacit.errors import StudyError
from tacit.foreseen import Foreseen
from tacit.imagined import Guess
from tacit.privacy.gaussian import EPSILON_RANGE, mu_of
from tacit.rungs import Rungs, Size
from tacit.study import Study

Array = NDArray[np.float64]
OnTalk = Callable[[], None]

PROBABILITY = 0.9
WIDTH = 2 * 1.6449
"""Of a 90 % interval, in standard deviations."""
BAND = ((1.0, 0.7), (0.25, 1.4))
"""Fills, and responses' sds over the guessed one, between which it may be: the band where nothing
is said of the fill."""
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


def planned_for(study: Study, rows: list[int], visits: int | None = None) -> Study:
    """The study that plans these rows, with so many visits where a number is given.

    One that plans none, and is asked for no visits, stays as it is.
    """
    if not rows or min(rows) < 1:
        raise StudyError("rows must list each holder's number of rows, such as 12000,8000,5000")
    agreed = study.secure_sum
    if agreed is not None and not agreed.least <= len(rows) <= len(agreed.holders):
        raise StudyError(
            f"rows must list {agreed.least} to {len(agreed.holders)} holders' numbers of rows: "
            "so many may stay in the study's secure_sum"
        )
    fields: dict[str, object] = {"planned_rows": rows} if study.planned_rows or visits else {}
    if visits:
        fields |= {"visits": visits}
    return Study.from_document(study.model_dump(mode="json") | fields) if fields else study


def forecast(
    study: Study, rows: list[int], epsilons: list[float], guess: Guess | None = None
) -> list[Forecast]:
    """Forecast the intervals for holders with the given numbers of rows, or persons, at each ε."""
    plan = Plan(study, rows, guess or Guess())
    return [plan.forecast(epsilon) for epsilon in epsilons]


def epsilon_for(
    study: Study, rows: list[int], width: float, guess: Guess | None = None
) -> float | None:
    """Smallest ε at which every slope's interval is at most `width` wide in scaled units.

    None if no ε does it.
    """
    return Plan(study, rows, guess or Guess()).epsilon_for(width)


def _study_at(study: Study, epsilon: float) -> Study:
    """The study with another ε, which planned rows may make another form of."""
    least, most = EPSILON_RANGE
    if not least <= epsilon <= most:
        raise StudyError(f"epsilon must lie between {least:g} and {most:g}; got {epsilon:g}")
    return Study.from_document(study.model_dump(mode="json") | {"epsilon": epsilon})


class _Widths(NamedTuple):
    """Widths in the user's units and by encoded column."""

    user: Array
    scaled: Array


class Plan:
    """Widths of the intervals of a study that plans these rows.

    `on_talk` hears of everything that is imagined, for a progress bar.
    """

    def __init__(
        self, study: Study, rows: list[int], guess: Guess, on_talk: OnTalk = lambda: None
    ) -> None:
        self.study = planned_for(study, rows)
        self.rows = np.array(rows, dtype=float)
        self.guess = guess
        self._on_talk = on_talk
        self._foreseen = self._imagined(guess)
        self._known: dict[tuple[int, float], Posterior] = {}
        self._rungs = Rungs(self._look, study.epsilon, study.delta)

    def forecast(self, epsilon: float) -> Forecast:
        """The forecast at one ε."""
        study = _study_at(self.study, epsilon)
        size = self.size(epsilon)
        node = self._rungs.nearest(size)
        posterior = self._posterior(*node)
        planned, bare = self._widths(size)
        narrow, wide = self._band(*node)
        outcome = posterior.outcome
        return Forecast(
            epsilon=epsilon,
            names=posterior.names(),
            widths=planned.user,
            scaled_sampling=bare.scaled,
            scaled_widths=planned.scaled,
            privacy_share=np.clip(1 - (bare.user / planned.user) ** 2, 0.0, 1.0),
            narrow=narrow * planned.user,
            wide=wide * planned.user,
            verdict=outcome.warning if isinstance(outcome, Mixture) else "",
            visits=study.visit_count,
        )

    def epsilon_for(self, width: float) -> float | None:
        """Smallest ε at which every slope is known to `width` in scaled units; None if none is."""
        low = EPSILON_RANGE[0]
        high = MOST_EPSILON
        if self._widest_slope(high) > width:
            return None
        while high > EPSILON_STEP * low:
            middle = math.sqrt(low * high)
            if self._widest_slope(middle) <= width:
                high = middle
            else:
                low = middle
        return high

    def _widest_slope(self, epsilon: float) -> float:
        """The widest of slopes' intervals, in scaled units."""
        planned, _ = self._widths(self.size(epsilon))
        return float(planned.scaled[int(self.study.intercept) :].max())

    def size(self, epsilon: float) -> Size:
        """All rows, and what the noise of so much budget leaves of them."""
        total = float(self.rows.sum())
        mu = mu_of(epsilon, self.study.delta)
        agreed = self.study.secure_sum
        if agreed is None:
            return Size(total, mu * math.hypot(*self.rows))
        return Size(total, mu * total * math.sqrt(agreed.covering / len(self.rows)))

    def _widths(self, size: Size) -> tuple[_Widths, _Widths]:
        """Widths as planned, and as they would be without privacy noise."""
        rows, epsilon = self._rungs.nearest(size)
        sampling = self._foreseen.sampling(rows, epsilon)
        alone = _both(sampling) * math.sqrt(rows / size.rows)
        planned = self._rungs.widths(size, alone)
        if self.guess.spread:
            wider = partial(self._wider, sampling, self.guess.spread, alone)
            planned, alone = planned * wider(planned), alone * wider(alone)
        count = len(sampling.names())
        return _Widths(planned[:count], planned[count:]), _Widths(alone[:count], alone[count:])

    def _wider(self, posterior: Posterior, spread: float, alone: Array, planned: Array) -> Array:
        """How much wider intervals of the average holder are where slopes differ by `spread`.

        A holder's own slope has a variance of a/n_j + b/n_j², sampling and noise, of which all
        holders together have `alone` and the rest of `planned`.
        """
        maps = [posterior.units(units).matrix for units in ("user", "scaled")]
        between = np.concatenate([spread * np.linalg.norm(matrix, axis=1) for matrix in maps])
        rows = self.rows if self.study.secure_sum is None else self.rows.sum(keepdims=True)
        noise = np.maximum(planned**2 - alone**2, 0.0)
        own = np.outer(rows.sum() / rows, alone**2) + np.outer((rows**2).sum() / rows**2, noise)
        alike = np.sum(1 / own, axis=0)
        unlike = np.sum(1 / (own + (WIDTH * between) ** 2), axis=0)
        return np.asarray(np.sqrt(alike / unlike))

    def _band(self, rows: int, epsilon: float) -> tuple[Array, Array]:
        """The ends of the band, over the widths at a rung."""
        middle = widths(self._posterior(rows, epsilon), PROBABILITY, "user")
        ends = [np.ones_like(middle)]
        if self.guess.fill is None:
            for fill, factor in BAND:
                response_sd = factor * self.guess.responding(self.study)
                guess = replace(self.guess, fill=fill, response_sd=response_sd)
                posterior = self._imagined(guess).posterior(rows, epsilon)
                ends.append(widths(posterior, PROBABILITY, "user") / middle)
        return np.min(ends, axis=0), np.max(ends, axis=0)

    def _imagined(self, guess: Guess) -> Foreseen:
        apart = len(self.rows) > 1 and self.study.secure_sum is None
        return Foreseen(self.study, guess, apart=apart, on_talk=self._on_talk)

    def _look(self, rows: int, epsilon: float) -> Array:
        return _both(self._posterior(rows, epsilon))

    def _posterior(self, rows: int, epsilon: float) -> Posterior:
        """What one holder with so many rows would get; found once."""
        if (rows, epsilon) not in self._known:
            self._known[rows, epsilon] = self._foreseen.posterior(rows, epsilon)
        return self._known[rows, epsilon]


def _both(posterior: Posterior) -> Array:
    """Widths in the user's units, and then by encoded column."""
    return np.concatenate([widths(posterior, PROBABILITY, units) for units in ("user", "scaled")])
