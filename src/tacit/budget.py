"""Budget: what several fits on the same rows may spend together, in one process.

Charges compose exactly, as in a holder's ledger. A budget lives in memory and is meant for one
program; where rows stay and programs come and go, publish with a ledger instead.
"""

import threading
from typing import Any, Self

from tacit.errors import BudgetError
from tacit.privacy.account import Account, is_limit
from tacit.privacy.gaussian import DELTA_RANGE, EPSILON_RANGE, epsilon_of
from tacit.privacy.sensitivity import Relation


class Budget:
    """At most (ε, δ) for everything that is charged to it, whoever shares it.

    Copies, scikit-learn's clones among them, are the budget itself. A pickled one, in a file or
    another process, is sealed: it tells what was spent until then and admits no charge, since two
    processes could not know of each other's.
    """

    def __init__(self, epsilon: float, delta: float) -> None:
        if not is_limit(epsilon, delta):
            raise BudgetError(
                f"a budget needs epsilon in {EPSILON_RANGE} and delta in {DELTA_RANGE}"
            )
        self._account = Account(epsilon=epsilon, delta=delta, mus=(), relation=None)
        self._lock: threading.Lock | None = threading.Lock()

    @property
    def epsilon(self) -> float:
        """ε of the limit."""
        return self._account.epsilon

    @property
    def delta(self) -> float:
        """δ of the limit."""
        return self._account.delta

    @property
    def charges(self) -> tuple[float, ...]:
        """μ of each charge so far."""
        return self._account.mus

    @property
    def epsilon_spent(self) -> float:
        """ε of all charges together, at the budget's δ."""
        return self._account.epsilon_spent

    @property
    def epsilon_left(self) -> float:
        """ε of the largest charge that still fits, at the budget's δ."""
        return self._account.epsilon_left

    def charge(self, mu: float, relation: Relation) -> None:
        """Take a charge, or refuse it and take nothing."""
        if self._lock is None:
            raise BudgetError(
                "this budget came from a pickle and is sealed: fit where it was made, "
                "with n_jobs=1 or joblib.parallel_config('threading')"
            )
        with self._lock:
            account = self._account
            if account.mixes(relation):
                raise BudgetError(
                    f"this budget was charged under {account.relation}: "
                    f"{relation} cannot be added up with it"
                )
            if not account.admits(mu):
                raise BudgetError(self._too_much(mu))
            self._account = Account(
                epsilon=account.epsilon,
                delta=account.delta,
                mus=(*account.mus, mu),
                relation=relation,
            )

    def _too_much(self, mu: float) -> str:
        return (
            f"the fit needs epsilon = {epsilon_of(mu, self.delta):.4g} at delta = {self.delta:g}, "
            f"but {len(self.charges)} fits left epsilon = {self.epsilon_left:.4g} "
            f"of the budget's {self.epsilon:g}: nothing was released; "
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
        return vars(self) | {"_lock": None}
