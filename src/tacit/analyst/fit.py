"""Fit: from releases to a posterior, by a method's name."""

import shlex
from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Literal

import numpy as np

from tacit.analyst.cautions import cautions
from tacit.analyst.collection import Collection, collect
from tacit.analyst.evidence import Evidence
from tacit.analyst.families.fit import fit_family
from tacit.analyst.families.links import FamilyName
from tacit.analyst.methods import method_named
from tacit.analyst.methods.method import Method, Outcome, Settings
from tacit.analyst.posterior.pooled import pool
from tacit.analyst.posterior.posterior import Contribution, Posterior
from tacit.analyst.prior import Prior, prior_named
from tacit.analyst.prior_file import load_prior
from tacit.errors import MethodError, PriorError, ReleaseError
from tacit.release import Release
from tacit.study import Study

DEFAULT_METHOD = "noise-aware"
HoldersAre = Literal["differ", "common", "separate"]
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
    holders: HoldersAre = "differ",
    family: FamilyName | None = None,
    settings: Settings | None = None,
) -> Posterior:
    """Infer the coefficients from releases: a collection, or paths and documents to collect.

    `holders` says what noise-aware takes them to be: such as may "differ" (from three on), alike
    ("common"), or nothing to each other ("separate": each is fitted alone).
    `family` is "logistic", "probit" or "poisson" where the response is 0/1 or a count, and the
    coefficients are to be log-odds or log-rates.
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
    infer = partial(_outcome, chosen, prior=law, settings=settings, holders=holders)
    link = None
    own: tuple[str, ...] = ()
    if family is None:
        outcome = infer(evidence)
    else:
        _check_family(chosen, family)
        fitted = fit_family(family, collection.study, evidence, law, infer)
        outcome = fitted.outcome
        evidence = fitted.evidence
        link = fitted.family
        own = fitted.cautions
    sentences = [*cautions(evidence, collection.study.columns, law, outcome), *own]
    apart = holders == "separate" or bool(np.isnan(outcome.residual_variance()))
    return Posterior(
        study=collection.study,
        method=chosen.name,
        outcome=outcome,
        contributions=_contributions(collection),
        caveat=" ".join(filter(None, [chosen.caveat, *sentences])),
        seed=settings.seed,
        warmup=settings.warmup,
        options=_options(chosen, prior, holders, family, settings),
        software=f"tacit {version('tacit-dp')}",
        pooled=None if apart else pool(evidence, law, outcome),
        family=link,
    )


def _outcome(
    method: Method, evidence: Evidence, prior: Prior, settings: Settings, holders: HoldersAre
) -> Outcome:
    """What the method gives; a sentence where numbers are too far apart in size for it."""
    try:
        outcome = _fitted(method, evidence, prior, settings, holders)
        usable = bool(np.isfinite(outcome.mean()).all())
    except np.linalg.LinAlgError:
        usable = False
    if not usable:
        raise MethodError(
            f"{method.name} cannot compute with these releases: their numbers are too far apart in "
            "size; leave the odd holder out, or choose another method"
        )
    return outcome


def _fitted(
    method: Method, evidence: Evidence, prior: Prior, settings: Settings, holders: HoldersAre
) -> Outcome:
    """The method's outcome for holders that differ, are alike, or are each alone."""
    if holders == "differ":
        return method.fit(evidence, prior, settings)
    if method.name != DEFAULT_METHOD:
        raise MethodError(
            f"holders: {method.name} takes holders to be alike; "
            f"leave it out, or use {DEFAULT_METHOD}"
        )
    if holders == "common":
        return method.fit(evidence, prior, replace(settings, spread=0.0))
    if evidence.holders == 1:
        raise MethodError("holders: one holder alone is what there is; leave it out")
    from tacit.analyst.methods.separate import separate

    return separate(evidence, prior, settings)


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


def _check_family(method: Method, family: str) -> None:
    if method.name != DEFAULT_METHOD:
        raise MethodError(f"family: {family} goes with {DEFAULT_METHOD}; leave the method out")


def _options(
    method: Method,
    prior: Prior | str | Path,
    holders: HoldersAre,
    family: FamilyName | None,
    settings: Settings,
) -> str:
    """The options of `tacit fit` that these choices are; a prior given in code has no name."""
    options: dict[str, object] = {
        "method": method.name,
        "prior": "(given in code)" if isinstance(prior, Prior) else prior,
    }
    if holders != "differ":
        options["holders"] = holders
    if family is not None:
        options["family"] = family
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
