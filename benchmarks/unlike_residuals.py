"""Holders whose residual sds differ by a factor 4.

Do the default's intervals cover, and what do residual variances of their own bring?

Four holders of 2,000 rows, an intercept and two features; residual sds 0.1, 0.1, 0.4, 0.4. The
first two holders' rows tell mostly of the first slope, the last two's of the second (sds of the
features 0.6 and 0.1, and the other way round). Noise of sd `noise` on X'X and half of that on X'y
and y'y. Coverage of 90 % intervals, and their mean width; "common" holds all holders to one
residual variance.

Bar (--check): with own variances every coefficient's coverage is at least 90 % less three standard
errors.

    python benchmarks/unlike_residuals.py [--quick] [--check] [--runs 200]
"""

import math

import numpy as np
from frame import Bench

from tacit.analyst.evidence import Evidence
from tacit.analyst.methods import noise_aware
from tacit.analyst.methods.method import Settings
from tacit.analyst.methods.noise_aware import residual
from tacit.analyst.prior import Prior

SIGMAS = (0.1, 0.1, 0.4, 0.4)
SPREADS = ((0.6, 0.1), (0.6, 0.1), (0.1, 0.6), (0.1, 0.6))
ROWS, NOISES = 2_000, (0.5, 10.0, 40.0)
OWN, COMMON = residual.UNLIKE, np.zeros(1)


def simulated(
    seed: int, noise: float, sigmas: tuple[float, ...] = SIGMAS
) -> tuple[np.ndarray, Evidence]:
    """Coefficients, and the releases of all holders."""
    rng = np.random.default_rng(seed)
    theta = np.append(0.2 * rng.normal(), 0.25 * rng.normal(size=2))
    parts = []
    for sigma, spread in zip(sigmas, SPREADS, strict=True):
        x = np.column_stack([np.ones(ROWS), np.array(spread) * rng.normal(size=(ROWS, 2))])
        y = x @ theta + sigma * rng.normal(size=ROWS)
        full = rng.normal(size=(3, 3))
        moments = x.T @ y + noise / 2 * rng.normal(size=3)
        square = y @ y + noise / 2 * rng.normal()
        parts.append((x.T @ x + noise * (full + full.T) / 2, moments, square))
    grams, moments, squares = (np.array(part) for part in zip(*parts, strict=True))
    sd = np.full(len(sigmas), noise)
    counts = np.full(len(sigmas), float(ROWS))
    return theta, Evidence(
        grams,
        moments,
        sd,
        sd / math.sqrt(2),
        sd / 2,
        counts,
        squares=squares,
        square_sd=sd / 2,
        intercept=True,
    )


def measure(
    noise: float, runs: int, sigmas: tuple[float, ...] = SIGMAS
) -> tuple[np.ndarray, np.ndarray]:
    """Coverage and mean width per coefficient."""
    covered, widths = [], []
    for seed in range(runs):
        theta, evidence = simulated(seed, noise, sigmas)
        outcome = noise_aware.fit(evidence, Prior.weak(3), Settings())
        low, high = outcome.quantiles(np.array([0.05, 0.95]), np.eye(3), np.zeros(3)).T
        covered.append((low <= theta) & (theta <= high))
        widths.append(high - low)
    return np.mean(covered, axis=0), np.mean(widths, axis=0)


def main() -> None:
    bench = Bench(__doc__, quick="30 runs")
    bench.option("--runs", type=int, default=200)
    options = bench.options()
    runs = 30 if options.quick else options.runs
    least = 0.9 - 3 * math.sqrt(0.09 / runs)
    names = ("intercept", "slope 1", "slope 2")
    columns = {"noise": "g", "variances": "<10"}
    columns |= {f"{name}: covers": ".2f" for name in names}
    columns |= {f"{name}: width": ".4f" for name in names}
    table = bench.table("coverage", columns)
    for noise in NOISES:
        for label, grid in (("common", COMMON), ("own", OWN)):
            residual.UNLIKE = grid
            covered, widths = measure(noise, runs)
            table.row(noise, label, *covered, *widths)
            if label == "own":
                bench.bar(
                    f"noise {noise:g}: every coefficient covers {least:.2f}",
                    met=bool((covered >= least).all()),
                )
    bench.say(f"{runs} runs")
    bench.finish()


if __name__ == "__main__":
    main()
