"""Plan: how wide intervals will be, from public quantities and a guess, before anybody publishes.

Rows are imagined as public tables are in the middle: features fill a little over half of their
public ranges, nearer to one end and with a long tail to the other, or all of their typical
intervals; neighbours overlap; and the response has the guessed R². Their statistics go through the
real encoder and the default method, with the noise that each ε would bring and without any. It is a
forecast: features that fill less of their ranges, or are nearly collinear, give wider intervals.
Where nothing is said of how much they fill, a band is given. Of several visits the whole talk is
imagined: every question is made of the answers before it, which hold expected sums and the noise.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tacit.analyst.collection import Collection
from tacit.analyst.families.fit import check_study
from tacit.analyst.families.links import FamilyName, Link, link_named
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
from tacit.privacy.gaussian import EPSILON_RANGE
from tacit.rows.design import Design
from tacit.rows.table import table_of
from tacit.simulation import talk, talk_in_sum
from tacit.study import Study
from tacit.study.columns import Feature, Response
from tacit.study.transforms import FUNCTIONS, image

Array = NDArray[np.float64]

IMAGINED_ROWS = 20_000
PROBABILITY = 0.9
FILL = 0.55
"""Share of its public range that a feature is expected to fill: an sd of 0.32 half ranges, as the
first of several visits expects it."""
ASIDE = 2 / 3
"""How far aside a feature lies that does not fill its range, over the room that is left."""
TAIL = 0.225
"""Sd of the logarithm of a feature's values, from where its tail begins: a skewness of 0.7."""
NEIGHBOURS = 0.86
CROWD = 7
"""Correlation of a numeric feature with the one before it where there are so many or more: the
variance of its slope is then 6.6 times that of a feature which goes with no other. Of fewer it is
less in proportion, and of one there is none."""
BAND = ((1.0, 0.7), (0.25, 1.4))
"""Fills, and responses' sds over the guessed one, between which it may be: the band where nothing
is said of the fill."""
MOST_EPSILON = 20.0
"""Largest ε that is looked at: beyond it little is promised."""
MOST_EXTREME = 1e-6
"""Rate, over the response's range, below which no constant is looked for."""
HALVINGS = 60
TINY = 1e-9
EPSILON_STEP = 1.01
"""How closely the smallest ε that suffices is found, as a factor."""


@dataclass(frozen=True)
class Guess:
    """What the planner assumes of the data.

    How much features explain, for a family of the variance of what stands behind its answers or
    counts; how much of their intervals they fill, in standard deviations against those of an even
    spread; how neighbours correlate; and the response's sd in half its range.
    The defaults are in the middle of public tables (benchmarks/real_tables.py).
    """

    r_squared: float = 0.5
    fill: float | None = None  # None: FILL of a range, and all of a typical interval
    correlation: float | None = None  # of a numeric feature with the one before it; None: by rule
    response_sd: float = 0.25
    spread: float | None = None  # sd of a coefficient between holders; None: as it is estimated
    family: FamilyName | None = None  # None: a straight line
    rate: float | None = None  # mean response of a family; None: a fifth of its range

    def __post_init__(self) -> None:
        if self.rate is not None and self.family is None:
            raise StudyError("rate goes with a family: the share of ones, or the mean count")

    def filled(self, feature: Feature) -> float:
        """How much of its mapped interval a numeric feature fills."""
        if self.fill is not None:
            return self.fill
        return FILL if feature.typical is None else 1.0

    def correlated(self, study: Study) -> float:
        """Correlation of neighbouring numeric features: the more there are, the more it is."""
        if self.correlation is not None:
            return self.correlation
        numeric = sum(feature.range is not None for feature in study.features)
        return NEIGHBOURS * min(1.0, max(numeric - 1, 0) / (CROWD - 1))


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
    guess = guess or Guess()
    return _never_wider(
        [_forecast(_study_at(study, epsilon), rows, epsilon, guess) for epsilon in epsilons]
    )


def _study_at(study: Study, epsilon: float) -> Study:
    """The study with another ε, which planned rows may make another form of."""
    least, most = EPSILON_RANGE
    if not least <= epsilon <= most:
        raise StudyError(f"epsilon must lie between {least:g} and {most:g}; got {epsilon:g}")
    return Study.from_document(study.model_dump(mode="json") | {"epsilon": epsilon})


def _never_wider(forecasts: list[Forecast]) -> list[Forecast]:
    """The same where no budget has wider intervals than a smaller one.

    Where noise hides most of the rows intervals are those of what is usual, and may be narrower
    than those of what is then learnt. That is no reason to spend less.
    """
    falling = sorted(forecasts, key=lambda forecast: -forecast.epsilon)
    given = {each.epsilon: each for each in accumulate(falling, _as_wide)}
    return [given[each.epsilon] for each in forecasts]


def _as_wide(larger: Forecast, forecast: Forecast) -> Forecast:
    """A forecast with intervals no narrower than those of a larger budget."""
    return replace(
        forecast,
        widths=np.maximum(forecast.widths, larger.widths),
        scaled_widths=np.maximum(forecast.scaled_widths, larger.scaled_widths),
        narrow=np.maximum(forecast.narrow, larger.narrow),
        wide=np.maximum(forecast.wide, larger.wide),
    )


def _forecast(study: Study, rows: list[int], epsilon: float, guess: Guess) -> Forecast:
    central, sampling = _posteriors(study, rows, epsilon, guess)
    noisy = widths(central, PROBABILITY, "user")
    bare = widths(sampling, PROBABILITY, "user")
    ends = [noisy]
    if guess.fill is None:
        for fill, factor in BAND:
            end = replace(guess, fill=fill, response_sd=factor * guess.response_sd)
            private, _ = _posteriors(study, rows, epsilon, end)
            ends.append(widths(private, PROBABILITY, "user"))
    outcome = central.outcome
    return Forecast(
        epsilon=epsilon,
        names=central.names(),
        widths=noisy,
        scaled_sampling=widths(sampling, PROBABILITY, "scaled"),
        scaled_widths=widths(central, PROBABILITY, "scaled"),
        privacy_share=np.clip(1 - (bare / noisy) ** 2, 0.0, 1.0),
        narrow=np.min(ends, axis=0),
        wide=np.max(ends, axis=0),
        verdict=outcome.warning if isinstance(outcome, Mixture) else "",
        visits=study.visit_count,
    )


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
    guess = guess or Guess()
    low = EPSILON_RANGE[0]
    high = MOST_EPSILON
    if _widest(study, rows, high, guess) > width:
        return None
    while high > EPSILON_STEP * low:
        middle = float(np.sqrt(low * high))
        if _widest(study, rows, middle, guess) <= width:
            high = middle
        else:
            low = middle
    return high


def imagined_rows(
    study: Study, guess: Guess, rng: np.random.Generator, rows: int
) -> tuple[dict[str, NDArray[np.generic]], Array]:
    """A table spread over the public domain, and the scaled coefficients of its response.

    Neighbouring numeric features correlate; levels are equally likely.
    """
    table: dict[str, NDArray[np.generic]] = {}
    before = rng.standard_normal(rows)
    correlation = guess.correlated(study)
    for feature in study.features:
        if feature.range is not None:
            own = rng.standard_normal(rows)
            before = correlation * before + math.sqrt(1 - correlation**2) * own
            table[feature.name] = _values(feature, guess, before)
        else:
            levels = np.array(feature.all_levels)
            table[feature.name] = levels[rng.integers(len(levels), size=rows)]
    x = _encoded(study, table, rows)[int(study.intercept) :]
    if guess.family is not None:
        table[study.response.name], beta = _answers(study, guess, link_named(guess.family), rng, x)
        return table, beta
    slopes = _slopes(x, guess.response_sd * math.sqrt(guess.r_squared))
    signal = slopes @ (x - x.mean(axis=1, keepdims=True)) if len(x) else np.zeros(rows)
    residual_sd = guess.response_sd * np.sqrt(1 - guess.r_squared)
    y = np.clip(signal + residual_sd * rng.standard_normal(rows), -1, 1)
    table[study.response.name] = _responses(study.response, y)
    constant = [-float(slopes @ x.mean(axis=1))] if study.intercept else []
    return table, np.array([*constant, *slopes])


def _values(feature: Feature, guess: Guess, normal: Array) -> Array:
    """Values of a numeric feature with a long tail upwards, made of normal ones."""
    middle, half = feature.mapping
    fill = guess.filled(feature)
    long = np.expm1(TAIL * normal) / TAIL
    spread = (long - long.mean()) / long.std() * fill / math.sqrt(3)
    low, high = feature.range or (-math.inf, math.inf)
    values: Array = np.clip(middle + half * (spread - ASIDE * (1 - fill)), low, high)
    return values


def _slopes(x: Array, sd: float) -> Array:
    """Slopes of either sign and equal weight, which together carry a standard deviation."""
    if not len(x):
        return np.zeros(0)
    signs = np.where(np.arange(len(x)) % 2, -1.0, 1.0)
    slopes = signs / np.maximum(x.std(axis=1), TINY)
    scaled: Array = slopes * sd / max(float((slopes @ x).std()), TINY)
    return scaled


def _answers(
    study: Study, guess: Guess, link: Link, rng: np.random.Generator, x: Array
) -> tuple[Array, Array]:
    """Answers or counts of imagined rows at the guessed rate, and their coefficients."""
    check_study(link, study, study.response)
    top = study.response.range[1]
    rate = top / 5 if guess.rate is None else guess.rate
    if not 0 < rate < top:
        raise StudyError(f"rate must lie between 0 and {top:g}, the response's range; got {rate:g}")
    slopes = _slopes(x, link.spread(guess.r_squared, rate))
    index = slopes @ x if len(x) else np.zeros(x.shape[1])
    low = link.inverse(MOST_EXTREME * top) - float(np.abs(index).max())
    high = -low if link.binary else link.inverse(top)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        if float(link.mean(middle + index).mean()) < rate:
            low = middle
        else:
            high = middle
    mean = link.mean(low + index)
    drawn = rng.random(len(mean)) < mean if link.binary else np.minimum(rng.poisson(mean), top)
    return drawn.astype(float), np.array([low, *slopes])


def _encoded(study: Study, table: dict[str, NDArray[np.generic]], rows: int) -> Array:
    """The study's design of a table, (d, rows)."""
    batch = pa.RecordBatch.from_pydict(table or {"": np.zeros(rows)})
    return np.hstack(list(Design(study, response=False).blocks(batch, rows)))


def _responses(response: Response, scaled: Array) -> Array:
    """Responses in the user's units, from values in [−1, 1] that stand for the whole range."""
    low, high = image(response.function, response.range)
    values: Array = low + (high - low) * (1 + scaled) / 2
    if response.function is None:
        return values
    return np.asarray(FUNCTIONS[response.function].inverse(values))


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


def _widest(study: Study, rows: list[int], epsilon: float, guess: Guess) -> float:
    private, _ = _posteriors(_study_at(study, epsilon), rows, epsilon, guess)
    return float(widths(private, PROBABILITY, "scaled")[int(study.intercept) :].max())
