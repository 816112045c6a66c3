"""Budget: what several fits on the same rows may spend together, in one process.

Charges compose exactly, as in a holder's ledger. A budget lives in memory and is meant for one program; where rows stay and
programs come and go, publish with a ledger instead.
"""

import threading
from typing import Any, Self

from tacit.errors import BudgetError
from tacit.privacy.gaussian import DELTA_RANGE, EPSILON_RANGE, compose, epsilon_of, mu_of, remaining
from tacit.privacy.sensitivity import Relation


class Budget:
    """At most (ε, δ) for everything that is charged to it, whoever shares it.

    Copies, scikit-learn's clones among them, are the budget itself. A pickled one, in a file or another process, is sealed: it tells
    what was spent until then and admits no charge, since two processes could not know of each other's.
    """

    def __init__(self, epsilon: float, delta: float) -> None:
        if not (
            EPSILON_RANGE[0] <= epsilon <= EPSILON_RANGE[1]
            and DELTA_RANGE[0] <= delta <= DELTA_RANGE[1]
        ):
            raise BudgetError(
                f"a budget needs epsilon in {EPSILON_RANGE} and delta in {DELTA_RANGE}"
            )
        self.epsilon, self.delta = epsilon, delta
        self._charges: list[float] = []
        self._relation: Relation | None = None
        self._lock: threading.Lock | None = threading.Lock()

    @property
    def charges(self) -> tuple[float, ...]:
        """μ of each charge so far."""
        return tuple(self._charges)

    @property
    def epsilon_spent(self) -> float:
        """ε of all charges together, at the budget's δ."""
        return epsilon_of(compose(self._charges), self.delta) if self._charges else 0.0

    @property
    def epsilon_left(self) -> float:
        """ε of the largest charge that still fits, at the budget's δ."""
        left = remaining(mu_of(self.epsilon, self.delta), compose(self._charges))
        return min(epsilon_of(left, self.delta), self.epsilon) if left > 0 else 0.0

    def charge(self, mu: float, relation: Relation) -> None:
        """Take a charge, or refuse it and take nothing."""
        if self._lock is None:
            raise BudgetError(
                "this budget came from a pickle and is sealed: fit where it was made, with n_jobs=1 or joblib.parallel_config('threading')"
            )
        with self._lock:
            if self._relation not in (None, relation):
                raise BudgetError(
                    f"this budget was charged under {self._relation}: {relation} cannot be added up with it"
                )
            if compose([*self._charges, mu]) > mu_of(self.epsilon, self.delta):
                raise BudgetError(self._too_much(mu))
            self._charges.append(mu)
            self._relation = relation

    def _too_much(self, mu: float) -> str:
        return (
            f"the fit needs epsilon = {epsilon_of(mu, self.delta):.4g} at delta = {self.delta:g}, but {len(self._charges)} fits left "
            f"epsilon = {self.epsilon_left:.4g} of the budget's {self.epsilon:g}: nothing was released; "
            "give the estimator a smaller epsilon, or decide on a larger budget"
        )

    def __repr__(self) -> str:
        return f"Budget(epsilon={self.epsilon:g}, delta={self.delta:g})"

    # Shared, not copied.

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    def __sklearn_clone__(self) -> Self:
        return self

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"_lock": None, "_charges": list(self._charges)}
