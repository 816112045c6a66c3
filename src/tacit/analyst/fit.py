"""Fit: from releases to a posterior, by a method's name."""

import shlex
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path

import numpy as np

from tacit.analyst.collection import Collection, collect
from tacit.analyst.methods import method_named
from tacit.analyst.methods.method import Method, Settings
from tacit.analyst.posterior.pooled import pool
from tacit.analyst.posterior.posterior import Contribution, Posterior
from tacit.analyst.prior import Prior, load_prior, prior_named
from tacit.errors import MethodError, PriorError, ReleaseError
from tacit.release import Release
from tacit.study import Study

DEFAULT_METHOD = "noise-aware"
_ASK_FOR = {
    "counts": 'the number of rows: set release.count to "noisy" or "public" under add-remove',
    "squares": "y'y: set release.response_square = true",
    "eigenvalues": "the smallest eigenvalue: set release.smallest_eigenvalue = true",
}


Releases = Collection | str | Path | Release | Iterable[str | Path | Release]
"""A collection, or what `collect` makes one of."""


def fit(
    releases: Releases,
    method: str = DEFAULT_METHOD,
    *,
    prior: Prior | str | Path = "weak",
    settings: Settings | None = None,
) -> Posterior:
    """Infer the coefficients from releases: a collection, or paths and documents to collect.

    `prior` is a Prior, the name of one ("weak", "paper"), or the path of a TOML file with a
    `[prior]` table.
    """
    collection = _collected(releases)
    settings = Settings() if settings is None else settings
    chosen = method_named(method)
    evidence = collection.evidence
    _check_needs(chosen, collection)
    _check_settings(chosen, settings)
    law = prior_of(prior, collection.study)
    outcome = chosen.fit(evidence, law, settings)
    return Posterior(
        study=collection.study,
        method=chosen.name,
        outcome=outcome,
        contributions=_contributions(collection),
        caveat=chosen.caveat,
        seed=settings.seed,
        warmup=settings.warmup,
        options=_options(chosen, prior, settings),
        software=f"tacit {version('tacit-dp')}",
        pooled=None if np.isnan(outcome.residual_variance()) else pool(evidence, law, outcome),
    )


def _collected(releases: Releases) -> Collection:
    if isinstance(releases, Collection):
        return releases
    if not isinstance(releases, (str, Path, Release, Iterable)):
        raise ReleaseError(
            "fit takes a collection, releases, or paths of release files; "
            f"got {type(releases).__name__}"
        )
    return collect(releases)


def _contributions(collection: Collection) -> tuple[Contribution, ...]:
    return tuple(
        Contribution(
            holder=release.holder,
            n=release.n,
            epsilon=release.epsilon,
            delta=release.delta,
            release=release.hash,
            created=release.created,
            simulated=release.simulated,
        )
        for release in collection.releases
    )


def _options(method: Method, prior: Prior | str | Path, settings: Settings) -> str:
    """The options of `tacit fit` that these choices are; a prior given in code has no name."""
    options: dict[str, object] = {
        "method": method.name,
        "prior": "(given in code)" if isinstance(prior, Prior) else prior,
    }
    if not method.computed:
        options |= {name: getattr(settings, name) for name in ("chains", "draws", "warmup", "seed")}
    if method.samplers:
        options["sampler"] = settings.sampler
    if settings.noise_variance is not None:
        options["noise-variance"] = repr(settings.noise_variance)
    return " ".join(f"--{name} {shlex.quote(str(value))}" for name, value in options.items())


def prior_of(prior: Prior | str | Path, study: Study) -> Prior:
    """A prior as it was given, by its name or from its file, which must fit the study."""
    if not isinstance(prior, (Prior, str, Path)):
        raise PriorError(
            "prior must be a Prior, weak, paper, or the path of a file with a [prior] table; "
            f"got {type(prior).__name__}"
        )
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
                f"{method.name} needs releases with {_ASK_FOR[need]} in the study, "
                "and publish anew; or choose another method"
            )


def _check_settings(method: Method, settings: Settings) -> None:
    if not isinstance(settings, Settings):
        raise MethodError(f"settings must be a Settings record; got {type(settings).__name__}")
    if method.samplers and settings.sampler not in method.samplers:
        raise MethodError(
            f"sampler must be one of {', '.join(method.samplers)}; got {settings.sampler!r}"
        )
    for field, least in (("chains", 1), ("draws", 4), ("warmup", 0)):
        if getattr(settings, field) < least:
            raise MethodError(f"{field} must be at least {least}; got {getattr(settings, field)}")
    if settings.noise_variance is not None and not settings.noise_variance > 0:
        raise MethodError(f"noise_variance must be positive; got {settings.noise_variance}")
