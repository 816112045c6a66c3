"""Paying: a charge that is about to be made, and what it would leave."""

from dataclasses import dataclass, replace

from tacit.errors import LedgerError
from tacit.holder.account import Account, Charge
from tacit.holder.ledger import Ledger
from tacit.holder.ledger_file import canonical_name
from tacit.holder.rehearsal import Cost
from tacit.privacy.sensitivity import Relation


@dataclass(frozen=True)
class Paying:
    """Which ledger pays what, and what was said about it."""

    ledger: Ledger
    charge: Charge
    relation: Relation
    again: bool
    new_dataset: bool
    limit: tuple[float, float] | None

    def cost(self) -> Cost:
        """What is spent and left before and after; nothing is written."""
        before = self._before()
        refusal = None
        try:
            after = self.ledger.trial(
                self.charge,
                self.relation,
                again=self.again,
                new_dataset=self.new_dataset,
                limit=self.limit,
            )
        except LedgerError as error:
            refusal = str(error)
            after = before
        return Cost(
            dataset=before.dataset,
            epsilon=self.charge.epsilon,
            delta=self.charge.delta,
            limit=before.epsilon,
            limit_delta=before.delta,
            spent=before.epsilon_spent,
            left=before.epsilon_left,
            spent_afterwards=after.epsilon_spent,
            left_afterwards=after.epsilon_left,
            is_new=not before.charges,
            refusal=refusal,
        )

    def _before(self) -> Account:
        """The account as it is, or as a data set without a limit would begin."""
        charge = replace(self.charge, dataset=canonical_name(self.charge.dataset))
        accounts = self.ledger.accounts() if self.ledger.exists() else []
        known = (account for account in accounts if account.dataset == charge.dataset)
        epsilon, delta = self.limit or (charge.epsilon, charge.delta)
        new = Account(
            epsilon=epsilon,
            delta=delta,
            mus=(),
            relation=None,
            dataset=charge.dataset,
            charges=(),
        )
        return next(known, new)
