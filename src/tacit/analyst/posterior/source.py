"""Source: what a posterior was inferred from, kept with it so that more can be asked of it."""

from dataclasses import dataclass, fields, replace
from typing import Literal

import numpy as np

from tacit.analyst.evidence import Evidence
from tacit.analyst.families.links import FamilyName
from tacit.analyst.methods.method import Settings
from tacit.analyst.prior import Prior

HoldersAre = Literal["differ", "common", "separate"]
MOST_NUMBERS = 200_000
"""Numbers of evidence up to which a posterior's file keeps them."""


@dataclass(frozen=True)
class Source:
    """Evidence of all columns of the study, whatever was asked of it, and how it was fitted."""

    evidence: Evidence
    prior: Prior  # of all columns
    prior_name: str  # as `tacit fit` takes it
    holders: HoldersAre
    settings: Settings
    family: FamilyName | None = None

    @property
    def is_small(self) -> bool:
        """Whether a posterior's file keeps it."""
        values = (getattr(self.evidence, field.name) for field in fields(self.evidence))
        arrays = [value.size for value in values if isinstance(value, np.ndarray)]
        return sum(arrays) <= MOST_NUMBERS


def of_columns(evidence: Evidence, places: tuple[int, ...]) -> Evidence:
    """What the evidence says of these columns, whatever goes with the others.

    The smallest eigenvalue of X'X bounds that of each of its blocks from below.
    """
    kept = list(places)
    if len(kept) == evidence.d:
        return evidence
    if evidence.frame is not None:
        from tacit.analyst.asked_of_visits import kept_columns

        return kept_columns(evidence, evidence.frame, kept)
    return replace(
        evidence, grams=evidence.grams[:, kept][:, :, kept], moments=evidence.moments[:, kept]
    )


def prior_of_columns(prior: Prior, places: tuple[int, ...]) -> Prior:
    """The prior of these coefficients, whatever the others are."""
    block = np.ix_(places, places)
    return replace(
        prior,
        mean=prior.mean[list(places)],
        covariance=prior.covariance[block],
        feature_scale=prior.feature_scale[block],
        feature_degrees=prior.feature_degrees - (prior.d - len(places)),
    )
