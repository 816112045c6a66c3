"""What a study lets be published, and how: the release form, its defaults, and secure sums."""

import math
from typing import TYPE_CHECKING, Annotated, Literal, Self

from pydantic import Field, StringConstraints, model_validator

from tacit.privacy.mechanism import Shape
from tacit.privacy.sensitivity import Weights, free_square_weight, lever
from tacit.records import Name, Record, at_most, must

if TYPE_CHECKING:
    from tacit.study.study import Study

LARGEST_ENTRY = 4.0
"""Largest entry of an encoded row after shrinking for which a block of rows has its full size
(holder/encode.py)."""
MOST_ENTRY = 32.0
"""Largest entry at all: blocks of such rows are 64 times smaller, so that sums stay exact."""
NEAR_SPHERE = 0.3
"""Default row radius over the usual row, without an intercept: nearly every row is longer, and is
put on the sphere."""
NEAR_USUAL = 0.8
"""The same with an intercept, which keeps rows from being short: a little under what even spread
would give."""
RESPONSE_SHARE = 0.8
"""Default response bound without an intercept: a row of usual length is clipped where its response
passes this share."""
SQUARE_WEIGHT = 0.3
"""Weight of y'y, against X'X, where it is not free: about two per cent more noise on the rest."""
COUNT_WEIGHT = 1 / 8
"""Weight of a noisy n against X'X: n is worth little noise, and so adds well under one per cent to
all the rest."""
EIGENVALUE_WEIGHT = 1 / 2
"""Weight of the smallest eigenvalue against X'X: it adds under three per cent (replace-one) or
seven (add-remove)."""
MOST_AVERAGED = 64
"""Largest group of averaged rows: products of two sums still fit into a block of exact sums
(holder/averaging.py)."""
LEAST_RADIUS = 1e-3
"""Smallest row radius: some hundreds of steps of the encoding's grid, so that rounding stays small
beside it."""
MOST_HOLDERS = 1000
"""Most holders of a secure sum, or of planned rows."""
MOST_PLANNED = 10**9
"""Most rows that a holder may plan."""

Count = Literal["exact", "noisy", "withheld", "public"]
PlannedRows = Annotated[
    tuple[Annotated[int, Field(ge=1, le=MOST_PLANNED)], ...],
    Field(strict=False, max_length=MOST_HOLDERS),
    at_most(MOST_HOLDERS),
]
"""Each holder's number of rows, as far as it is planned."""
PublicKey = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9+/]{43}=$")]
"""Ed25519, in base64."""


class ReleaseForm(Record):
    """What is published and how; defaults are functions of public quantities (docs/study.md)."""

    noise: Shape = "frobenius"
    row_radius: Annotated[float, Field(ge=LEAST_RADIUS, allow_inf_nan=False)] | None = None
    response_bound: Annotated[float, Field(gt=1e-4, le=1)] | None = None
    response_weight: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    response_square: bool | None = None
    smallest_eigenvalue: bool = False
    count: Count | None = None
    average: Annotated[int, Field(ge=1, le=MOST_AVERAGED)] = 1


class Weight(Record):
    """A column of survey weights, and the largest that counts: public, like a range."""

    column: Name
    most: Annotated[float, Field(gt=0, le=1e9)]


class SecureSum(Record):
    """A sum that is published in place of each holder's release: who takes part, what it survives.

    `holders` names each holder's public key. At least `least` of them must stay to the end, and
    the noise covers `colluding` of those, who may tell the server what they know.
    """

    holders: Annotated[
        dict[Name, PublicKey], Field(min_length=2, max_length=MOST_HOLDERS), at_most(MOST_HOLDERS)
    ]
    least: Annotated[int, Field(ge=2)]
    colluding: Annotated[int, Field(ge=0)]

    @model_validator(mode="after")
    def _check(self) -> Self:
        must(
            self.colluding < self.least <= len(self.holders),
            "secure_sum needs colluding < least, and least at most the number of holders",
        )
        must(
            2 * self.least > len(self.holders) + self.colluding,
            "secure_sum.least must be more than half of all holders and colluding ones together, "
            "or a server could divide them",
        )
        must(
            len(set(self.holders.values())) == len(self.holders),
            "secure_sum.holders must each have a key of their own",
        )
        return self

    @property
    def threshold(self) -> int:
        """How many holders must agree to unmask: so many that no two sums can both find as many."""
        return (len(self.holders) + self.colluding) // 2 + 1

    @property
    def covering(self) -> int:
        """How many honest holders' shares of noise there are at least."""
        return self.least - self.colluding


def weights_of(study: "Study") -> Weights:
    """Weights of all parts of a study's release against X'X.

    Those of y'y are found for one response that stands for all, and then divided over them.
    """
    radius = study.row_radius
    ratio = radius / study.response_bound
    average = study.release.average
    root = math.sqrt(study.response_count)
    response = root * study.response_weight
    is_free = study.relation == "replace-one" and average == 1 and response <= math.sqrt(2) * ratio
    square = SQUARE_WEIGHT * ratio**2
    if is_free:
        square = free_square_weight(radius, study.response_bound, response)
    count = radius**2 * COUNT_WEIGHT * lever(study.relation, average)
    return Weights(
        response=study.response_weight,
        square=square / root if study.response_square else 0.0,
        count=count if study.count == "noisy" else 0.0,
        eigenvalue=EIGENVALUE_WEIGHT if study.release.smallest_eigenvalue else 0.0,
    )
