"""Five holders: how well can anybody tell whether a coefficient differs, and what does it cost?

`holders_differ.py` asks two things of one coefficient. Where it differs between holders, 90 %
intervals of the average are to cover at least 85 %; where it does not, they are to be at most 1.15
times as wide as for a fit that knows so. Here somebody answers who knows more than any method: the
error s_j of every holder's own estimate and τ itself, 0.05 in scaled units. Only *whether* the
coefficient differs must be told from the estimates y_j ~ N(θ, s_j²) or N(θ, s_j² + τ²). Given
that it differs with probability p, Bayes' rule mixes the two posteriors of θ, and the interval is
the mixture's. A small p makes intervals narrow, a large one makes them cover.

Errors are those of the slopes of `holders_differ.py`: what a holder's release tells of its slope,
its other coefficients being unknown.

    python benchmarks/holders_told.py [--quick] [--check] [--out DIR]

No bar: the table says which bars can be reached together.
"""

import numpy as np
from frame import Bench
from holders_differ import REACH, SPREAD, D, Design, released, sizes_of, statistics, study_of
from scipy.special import ndtr

from tacit.analyst.methods.noise_aware.model import Model, facts_of
from tacit.analyst.methods.noise_aware.profile import Profile
from tacit.analyst.prior import Prior

HOLDERS = 5
SLOPE = 1
TAU = SPREAD / REACH
RESIDUAL_VARIANCE = (0.25 / REACH) ** 2
CHANCES = (0.0, 0.1, 0.2, 0.35, 0.5, 0.7, 1.0)
USUAL = 1.6448536269514722
"""90 % of a normal law lie within so many sds."""
STEPS = 50
"""Halvings that find a quantile."""


def main() -> None:
    bench = Bench(__doc__, quick="few designs and draws")
    options = bench.options()
    designs = 4 if options.quick else 24
    draws = 200 if options.quick else 2_000
    columns = {"sizes": "<8", "s over tau": ".2f", "p": "g"}
    columns |= {"held where it differs": ".1f%", "width where it does not": ".2f"}
    for epsilon in (1.0, 3.0):
        table = bench.table(f"at {epsilon:g}", columns)
        for sizes in ("equal", "unequal"):
            errors = [errors_of(run, sizes, epsilon) for run in range(designs)]
            usual = float(np.median(errors)) / TAU
            for chance in CHANCES:
                held, width = best(errors, chance, draws)
                table.row(sizes, usual, chance, held, width)
    bench.finish()


def errors_of(run: int, sizes: str, epsilon: float) -> np.ndarray:
    """s_j of the slope, for holders as `holders_differ.py` has them."""
    rng = np.random.default_rng([run, HOLDERS])
    theta = np.append(0.2 * rng.normal(), 0.3 * rng.normal(size=D - 1))
    own = np.tile(theta, (HOLDERS, 1))
    own[:, SLOPE] += SPREAD * rng.normal(size=HOLDERS)
    study = study_of(epsilon)
    rows = sizes_of(rng, Design(HOLDERS, "slope", sizes))
    evidence = released(study, statistics(rng, study, own, rows), rng)
    model = Model(facts_of(evidence, Prior.weak(D)), 1.0)
    model.gaussian(RESIDUAL_VARIANCE)
    told = Profile.of(model, model.solve(RESIDUAL_VARIANCE)).normals[:, :D, :D]
    variances = np.linalg.inv(told + 1e-9 * np.eye(D))[:, SLOPE, SLOPE]
    return np.sqrt(variances)


def best(errors: list[np.ndarray], chance: float, draws: int) -> tuple[float, float]:
    """Share of intervals that hold θ where it differs, and their width where it does not."""
    rng = np.random.default_rng(0)
    held, widths = [], []
    for one in errors:
        apart = np.sqrt(one**2 + TAU**2) * rng.normal(size=(draws, HOLDERS))
        low, high = interval(apart, one, chance)
        held.append(np.mean((low < 0) & (high > 0)))
        low, high = interval(one * rng.normal(size=(draws, HOLDERS)), one, chance)
        known = 2 * USUAL / np.sqrt(np.sum(1 / one**2))
        widths.append(np.mean(high - low) / known)
    return float(np.mean(held)), float(np.mean(widths))


def interval(estimates: np.ndarray, errors: np.ndarray, chance: float) -> tuple[np.ndarray, ...]:
    """Ends of the mixture's 90 % interval, for every draw."""
    laws = [law(estimates, 1 / (errors**2 + tau**2)) for tau in (0.0, TAU)]
    means = np.array([mean for mean, _, _ in laws])
    sds = np.array([[sd] for _, sd, _ in laws])
    logs = np.array([likelihood for _, _, likelihood in laws])
    with np.errstate(divide="ignore"):  # of a chance of 0
        logs += np.log([[1 - chance], [chance]])
    shares = np.exp(logs - logs.max(axis=0))
    shares = shares / shares.sum(axis=0)
    return quantile(shares, means, sds, 0.05), quantile(shares, means, sds, 0.95)


def law(estimates: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, float, np.ndarray]:
    """Mean and sd of θ at one τ, and the log-likelihood with θ integrated over a flat prior."""
    total = weights.sum()
    mean = estimates @ weights / total
    left = (estimates - mean[:, None]) ** 2 @ weights
    return mean, float(total**-0.5), 0.5 * (np.log(weights).sum() - np.log(total) - left)


def quantile(shares: np.ndarray, means: np.ndarray, sds: np.ndarray, level: float) -> np.ndarray:
    low = (means - 6 * sds).min(axis=0)
    high = (means + 6 * sds).max(axis=0)
    for _ in range(STEPS):
        middle = (low + high) / 2
        below = np.sum(shares * ndtr((middle - means) / sds), axis=0) < level
        low = np.where(below, middle, low)
        high = np.where(below, high, middle)
    return (low + high) / 2


if __name__ == "__main__":
    main()
