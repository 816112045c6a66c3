"""Fit: from a collection to a posterior, by a method's name."""

import shlex
from importlib.metadata import version
from pathlib import Path

import numpy as np

from tacit.analyst.cautions import cautions
from tacit.analyst.collection import Collection
from tacit.analyst.methods import method_named
from tacit.analyst.methods.method import Draws, Method, Settings
from tacit.analyst.posterior.pooled import pool
from tacit.analyst.posterior.posterior import Contribution, Posterior
from tacit.analyst.prior import Prior, load_prior, prior_named
from tacit.errors import MethodError, PriorError
from tacit.study import Study

DEFAULT_METHOD = "noise-aware"
_ASK_FOR = {
    "counts": 'the number of rows: set release.count to "noisy" or "public" under add-remove',
    "squares": "y'y: set release.response_square = true",
    "eigenvalues": "the smallest eigenvalue: set release.smallest_eigenvalue = true",
}


def fit(
    collection: Collection,
    method: str = DEFAULT_METHOD,
    *,
    prior: Prior | str | Path = "weak",
    settings: Settings | None = None,
) -> Posterior:
    """Infer the coefficients from a collection.

    `prior` is a Prior, the name of one ("weak", "paper"), or the path of a TOML file with a `[prior]` table.
    """
    settings = settings or Settings()
    chosen = method_named(method)
    evidence = collection.evidence
    _check_needs(chosen, collection)
    _check_settings(settings)
    law = prior_of(prior, collection.study)
    outcome = chosen.fit(evidence, law, settings)
    sentences = cautions(evidence, collection.study.columns, law, outcome)
    return Posterior(
        study=collection.study,
        method=chosen.name,
        outcome=outcome,
        contributions=tuple(
            Contribution(r.holder, r.n, r.epsilon, r.delta, r.hash, r.created, r.simulated)
            for r in collection.releases
        ),
        caveat=" ".join([*filter(None, [chosen.caveat]), *sentences]),
        seed=settings.seed,
        warmup=settings.warmup,
        options=_options(chosen.name, prior, settings, sampled=isinstance(outcome, Draws)),
        software=f"tacit {version('tacit-dp')}",
        pooled=None if np.isnan(outcome.residual_variance()) else pool(evidence, law, outcome),
    )


def _options(method: str, prior: Prior | str | Path, settings: Settings, *, sampled: bool) -> str:
    """The options of `tacit fit` that these choices are; a prior given in code has no name."""
    options: dict[str, object] = {
        "method": method,
        "prior": "(given in code)" if isinstance(prior, Prior) else prior,
    }
    if sampled:
        options |= {name: getattr(settings, name) for name in ("chains", "draws", "warmup", "seed")}
    if method == "normal-x":
        options["sampler"] = settings.sampler
    if settings.noise_variance is not None:
        options["noise-variance"] = repr(settings.noise_variance)
    return " ".join(f"--{name} {shlex.quote(str(value))}" for name, value in options.items())


def prior_of(prior: Prior | str | Path, study: Study) -> Prior:
    """A prior as it was given, by its name or from its file, which must fit the study."""
    if not isinstance(prior, Prior):
        is_file = isinstance(prior, Path) or prior.endswith(".toml")
        prior = load_prior(prior, study.columns) if is_file else prior_named(str(prior), study.d)
    if prior.d != study.d:
        raise PriorError(f"the prior has {prior.d} coefficients, the study {study.d}")
    return prior


def _check_needs(method: Method, collection: Collection) -> None:
    for need in method.needs:
        if getattr(collection.evidence, need) is None:
            raise MethodError(
                f"{method.name} needs releases with {_ASK_FOR[need]} in the study, and publish anew; or choose another method"
            )


def _check_settings(settings: Settings) -> None:
    for field, least in (("chains", 1), ("draws", 4), ("warmup", 0)):
        if getattr(settings, field) < least:
            raise MethodError(f"{field} must be at least {least}; got {getattr(settings, field)}")
    if settings.noise_variance is not None and not settings.noise_variance > 0:
        raise MethodError(f"noise_variance must be positive; got {settings.noise_variance}")
