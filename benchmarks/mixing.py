"""Mixing of `normal-x` on the paper's simulated design: the gradient sampler, with the paper's Metropolis kernel beside it.

Design (Alparslan, Yıldırım and Birbil 2023): n = 100,000 rows over J holders, θ ~ N(0, I), Σ ~ IW(V'V, d + 1), x ~ N(0, Σ), σ² = 1, prior
a = 20, b = 0.5, ε = 1, δ = 1/n with exact replace-one sensitivity; row radius and response bound are the largest in the data, as
in the paper. Four chains of 1,000 warm-up and 1,000 kept draws. Effective sizes and R-hat are the worst over θ and σ²; seconds are those
of a second run, after compilation, on whatever cores there are.

Bars (--check): the gradient sampler converged in every cell (R-hat below 1.01, effective size above 400), and at (10, 5) gives at
least 100 effective draws per second, 500 times what the published code reaches under Octave (0.1 to 0.2).

    python benchmarks/mixing.py [--quick] [--check]
"""

import argparse
import os
import sys
import time

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import numpy as np
from scipy import stats

from tacit.analyst.diagnostics import mixing
from tacit.analyst.evidence import Evidence
from tacit.analyst.method import Settings
from tacit.analyst.methods.normal_x import METHOD
from tacit.analyst.outcome import Draws
from tacit.analyst.prior import Prior
from tacit.privacy.gaussian import multiplier
from tacit.privacy.sensitivity import Weights, sensitivity

ROWS = 100_000
CELLS = [(2, 1), (2, 10), (5, 5), (10, 5), (10, 10), (20, 1), (20, 10)]
QUICK_CELLS = [(2, 1), (5, 5)]
LEAST_RATE = {(10, 5): 100.0}


def design(d: int, holders: int, seed: int = 0) -> tuple[Evidence, Prior]:
    """Evidence and prior of the paper's design, noise honestly calibrated and of frobenius shape."""
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(d, d))
    scale = root.T @ root
    covariance = np.atleast_2d(stats.invwishart(d + 1, scale).rvs(random_state=rng))
    x = rng.normal(size=(ROWS, d)) @ np.linalg.cholesky(covariance).T
    y = x @ rng.normal(size=d) + rng.normal(size=ROWS)
    moved = sensitivity(float(np.linalg.norm(x, axis=1).max()), float(np.abs(y).max()), Weights(1.0), "replace-one")
    sd = multiplier(1.0, 1 / ROWS) * moved
    parts = list(zip(np.array_split(x, holders), np.array_split(y, holders), strict=True))
    full = rng.normal(size=(holders, d, d))
    one = np.ones(holders)
    evidence = Evidence(
        grams=np.array([rows.T @ rows for rows, _ in parts]) + sd * (full + full.swapaxes(1, 2)) / 2,
        moments=np.array([rows.T @ response for rows, response in parts]) + sd * rng.normal(size=(holders, d)),
        gram_sd=sd * one,
        off_diagonal_sd=sd / np.sqrt(2) * one,
        moment_sd=sd * one,
        counts=np.array([float(len(response)) for _, response in parts]),
    )
    return evidence, Prior(np.zeros(d), np.eye(d), 20.0, 0.5, scale, d + 1.0)


def measure(cell: tuple[int, int], sampler: str) -> tuple[str, bool]:
    """A line of the table, and whether the gradient sampler's bars are met."""
    evidence, prior = design(*cell)
    settings = Settings(sampler=sampler)  # type: ignore[arg-type]
    METHOD.fit(evidence, prior, Settings(draws=settings.draws, warmup=settings.warmup, seed=1, sampler=settings.sampler))
    start = time.perf_counter()
    draws = METHOD.fit(evidence, prior, settings)
    seconds = time.perf_counter() - start
    assert isinstance(draws, Draws)  # noqa: S101 - samplers give draws
    found = mixing(np.concatenate([draws.theta, np.log(draws.noise_variance)[..., None]], axis=-1))
    size, rhat = float(found.bulk.min()), float(found.rhat.max())
    met = rhat < 1.01 and size > 400 and size / seconds >= LEAST_RATE.get(cell, 0.0)
    line = f"{sampler:<12}{cell[0]:>4}{cell[1]:>4}{size:>10.0f}{rhat:>9.4f}{seconds:>10.1f}{size / seconds:>12.1f}"
    return line + ("" if met else "  not converged" if sampler == "metropolis" else "  MISSED"), met


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="two small cells")
    parser.add_argument("--check", action="store_true", help="exit 1 when a bar is missed")
    options = parser.parse_args()
    lines, met = [], True
    for cell in QUICK_CELLS if options.quick else CELLS:
        for sampler in ("gradient", "metropolis"):
            line, good = measure(cell, sampler)
            met &= good or sampler == "metropolis"
            print(line, flush=True)
            lines.append(line)
    print(f"\n{'sampler':<12}{'d':>4}{'J':>4}{'least ESS':>10}{'R-hat':>9}{'seconds':>10}{'ESS/second':>12}")
    print("\n".join(lines))
    print("bars met" if met else "bars missed")
    sys.exit(0 if met or not options.check else 1)


if __name__ == "__main__":
    main()
