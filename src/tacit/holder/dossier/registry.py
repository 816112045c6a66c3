"""The dossier for machines: an entry for a registry of differential-privacy deployments.

Its parts are those that the registry of the OpenDP community asks for at its most open tier: the
deployment, the flavour of privacy with the data domain and what is unprotected, the unit, the
privacy loss, the model, the accounting, the implementation.
"""

from importlib.metadata import version
from typing import Literal

from tacit.holder.dossier.algorithm import is_divided
from tacit.holder.dossier.guarantee import NOT_COVERED
from tacit.holder.dossier.subject import Subject
from tacit.privacy.mechanism import Noise
from tacit.privacy.noise import sampler_name
from tacit.privacy.sensitivity import Relation
from tacit.records import Record, now
from tacit.study import Study, words

REFERENCES = (
    "Balle and Wang (2018), Improving the Gaussian mechanism for differential privacy, ICML",
    "Canonne, Kamath and Steinke (2020), The discrete Gaussian for differential privacy, NeurIPS",
    "Dong, Roth and Su (2022), Gaussian differential privacy, JRSS B",
    "Mironov (2012), On significance of the least significant bits for differential privacy, CCS",
    "NIST SP 800-226 (2025), Guidelines for Evaluating Differential Privacy Guarantees",
)
"""What the guarantee rests on."""


class Loss(Record):
    """A point (ε, δ) of a guarantee, and the parameter μ of the whole curve."""

    epsilon: float
    delta: float
    mu: float


class Deployment(Record):
    """Who publishes what, for what, and when."""

    name: str
    study_hash: str
    curators: tuple[str, ...]
    intended_use: str | None
    data_product: str
    publication_dates: tuple[str, ...]


class Column(Record):
    """The public domain of a column."""

    name: str
    range: tuple[float, float] | None = None
    levels: tuple[str, ...] | None = None


class Flavour(Record):
    """Which differential privacy, between which tables."""

    name: Literal["approximate differential privacy"] = "approximate differential privacy"
    exact_form: Literal["Gaussian differential privacy"] = "Gaussian differential privacy"
    neighbours: Relation
    neighbours_in_words: str
    data_domain: tuple[Column, ...]
    unprotected: tuple[str, ...]


class Spent(Record):
    """What a data set has spent of its limit."""

    dataset: str
    charges: int
    spent: Loss
    limit: Loss


class PrivacyLoss(Record):
    """The loss of one release, and of all that the data set has paid for."""

    release: Loss
    dataset: Spent | None


class Accounting(Record):
    """How losses add up."""

    composition: str = "exact for Gaussian mechanisms, adaptive: the squares of mu add up"
    post_processing: str = "whatever is computed from a release keeps its guarantee"
    enforced_by: str = "a durable ledger of the holder's, charged before noise is drawn"


class Implementation(Record):
    """What computed it, with which constants; no `noise` where the budget is divided."""

    software: str
    mechanism: str
    sensitivity: float
    multiplier: float
    noise: Noise | None
    proofs: str = "docs/privacy.md; Coq: proofs/Theorems.v, docs/proofs.md"
    references: tuple[str, ...] = REFERENCES


class Entry(Record):
    """The whole entry."""

    format: Literal["tacit-deployment"] = "tacit-deployment"
    version: Literal[1] = 1
    written: str
    deployment: Deployment
    flavour: Flavour
    privacy_unit: str
    privacy_loss: PrivacyLoss
    model: Literal["central", "distributed"]
    accounting: Accounting = Accounting()
    implementation: Implementation


def entry_of(subject: Subject) -> Entry:
    """The entry of a study, with what its data set has spent."""
    study = subject.study
    mechanism = study.mechanism()
    return Entry(
        written=now(),
        deployment=_deployment(subject),
        flavour=Flavour(
            neighbours=study.relation,
            neighbours_in_words=words.neighbours(study),
            data_domain=_domain(study),
            unprotected=(words.count(study), *NOT_COVERED),
        ),
        privacy_unit=words.unit(study),
        privacy_loss=PrivacyLoss(
            release=Loss(epsilon=study.epsilon, delta=study.delta, mu=mechanism.mu),
            dataset=_spent(subject),
        ),
        model="central" if study.secure_sum is None else "distributed",
        implementation=Implementation(
            software=f"tacit-dp {version('tacit-dp')}",
            mechanism=sampler_name(),
            sensitivity=mechanism.sensitivity,
            multiplier=mechanism.multiplier,
            noise=None if is_divided(study) else mechanism.noise,
        ),
    )


def _deployment(subject: Subject) -> Deployment:
    study = subject.study
    square = ", y'y" if study.response_square else ""
    return Deployment(
        name=study.name,
        study_hash=study.hash,
        curators=subject.curators,
        intended_use=subject.purpose,
        data_product=(
            f"noisy sums (X'X, X'y{square}) of one linear "
            f"regression of {study.response.modelled} on {study.d} columns"
        ),
        publication_dates=tuple(
            charge.time for charge in subject.own_charges if charge.release is not None
        ),
    )


def _domain(study: Study) -> tuple[Column, ...]:
    features = (
        Column(name=each.name, range=each.range, levels=each.all_levels or None)
        for each in study.features
    )
    return (Column(name=study.response.name, range=study.response.range), *features)


def _spent(subject: Subject) -> Spent | None:
    account = subject.account
    if account is None:
        return None
    return Spent(
        dataset=account.dataset,
        charges=len(account.charges),
        spent=Loss(epsilon=account.epsilon_spent, delta=account.delta, mu=account.spent),
        limit=Loss(epsilon=account.epsilon, delta=account.delta, mu=account.limit),
    )
