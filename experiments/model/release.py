"""The paper's release on simulated noise, in two calibrations.

S = X'X gets triangular noise, z = X'y the same sd, and bounds on rows are the largest in the data:
as the paper does, and as no holder may. `as-published` has the published code's multiplier and the
add-remove sensitivity; `honest` the exact multiplier and the exact replace-one sensitivity, with
the same bounds taken for public ones. A method that needs more than (S, z) has a release of its
own:

| form | parts | for |
|---|---|---|
| pair | S, z | normal-x, fixed-s, fixed-s-fast |
| triple | S, z, y'y | bernstein-sheldon |
| eigen | S, z, λ_min | ada-ssp |
| text | (S, z) with 2ε/3, λ_min with ε/3 | ada-ssp by the paper's text, as published |

The same standard normals serve every form, ε and calibration of a run.
"""

import math
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from experiments.model.published import published_multiplier
from tacit.analyst.evidence import Evidence
from tacit.privacy.gaussian import multiplier
from tacit.privacy.sensitivity import Weights, sensitivity

Array = NDArray[np.float64]
Form = Literal["pair", "triple", "eigen", "text"]
Calibration = Literal["as-published", "honest"]

CALIBRATIONS: tuple[Calibration, ...] = ("as-published", "honest")
EIGENVALUE_WEIGHT = 0.5  # of λ_min in the joint release, as in the package


@dataclass(frozen=True)
class Statistics:
    """Exact statistics of J holders, and the largest ‖x‖ and |y| among all their rows."""

    grams: Array  # (J, d, d)
    moments: Array  # (J, d)
    squares: Array  # (J,)
    counts: Array  # (J,)
    row_bound: float  # X
    response_bound: float  # Y

    @property
    def holders(self) -> int:
        """J."""
        return len(self.grams)

    @property
    def d(self) -> int:
        """Number of columns."""
        return int(self.grams.shape[1])


class Budget(NamedTuple):
    """(ε, δ)."""

    epsilon: float
    delta: float


class Sds(NamedTuple):
    """Noise sd of each part; 0 where it is not published."""

    gram: float
    moment: float
    square: float = 0.0
    eigenvalue: float = 0.0


class Standard(NamedTuple):
    """Standard normals for every part."""

    grams: Array  # (J, d, d), symmetric: each entry of the upper triangle once
    moments: Array  # (J, d)
    squares: Array  # (J,)
    eigenvalues: Array  # (J,)


def statistics_of(x: Array, y: Array, holders: int) -> Statistics:
    """Split rows into consecutive blocks of equal size and sum."""
    parts = list(zip(np.array_split(x, holders), np.array_split(y, holders), strict=True))
    return Statistics(
        grams=np.array([rows.T @ rows for rows, _ in parts]),
        moments=np.array([rows.T @ response for rows, response in parts]),
        squares=np.array([response @ response for _, response in parts]),
        counts=np.array([float(len(response)) for _, response in parts]),
        row_bound=float(np.sqrt(np.einsum("ni,ni->n", x, x).max())),
        response_bound=float(np.abs(y).max()),
    )


def standard_noise(rng: np.random.Generator, holders: int, d: int) -> Standard:
    """Draw them."""
    upper = np.triu(rng.standard_normal((holders, d, d)))
    grams = upper + np.triu(upper, 1).swapaxes(1, 2)
    return Standard(
        grams,
        rng.standard_normal((holders, d)),
        rng.standard_normal(holders),
        rng.standard_normal(holders),
    )


def noise_sds(calibration: Calibration, form: Form, statistics: Statistics, budget: Budget) -> Sds:
    """What a calibration adds to each part."""
    x, y = statistics.row_bound, statistics.response_bound
    if calibration == "honest":
        weights = Weights(
            1.0, square=float(form == "triple"), eigenvalue=EIGENVALUE_WEIGHT * (form == "eigen")
        )
        sd = multiplier(*budget) * sensitivity(x, y, weights, "replace-one")
        return Sds(sd, sd, sd * weights.square, sd / EIGENVALUE_WEIGHT)
    if form == "eigen":
        third = published_multiplier(budget.epsilon / 3, budget.delta / 3)
        of_eigenvalue = math.sqrt(math.log(6 / budget.delta)) * 3 * x**2 / budget.epsilon
        return Sds(third * x**2, third * x * y, 0.0, of_eigenvalue)
    if form == "text":
        joint = published_multiplier(2 * budget.epsilon / 3, 2 * budget.delta / 3)
        joint *= math.sqrt(x**4 + (x * y) ** 2)
        third = published_multiplier(budget.epsilon / 3, budget.delta / 3)
        return Sds(joint, joint, 0.0, third * x**2)
    square = y**4 if form == "triple" else 0.0
    sd = published_multiplier(*budget) * math.sqrt(x**4 + (x * y) ** 2 + square)
    return Sds(sd, sd, sd)


def noisy(statistics: Statistics, sds: Sds, noise: Standard, budget: Budget) -> Evidence:
    """The release as evidence."""
    every = np.ones(statistics.holders)
    return Evidence(
        grams=statistics.grams + sds.gram * noise.grams,
        moments=statistics.moments + sds.moment * noise.moments,
        gram_sd=sds.gram * every,
        off_diagonal_sd=sds.gram * every,
        moment_sd=sds.moment * every,
        counts=statistics.counts,
        squares=statistics.squares + sds.square * noise.squares,
        square_sd=sds.square * every,
        eigenvalues=np.linalg.eigvalsh(statistics.grams)[:, 0] + sds.eigenvalue * noise.eigenvalues,
        eigenvalue_sd=sds.eigenvalue * every,
        delta=budget.delta,
    )


def exact(statistics: Statistics) -> Evidence:
    """The statistics without noise, for the non-private posterior."""
    none = standard_noise(np.random.default_rng(0), statistics.holders, statistics.d)
    return noisy(statistics, Sds(0.0, 0.0), none, Budget(1.0, 0.5))
