r"""What ε the published noise really gives: from the Gaussian trade-off, and confirmed from draws.

Exact: noise of m times the sensitivity it was calibrated to is μ-Gaussian DP with μ = 1/m for that
sensitivity, and with μ = r/m where one row really moves the statistics r times as far. The paper
defines neighbours by replacing a row and calibrates to adding one: r is between √2 (Y ≪ X) and 2.

Empirical: two neighbouring tables, one with a further row at the bounds, (X e_1, Y); draw the
release of both many times; and test which one it was. For any set A, $\varepsilon \ge \ln((P(A) -
\delta)/P'(A))$. A is a half-space across the difference of the two, whose threshold is chosen from
the Gaussian law before looking at a draw; P(A) is bounded from below and P'(A) from above (Clopper
and Pearson), each with half of the error allowed, so that the bound on ε holds with the stated
confidence. A bound from draws stays below the truth, the more so where P'(A) is small.
"""

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv, ndtr

from experiments.model.published import published_multiplier
from experiments.model.release import Budget, Sds, Statistics, noise_sds, standard_noise
from experiments.run.parts import Part, joined, record
from experiments.settings import AuditSettings
from tacit.privacy.gaussian import epsilon_of, multiplier

Array = NDArray[np.float64]
BATCH = 1_000_000
X, Y = 2.0, 1.0  # bounds of the audited tables


def limits(successes: float, trials: int, error: float) -> tuple[float, float]:
    """Clopper–Pearson.

    What a probability exceeds, and what it does not exceed, each with that chance of error.
    """
    low = float(betaincinv(successes, trials - successes + 1, error)) if successes > 0 else 0.0
    high = (
        float(betaincinv(successes + 1, trials - successes, 1 - error))
        if successes < trials
        else 1.0
    )
    return low, high


def lower_bound(inside: tuple[float, float], trials: int, delta: float, error: float) -> float:
    """ε that is exceeded, given how many draws with and without the further row fell inside."""
    low, high = limits(inside[0], trials, error / 2)[0], limits(inside[1], trials, error / 2)[1]
    return max(0.0, math.log((low - delta) / high)) if low > delta else 0.0


def threshold(mu: float, trials: int, delta: float, error: float) -> float:
    """Where to cut so that the bound is largest when counts are as expected."""
    cuts = np.linspace(-2.0, 6.0, 321)
    counts = np.rint(trials * ndtr(mu - cuts)), np.rint(trials * ndtr(-cuts))
    bounds = [
        lower_bound((with_row, without), trials, delta, error)
        for with_row, without in zip(*counts, strict=True)
    ]
    return float(cuts[int(np.argmax(bounds))])


def outputs(
    rng: np.random.Generator, statistics: Statistics, sds: Sds, count: int
) -> tuple[Array, Array]:
    """Draws of the upper triangle of S and of z, (count, 3) and (count, 2), as experiments draw."""
    noise = standard_noise(rng, count, 2)
    upper = np.triu_indices(2)
    return (statistics.grams[0] + sds.gram * noise.grams)[:, *upper], statistics.moments[
        0
    ] + sds.moment * noise.moments


def tables() -> tuple[Statistics, Statistics]:
    """The statistics of a small table, with and without the row (X e_1, Y)."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, (20, 2))
    y = rng.uniform(-Y, Y, 20)
    longer = np.vstack([x, [X, 0.0]]), np.append(y, Y)
    return tuple(
        Statistics(
            (a.T @ a)[None], (a.T @ b)[None], np.array([b @ b]), np.array([float(len(b))]), X, Y
        )
        for a, b in (longer, (x, y))
    )  # type: ignore[return-value]


def inside(
    rng: np.random.Generator, statistics: Statistics, sds: Sds, cut: float, trials: int
) -> int:
    """How many draws of a table's release lie beyond the cut, from without the row to with it."""
    with_row, without = tables()
    upper = np.triu_indices(2)
    along = np.concatenate(
        [
            (with_row.grams - without.grams)[0][upper] / sds.gram,
            (with_row.moments - without.moments)[0] / sds.moment,
        ]
    )
    centre = np.concatenate([without.grams[0][upper] / sds.gram, without.moments[0] / sds.moment])
    direction = along / np.linalg.norm(along)
    found = 0
    for first in range(0, trials, BATCH):
        grams, moments = outputs(rng, statistics, sds, min(BATCH, trials - first))
        projected = np.hstack([grams / sds.gram, moments / sds.moment]) - centre
        found += int(np.count_nonzero(projected @ direction > cut))
    return found


def measured(epsilon: float, delta: float, settings: AuditSettings) -> float:
    """Lower bound on ε from draws of the published release."""
    with_row, without = tables()
    sds = noise_sds("as-published", "pair", with_row, Budget(epsilon, delta))
    error, trials = 1 - settings.confidence, settings.draws
    cut = threshold(1 / published_multiplier(epsilon, delta), trials, delta, error)
    rng = np.random.default_rng([settings.seed, round(1000 * epsilon)])
    counts = tuple(inside(rng, table, sds, cut, trials) for table in (with_row, without))
    return lower_bound((counts[0], counts[1]), trials, delta, error)


def audited(settings: AuditSettings) -> Part:
    """One line per δ and ε; draws for the first δ alone."""
    parts = []
    for delta in settings.deltas:
        for epsilon in settings.epsilons:
            published = published_multiplier(epsilon, delta)
            line = {
                "delta": delta,
                "epsilon": epsilon,
                "published": published,
                "needed": multiplier(epsilon, delta),
                "add_remove": epsilon_of(1 / published, delta),
                "replace_one": epsilon_of(math.sqrt(2) / published, delta),
                "replace_one_most": epsilon_of(2 / published, delta),
                "measured": measured(epsilon, delta, settings)
                if delta == settings.deltas[0]
                else math.nan,
            }
            parts.append(record(line))
    return joined(parts)
