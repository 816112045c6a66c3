r"""Family: what turns a posterior of a straight line into one of log-odds or log-rates.

Coefficients of the family are β = A b + a, b those of the straight line in scaled units
(analyst/families/score.py). Every reading of a posterior is an affine map of its coefficients
(units.py), so a family is one more such map, put between the two: all that is read off a
straight line, holders and privacy's share included, is read off a family in the same way.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tacit.analyst.families.links import FamilyName, Link, link_named
from tacit.analyst.posterior.units import Units
from tacit.study import Study

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Family:
    """A family by name, its map, and the variance of responses over what the family says."""

    name: FamilyName
    matrix: Array  # (d, d): A
    offset: Array  # (d,): a
    dispersion: float = 1.0

    @property
    def link(self) -> Link:
        """Its mean function, and words."""
        return link_named(self.name)

    def coefficients(self, line: Array) -> Array:
        """β at coefficients of a straight line."""
        beta: Array = self.matrix @ line + self.offset
        return beta

    def through(self, units: Units) -> Units:
        """Units of β as a map of b."""
        return Units(
            names=units.names,
            matrix=units.matrix @ self.matrix,
            offset=units.matrix @ self.offset + units.offset,
            response=units.response,
        )


def on_link_scale(study: Study, link: Link) -> Study:
    """The study with the link's scale as its response: not centred, not divided, named so."""
    name = f"{link.scale} of {study.response.name}"
    response = study.response.model_copy(update={"name": name, "range": (-1.0, 1.0)})
    return study.model_copy(update={"response": response})
