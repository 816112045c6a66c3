r"""Yes/no answers: how much of the gain in log-loss no reading of a release can keep, at ε = 1.

A release holds ẑ = Σα²xy + v and Ŝ = S + M with S = Σα²xx', in scaled units. Given the features,
Σα²xy has the mean Σα²x g(x'β) = Sb, b being the straight line through g(x'β), and the derivative
K = Σα²g'xx' by β. An error e of β costs ½e'Ie of log-loss, I being the information of a row. Beyond
what sampling costs any method,

- `told`: somebody who is told the features of every row, and has an estimate of β without bias, has
  an error with covariance σ_z²(KK)⁻¹ at least (Cramér and Rao): Ŝ tells nothing more.
- `unbiased`: whoever has S from the release alone. Of S nothing is known but what levels imply:
  x² = x for a level, and 0 for the product of two levels of a feature, so that S lies in a linear
  space with an orthonormal basis E_i, and along each Ŝ has noise of variance σ_s². Answers of 0 and
  1 are ±1 when scaled, so y'y, with variance σ_u², tells the intercept's entry of S again. With C
  the covariance that both leave along the E_i, what is free of S is ẑ less its guess times b, of
  variance Ω = σ_z²I + ΣC_ij(E_ib)(E_jb)'. An estimate without bias has K⁻¹ΩK⁻¹ at least. What S
  tells of the law of rows, and with it of how β follows from b, is taken as known.
- `best`: `unbiased` at the best of 42 row radii and weights of the response, the study's own among
  them; from the first ten runs.

A rule with bias may do better at one truth, and pays at others: on average over truths that are
normal about one of these, with twice the error of `unbiased` for a standard deviation, every rule
whatever loses 2²/(2² + 1) = 0.8 of these floors at least (van Trees, with K as it is at their
middle).

Rows and truths are those of `families.py`; floors are means over runs, over the mean gain.

    python benchmarks/families_floor.py [--quick] [--runs 100] [--out DIR]

No bar: the table says which losses that `families.py` asks for can be had. About two minutes.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from families_made import DESIGNS, Array, Cell, Made, study_of
from frame import Bench

from tacit.rows.design import Design
from tacit.study import Study

RATES = (0.05, 0.2, 0.5, 0.8, 0.95)
ASKED = {"normal": 0.005, "skewed": 0.015, "binary": 0.015, "mixed": 0.015}
RADII = (0.5, 0.7, 0.85, 1.0, 1.2, 1.5, 2.0)
WEIGHTS = (0.3, 0.6, 1.0, 1.5, 2.5, 5.0)
"""Row radii and response weights, over those of the study."""
TRIED = 10
"""Runs with which these are tried."""


@dataclass(frozen=True)
class Told:
    """What a release of some rows can tell of β at best, and what an error of β costs."""

    slope: Array  # (d, d): K
    noise: Array  # (d, d): σ_z²I
    unsure: Array  # (d, d): what not knowing S adds
    information: Array  # (d, d): I, of one row

    @classmethod
    def of(cls, cell: Cell, study: Study, made: Made) -> "Told":
        """Rows of one run; every holder adds its noise."""
        rows = encoded(study, made)
        mean = cell.link.mean(made.x @ made.beta)
        slopes = cell.link.slope(made.x @ made.beta)
        centre, half = study.response.mapping
        shrunk = rows * np.minimum(1.0, study.row_radius**2 / np.sum(rows**2, axis=0))
        line = np.linalg.solve(shrunk @ rows.T, shrunk @ ((mean - centre) / half))
        noise = study.mechanism().noise
        basis = bases(rows)
        told = np.eye(len(basis)) / noise.xtx_diagonal**2
        if cell.link.binary and noise.yty is not None:
            told += np.outer(basis[:, 0, 0], basis[:, 0, 0]) / noise.yty**2
        along = basis @ line
        return cls(
            slope=(shrunk * slopes) @ rows.T / half,
            noise=cell.holders * noise.xty**2 * np.eye(len(rows)),
            unsure=cell.holders * along.T @ np.linalg.solve(told, along),
            information=(rows * (slopes**2 / cell.link.variance(mean))) @ rows.T / len(mean),
        )

    @property
    def told(self) -> float:
        """Least loss without bias, where features are told."""
        return self._unbiased(self.noise)

    @property
    def unbiased(self) -> float:
        """Least loss without bias."""
        return self._unbiased(self.noise + self.unsure)

    def _unbiased(self, spread: Array) -> float:
        inverse = np.linalg.inv(self.slope)
        return float(np.trace(self.information @ inverse @ spread @ inverse)) / 2


def noise_alone(cell: Cell, study: Study, made: Made) -> float:
    """Loss by the noise alone, of the best reading without bias of such releases."""
    return Told.of(cell, study, made).unbiased


def encoded(study: Study, made: Made) -> Array:
    """Encoded rows as they are, (d, n)."""
    [batch] = made.table.to_batches()
    [rows] = Design(study, response=False).blocks(batch, batch.num_rows)
    return rows


def bases(rows: Array) -> Array:
    """An orthonormal basis of what S may be, (m, d, d): levels make entries of it equal, or 0."""
    d = len(rows)
    places = [(i, j) for i in range(d) for j in range(i + 1)]
    entries = np.zeros((len(places), d, d))
    for entry, (i, j) in zip(entries, places, strict=True):
        entry[i, j] = 1.0 if i == j else math.sqrt(0.5)
        entry[j, i] = entry[i, j]
    levels = [k for k in range(1, d) if np.array_equal(np.unique(rows[k]), [0.0, 1.0])]
    rules = []
    for k in levels:
        rule = np.zeros((d, d))
        rule[k, k] = 1.0
        rule[0, k] = -0.5
        rule[k, 0] = -0.5
        rules.append(rule)
    for i, j in product(levels, levels):
        if j < i and not np.any(rows[i] * rows[j]):
            rules.append(entries[places.index((i, j))])
    if not rules:
        return entries
    *_, axes = np.linalg.svd(np.einsum("rab,eab->re", np.array(rules), entries))
    return np.tensordot(axes[len(rules) :], entries, axes=1)


def other(study: Study, radius: float, weight: float) -> Study | None:
    """The study with so many times its row radius and weight; None where that cannot be stated."""
    wanted = radius * study.row_radius
    if wanted < 1:
        return None
    release = {"row_radius": wanted, "response_weight": weight * study.response_weight}
    document = study.model_dump(mode="json", exclude_none=True)
    return Study.from_document(document | {"release": document.get("release", {}) | release})


def least_by_settings(cell: Cell, runs: Sequence[Made]) -> float:
    """`unbiased` at the best row radius and response weight, over that of the study's own."""
    study = study_of(cell)
    losses = []
    for radius, weight in product(RADII, WEIGHTS):
        stated = other(study, radius, weight)
        if stated is not None:
            losses.append(sum(noise_alone(cell, stated, made) for made in runs))
    return min(losses) / sum(noise_alone(cell, study, made) for made in runs)


def gain_of(cell: Cell, made: Made) -> float:
    """Log-loss that the truth gains over the rate alone."""
    means = cell.link.mean(made.x @ made.beta)
    chances = np.array([means, 1 - means])
    rates = chances.mean(axis=1)
    return float(np.mean(np.sum(chances * np.log(chances), axis=0)) - rates @ np.log(rates))


def main() -> None:
    bench = Bench(__doc__, quick="rates of 5 and 50 %, four runs")
    bench.option("--runs", type=int, default=100, help="runs of every cell")
    options = bench.options()
    runs = 4 if options.quick else options.runs
    columns = {"features": "<9", "rate": "g", "% asked": ".1f", "% told": ".2f"}
    columns |= {"% unbiased": ".2f", "% best": ".2f"}
    table = bench.table("floors", columns)
    for design, rate in product(DESIGNS, RATES[::2] if options.quick else RATES):
        cell = Cell(design, rate, 1.0)
        place = [DESIGNS.index(design), round(1000 * rate), 1]
        made = [Made.of(cell, np.random.default_rng([seed, *place])) for seed in range(runs)]
        told = [Told.of(cell, study_of(cell), each) for each in made]
        gain = float(np.mean([gain_of(cell, each) for each in made]))
        unbiased = float(np.mean([each.unbiased for each in told]))
        floors = (
            float(np.mean([each.told for each in told])),
            unbiased,
            unbiased * least_by_settings(cell, made[:TRIED]),
        )
        table.row(design, rate, 100 * ASKED[design], *(100 * floor / gain for floor in floors))
    bench.finish()


if __name__ == "__main__":
    main()
