"""Sets of sub-models: a few by name, or all that keep lower terms with higher ones."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tacit.analyst.comparison.likelihood import Likelihood
from tacit.analyst.comparison.subsets import all_subsets
from tacit.errors import PosteriorError
from tacit.study import Study
from tacit.study.submodel import lower_terms, term_name, term_names

Array = NDArray[np.float64]

MOST_TERMS = 20
"""Most terms whose sub-models are all weighed: a million of them."""


@dataclass(frozen=True)
class Models:
    """Sub-models of a study, each a bit for every term, with their prior probabilities."""

    study: Study
    codes: NDArray[np.int64]  # (model,)
    prior: Array  # (model,)
    is_all: bool  # whether they are all sub-models there are

    @cached_property
    def terms(self) -> tuple[str, ...]:
        """Names of the terms, in the order of the bits."""
        return term_names(self.study)

    @cached_property
    def bits(self) -> NDArray[np.bool_]:
        """Which terms each model holds, (model, term)."""
        places = np.arange(len(self.terms))
        bits: NDArray[np.bool_] = (self.codes[:, None] >> places & 1).astype(bool)
        return bits

    @cached_property
    def places(self) -> list[list[int]]:
        """The columns of each term."""
        places: dict[str, list[int]] = {name: [] for name in self.terms}
        row = int(self.study.intercept)
        for product in self.study.products:
            places[term_name(product)] += range(row, row + product.width)
            row += product.width
        return [places[name] for name in self.terms]

    def columns(self, model: int) -> list[int]:
        """The columns of one model."""
        always = list(range(int(self.study.intercept)))
        chosen = [
            k for held, at in zip(self.bits[model], self.places, strict=True) if held for k in at
        ]
        return sorted(always + chosen)

    def name(self, model: int) -> str:
        """A model as a formula has it."""
        held = [term for term, bit in zip(self.terms, self.bits[model], strict=True) if bit]
        return " + ".join(held) or "(intercept) alone"

    def log_evidence(self, told: Likelihood) -> Array:
        """Log-density of ẑ under each model at one node, less that of the whole study."""
        if self.is_all:
            return self._all(told)
        whole = _evidence(told, list(range(self.study.d)))
        return np.array([_evidence(told, self.columns(k)) - whole for k in range(len(self.codes))])

    def _all(self, told: Likelihood) -> Array:
        first = int(self.study.intercept)
        order = [*range(first), *(k for places in self.places for k in places)]
        block = np.ix_(order, order)
        widths = [len(places) for places in self.places]
        after = all_subsets(
            (told.precision + told.prior_precision)[block],
            (told.shift + told.prior_shift)[order],
            widths,
            first,
        )
        before = all_subsets(told.prior_precision[block], told.prior_shift[order], widths, first)
        values: Array = after - before
        values -= values[-1]
        return np.asarray(values[self.codes])


def _evidence(told: Likelihood, columns: list[int]) -> float:
    precision = told.precision + told.prior_precision
    after = _value(precision, told.shift + told.prior_shift, columns)
    return after - _value(told.prior_precision, told.prior_shift, columns)


def _value(matrix: Array, vector: Array, columns: list[int]) -> float:
    """F of subsets.py for one set of columns."""
    if not columns:
        return 0.0
    factor = np.linalg.cholesky(matrix[np.ix_(columns, columns)])
    half = np.linalg.solve(factor, vector[columns])
    return float(0.5 * half @ half - np.log(np.diag(factor)).sum())


def all_models(study: Study, inclusion: float) -> Models:
    """Every sub-model that keeps lower terms; each term is in with this probability beforehand."""
    if not 0 < inclusion < 1:
        raise PosteriorError(f"inclusion must lie between 0 and 1; got {inclusion:g}")
    terms = term_names(study)
    if len(terms) > MOST_TERMS:
        raise PosteriorError(
            f"the model has {len(terms)} terms, and all sub-models are weighed for up to "
            f"{MOST_TERMS}: fit a sub-model first, or name the models to compare"
        )
    codes = np.arange(2 ** len(terms), dtype=np.int64)
    below = lower_terms(study)
    valid = np.ones(len(codes), dtype=bool)
    for place, name in enumerate(terms):
        for lower in below[name]:
            valid &= ~((codes >> place & 1) & ~(codes >> terms.index(lower)) & 1).astype(bool)
    if not study.intercept:
        valid[0] = False
    codes = codes[valid]
    size = np.bitwise_count(codes)
    prior = inclusion**size * (1 - inclusion) ** (len(terms) - size)
    return Models(study=study, codes=codes, prior=prior / prior.sum(), is_all=True)


def named_models(study: Study, models: Sequence[Sequence[str]]) -> Models:
    """These models, each by its terms, equally likely beforehand."""
    terms = term_names(study)
    codes = [sum(1 << terms.index(name) for name in model) for model in models]
    if len(set(codes)) < len(codes):
        raise PosteriorError("two of the models are the same: give each once")
    prior = np.full(len(codes), 1 / len(codes))
    return Models(study=study, codes=np.array(codes, dtype=np.int64), prior=prior, is_all=False)
