r"""Compare: how likely each of several models is, given the same releases.

Under a model the coefficients of all other columns are zero. Its marginal likelihood is that of
the noisy X'y given the noisy X'X, with coefficients, residual variance, the share that slopes
explain and what noise hides of X'X integrated (likelihood.py), so that little information leaves
probabilities near those beforehand.
"""

import math
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tacit.analyst.comparison.averaging import averaged
from tacit.analyst.comparison.likelihood import Likelihood, likelihoods
from tacit.analyst.comparison.models import Models, all_models, named_models
from tacit.analyst.posterior.frames import frame_class
from tacit.analyst.posterior.laws import Draws, Mixture
from tacit.analyst.posterior.pooled import Pooled
from tacit.analyst.posterior.posterior import Posterior
from tacit.analyst.posterior.reading import rate_of, spread_of
from tacit.analyst.posterior.source import Source, of_columns, prior_of_columns
from tacit.analyst.posterior.text_table import text_table
from tacit.errors import PosteriorError
from tacit.study.submodel import of_terms, term_names

if TYPE_CHECKING:
    import pandas as pd

Array = NDArray[np.float64]

SHOWN = 10
"""Models that a table shows."""
HARDLY = 3.0
"""Odds below which releases hardly tell."""
MOST_ODDS = 1e6
"""Odds from which on it no longer matters how large they are."""
WORDS = (
    "A coefficient outside a model is zero there. Beforehand all slopes together are expected to "
    "explain 0.1, 0.3, 1 or 3 times the response's variance, equally likely, each column its part."
)


@dataclass(frozen=True)
class Candidate:
    """A model with its probability before and after the releases."""

    terms: str
    prior: float
    probability: float


@dataclass(frozen=True)
class Inclusion:
    """How likely a term is to be in the model."""

    term: str
    prior: float
    probability: float


@dataclass(frozen=True)
class Comparison:
    """Models by probability, the likeliest first, and coefficients averaged over all of them."""

    models: tuple[Candidate, ...]  # all that were named, or the likeliest
    weighed: int  # how many models there are
    inclusion: tuple[Inclusion, ...]
    average: Posterior
    answer: str  # in one line, where there are two models, one within the other

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "weighed": self.weighed,
            "models": [asdict(model) for model in self.models],
            "inclusion": [asdict(term) for term in self.inclusion],
            "answer": self.answer,
            "averaged": self.average.summary().to_dict()["coefficients"],
        }

    def to_pandas(self) -> "pd.DataFrame":
        """The models as a data frame."""
        return frame_class("to_pandas()")([asdict(model) for model in self.models])

    def __str__(self) -> str:
        lines = [
            [one.terms, f"{one.prior:.3g}", f"{one.probability:.3f}"] for one in self.models[:SHOWN]
        ]
        tables = [text_table([["model", "before", "probability"], *lines])]
        if self.weighed > len(lines):
            tables.append(f"the {len(lines)} likeliest of {self.weighed:,} models")
        terms = [[one.term, f"{one.prior:.3g}", f"{one.probability:.3f}"] for one in self.inclusion]
        tables += ["", text_table([["term", "before", "probability"], *terms])]
        if self.answer:
            tables += ["", self.answer]
        return "\n".join([*tables, "", WORDS])

    __repr__ = __str__


def compare(*posteriors: Posterior) -> Comparison:
    """Weigh the models of several posteriors of the same releases, equally likely beforehand."""
    if len(posteriors) < 2:  # noqa: PLR2004
        raise PosteriorError(
            "compare takes two posteriors at least; select_terms weighs all sub-models"
        )
    first = posteriors[0]
    _check_same(posteriors)
    held = {name for posterior in posteriors for name in term_names(posterior.model)}
    whole = of_terms(first.study, held, first.asked.response)
    models = named_models(whole.study, [term_names(posterior.model) for posterior in posteriors])
    return _weighed(first, models, whole.places)


def select_terms(posterior: Posterior, inclusion: float = 0.5) -> Comparison:
    """Weigh all sub-models of a posterior's model; a term is in with this probability before."""
    _check_same((posterior,))
    whole = of_terms(posterior.study, term_names(posterior.model), posterior.asked.response)
    return _weighed(posterior, all_models(whole.study, inclusion), whole.places)


def _check_same(posteriors: tuple[Posterior, ...]) -> None:
    """Refuse posteriors that cannot be compared."""
    first = posteriors[0]
    for posterior in posteriors:
        if posterior.source is None:
            raise PosteriorError(
                "a posterior does not hold the statistics that it was inferred from: fit it again "
                "from the releases"
            )
        if posterior.family is not None:
            raise PosteriorError("models are compared as straight lines: fit without family")
        if posterior.source.holders == "separate":
            raise PosteriorError("models are compared over all holders together, not separate ones")
        if (
            posterior.study.hash != first.study.hash
            or _releases(posterior) != _releases(first)
            or posterior.asked.response != first.asked.response
        ):
            raise PosteriorError(
                "models can be compared only where they are fitted to the same releases, and "
                "explain the same response"
            )


def _releases(posterior: Posterior) -> set[str]:
    return {each.release for each in posterior.contributions}


def _weighed(posterior: Posterior, models: Models, places: tuple[int, ...]) -> Comparison:
    source = posterior.source
    if source is None:  # pragma: no cover - `_check_same` has looked
        raise AssertionError
    told = _told(source, places, _response(posterior, source))
    joint = joint_probabilities(models, told)
    probability = joint.sum(axis=0)
    shown = len(models.codes) if not models.is_all else min(SHOWN, len(models.codes))
    likeliest = np.argsort(-probability, kind="stable")[:shown]
    return Comparison(
        models=tuple(
            Candidate(
                terms=models.name(int(k)),
                prior=float(models.prior[k]),
                probability=float(probability[k]),
            )
            for k in likeliest
        ),
        weighed=len(models.codes),
        inclusion=tuple(
            Inclusion(term=term, prior=float(before), probability=float(after))
            for term, before, after in zip(
                models.terms, models.prior @ models.bits, probability @ models.bits, strict=True
            )
        ),
        average=_average(posterior, models, told, joint),
        answer=_answer(models, probability),
    )


def _response(posterior: Posterior, source: Source) -> float:
    """The response's variance, for studies of several visits."""
    if posterior.study.visit_count == 1 or posterior.pooled is None:
        return 1.0
    outcome = posterior.outcome
    slopes = outcome.mean()
    rate = rate_of(source.evidence)
    spread = spread_of(posterior.pooled, intercept=posterior.model.intercept, rate=rate)
    return outcome.residual_variance() + max(float(slopes @ spread @ slopes), 0.0)


def _told(source: Source, places: tuple[int, ...], response: float) -> list[Likelihood]:
    settings = source.settings
    if source.holders == "common":
        settings = replace(settings, spread=0.0)
    evidence = of_columns(source.evidence, places)
    return likelihoods(evidence, prior_of_columns(source.prior, places), settings, response)


def joint_probabilities(models: Models, told: list[Likelihood]) -> Array:
    """Probability of every node with every model, (node, model)."""
    logs = np.stack([math.log(one.weight + 1e-300) + models.log_evidence(one) for one in told])
    logs += np.log(models.prior)
    joint: Array = np.exp(logs - logs.max())
    joint /= joint.sum()
    return joint


def _average(
    posterior: Posterior, models: Models, told: list[Likelihood], joint: Array
) -> Posterior:
    """The posterior averaged over models."""
    outcome = posterior.outcome
    unshrunk = outcome.unshrunk if isinstance(outcome, Mixture) else 1.0
    count = len(models.codes)
    within = term_names(models.study) != term_names(posterior.study)
    draws = averaged(models, told, joint, unshrunk).draws
    same = posterior.model.columns == models.study.columns
    return replace(
        posterior,
        outcome=draws,
        method="noise-aware",
        caveat=f"Averaged over {count:,} models; a coefficient outside a model is zero there, and "
        "no part of P(>0).",
        question=models.study if within or posterior.study.responses else None,
        pooled=_pooled(posterior, draws) if same else None,
    )


def _pooled(posterior: Posterior, draws: Draws) -> Pooled | None:
    """What is said of all rows, of an average over models.

    Of each coefficient's variance sampling has the share that it has in the whole model's.
    """
    pooled = posterior.pooled
    if pooled is None:
        return None
    whole = np.diag(posterior.outcome.covariance())
    scale = np.sqrt(np.diag(draws.covariance()) / np.maximum(whole, 1e-300))
    return replace(pooled, sampling=scale[:, None] * pooled.sampling * scale)


def _answer(models: Models, probability: Array) -> str:
    """Whether what one of two models has more is needed, in one line."""
    if models.is_all or len(models.codes) != 2:  # noqa: PLR2004
        return ""
    large, small = np.argsort(-models.bits.sum(axis=1))
    more = models.bits[large] & ~models.bits[small]
    if (models.bits[small] & ~models.bits[large]).any():
        return ""
    names = " + ".join(np.array(models.terms)[more].tolist())
    needed = float(probability[large])
    odds = needed / max(1 - needed, 1e-12)
    way = "for" if odds >= 1 else "against"
    size = max(odds, 1 / max(odds, 1e-12))
    by = f"more than {MOST_ODDS:,.0f}" if size > MOST_ODDS else f"{size:,.0f}"
    said = "hardly tell" if size < HARDLY else f"speak {way} it {by} to 1"
    return f"{names}: needed with probability {needed:.3f} (0.5 beforehand); the releases {said}."
