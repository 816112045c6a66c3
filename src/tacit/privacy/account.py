"""Account: what was spent of a limit and what is left, composed exactly.

For a ledger on disk and a budget in memory.
"""

from dataclasses import dataclass

from tacit.privacy.gaussian import (
    DELTA_RANGE,
    EPSILON_RANGE,
    compose,
    epsilon_of,
    mu_of,
    remaining,
)
from tacit.privacy.sensitivity import Relation


@dataclass(frozen=True)
class Account:
    """A limit (ε, δ), the μ of every charge so far, and the relation that all of them have."""

    epsilon: float
    delta: float
    mus: tuple[float, ...]
    relation: Relation | None

    @property
    def limit(self) -> float:
        """The limit as μ."""
        return mu_of(self.epsilon, self.delta)

    @property
    def spent(self) -> float:
        """All charges as one μ."""
        return compose(self.mus)

    @property
    def epsilon_spent(self) -> float:
        """ε of all charges together, at the limit's δ."""
        return epsilon_of(self.spent, self.delta) if self.mus else 0.0

    @property
    def epsilon_left(self) -> float:
        """ε of the largest charge that still fits, at the limit's δ."""
        left = remaining(self.limit, self.spent)
        return min(epsilon_of(left, self.delta), self.epsilon) if left > 0 else 0.0

    @property
    def adds_up(self) -> bool:
        """Whether something is spent and something left: together they exceed the limit."""
        return 0 < self.spent < self.limit

    def admits(self, mu: float) -> bool:
        """Whether one more charge stays within the limit."""
        return compose([*self.mus, mu]) <= self.limit

    def mixes(self, relation: Relation) -> bool:
        """Whether charges were made under another relation: the two cannot be added up."""
        return self.relation not in {None, relation}


def is_limit(epsilon: float, delta: float) -> bool:
    """Whether (ε, δ) lies in the ranges that calibration was tested for."""
    return (
        EPSILON_RANGE[0] <= epsilon <= EPSILON_RANGE[1]
        and DELTA_RANGE[0] <= delta <= DELTA_RANGE[1]
    )
