"""Fit: from releases to a posterior, by a method's name."""

import shlex
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from importlib.metadata import version
from pathlib import Path

import numpy as np

from tacit.analyst.cautions import cautions, of_aside
from tacit.analyst.collection import Collection, collect
from tacit.analyst.evidence import Evidence
from tacit.analyst.families.fit import Fitted, Question, fit_family
from tacit.analyst.families.links import FamilyName
from tacit.analyst.methods import method_named
from tacit.analyst.methods.method import Method, Mixture, Outcome, Settings
from tacit.analyst.posterior.pooled import pool
from tacit.analyst.posterior.posterior import Contribution, Posterior
from tacit.analyst.posterior.source import HoldersAre, Source, of_columns, prior_of_columns
from tacit.analyst.prior import Prior, prior_named
from tacit.analyst.prior_file import load_prior
from tacit.errors import MethodError, PosteriorError, PriorError, ReleaseError
from tacit.release import Release
from tacit.study import Study
from tacit.study.submodel import Submodel, named_terms, of_terms, submodel, term_names

DEFAULT_METHOD = "noise-aware"
ALIKE = "Holders were taken to be alike: where they differ, these intervals are too narrow."
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
    only: str | Sequence[str] = (),
    without: str | Sequence[str] = (),
    response: str | None = None,
) -> Posterior:
    """Infer the coefficients from releases: a collection, or paths and documents to collect.

    `holders` says what noise-aware takes them to be: such as may "differ" (from three on), alike
    ("common"), or nothing to each other ("separate": each is fitted alone).
    `family` is "logistic", "probit" or "poisson" where the response is 0/1 or a count, and the
    coefficients are to be log-odds or log-rates.
    `prior` is a Prior, the name of one ("weak", "paper"), or the path of a TOML file with a
    `[prior]` table. `only` and `without` name terms of the study that a sub-model keeps, or does
    not: "age", "bmi^2", "age:sex". `response` is one of several that a study declares.
    """
    collection = _collected(releases)
    settings = Settings() if settings is None else settings
    chosen = method_named(method)
    _check_needs(chosen, collection)
    _check_settings(chosen, settings)
    study = collection.study
    names = term_names(study)
    kept = submodel(study, named_terms(only, names), named_terms(without, names), response)
    source = Source(
        evidence=collection.of_response(response),
        prior=prior_of(prior, study),
        prior_name="(given in code)" if isinstance(prior, Prior) else str(prior),
        holders=holders,
        settings=settings,
        family=family,
    )
    return _posterior(study, chosen, source, kept, _contributions(collection))


def refit(
    posterior: Posterior, only: str | Sequence[str] = (), without: str | Sequence[str] = ()
) -> Posterior:
    """A sub-model of a posterior's model, from what that was inferred from."""
    if posterior.source is None:
        raise PosteriorError(
            "this posterior does not hold the statistics that it was inferred from: "
            "fit the sub-model from the releases, with only or without"
        )
    names = term_names(posterior.model)
    kept = submodel(posterior.model, named_terms(only, names), named_terms(without, names))
    return _posterior(
        posterior.study,
        method_named(posterior.method),
        posterior.source,
        of_terms(posterior.study, term_names(kept.study), posterior.asked.response),
        posterior.contributions,
    )


def _posterior(
    study: Study,
    method: Method,
    source: Source,
    kept: Submodel,
    contributions: tuple[Contribution, ...],
) -> Posterior:
    """Infer what is asked from what there is."""
    evidence = of_columns(source.evidence, kept.places)
    stated = prior_of_columns(source.prior, kept.places)
    settings = source.settings
    frame = evidence.frame
    if frame is not None:
        if source.family is not None:  # which knows what bounds leave of answers
            frame = replace(frame, misfit=None)
        evidence = frame.unattenuated(replace(evidence, frame=frame))
    prior = stated if frame is None else frame.prior(stated)
    question = Question(
        study=kept.study,
        agreed=study,
        evidence=evidence,
        prior=prior,
        visits=source.evidence.frame,
        places=kept.places,
        from_first=stated.by_spread,
    )
    told = _told(method, source, question)
    between = None
    if frame is not None and isinstance(told.outcome, Mixture) and told.outcome.differing:
        spread = told.outcome.differing.usual(told.outcome.weights)
        between = frame.between(spread, evidence)
        prior = frame.prior(stated, between)
        told = _told(method, source, replace(question, prior=prior))
    outcome = told.outcome
    if frame is not None and source.family is None and isinstance(outcome, Mixture):
        word = replace(evidence, frame=replace(frame, surely=0.0))
        first = frame.prior(stated, between, at_its_word=True)
        whole = _told(method, source, replace(question, evidence=word, prior=first)).outcome
        outcome = outcome.about(whole) if isinstance(whole, Mixture) else outcome
    evidence = told.evidence
    apart = source.holders == "separate" or bool(np.isnan(outcome.residual_variance()))
    pooled = None if apart else pool(evidence, prior, outcome)
    if frame is not None:
        pulls = stated.by_spread and source.family is None
        outcome = frame.outcome(outcome, prior.covariance if pulls else None)
        evidence = frame.evidence(evidence)
        pooled = None if pooled is None else frame.pooled(pooled)
    sentences = [*cautions(evidence, kept.study.columns, prior, outcome), *told.cautions]
    if source.holders == "common" and evidence.holders > 1:
        sentences.append(ALIKE)
    if frame is not None:
        holders = [contribution.holder for contribution in contributions]
        sentences += of_aside(outcome, kept.study.columns, holders)
    return Posterior(
        study=study,
        method=method.name,
        outcome=outcome,
        contributions=contributions,
        caveat=" ".join(filter(None, [method.caveat, *sentences])),
        seed=settings.seed,
        warmup=settings.warmup,
        options=_options(method, source, kept, study.response.name),
        software=f"tacit {version('tacit-dp')}",
        pooled=pooled,
        question=kept.study if kept.left_out or study.responses else None,
        source=source,
        family=told.family,
    )


def _told(method: Method, source: Source, question: Question) -> Fitted:
    """What the method says, of a straight line or a family."""
    infer = partial(_outcome, method, settings=source.settings)
    if source.family is None:
        outcome = infer(question.evidence, question.prior, holders=source.holders)
        return Fitted(outcome=outcome, evidence=question.evidence, family=None, cautions=())
    _check_family(source.family, method, source.holders)
    return fit_family(
        source.family,
        question,
        first=partial(infer, holders="common"),
        infer=partial(infer, holders=source.holders),
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


def _check_family(family: str, method: Method, holders: HoldersAre) -> None:
    if method.name != DEFAULT_METHOD:
        raise MethodError(f"family: {family} goes with {DEFAULT_METHOD}; leave the method out")
    if holders == "separate":
        raise MethodError(
            f"family: {family} is fitted to holders together; "
            "for one of them alone, fit its release by itself"
        )


def _options(method: Method, source: Source, kept: Submodel, source_response: str) -> str:
    """The options of `tacit fit` that these choices are; a prior given in code has no name."""
    settings = source.settings
    options: dict[str, object] = {"method": method.name, "prior": source.prior_name}
    if kept.study.response.name != source_response:
        options["response"] = kept.study.response.name
    if kept.left_out:
        options["without"] = ",".join(kept.left_out)
    if source.holders != "differ":
        options["holders"] = source.holders
    if source.family is not None:
        options["family"] = source.family
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
        prior = load_prior(prior, study) if is_file else prior_named(str(prior), study.d)
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
