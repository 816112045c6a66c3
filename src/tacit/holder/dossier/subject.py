"""What a dossier is about: a study and, where there is one, the account that pays for it."""

from dataclasses import dataclass

from tacit.holder.account import Account, Charge
from tacit.holder.ledger import Ledger
from tacit.study import Study


@dataclass(frozen=True)
class Subject:
    """A study, the data set that pays and its account, and what the holder says of itself."""

    study: Study
    dataset: str
    account: Account | None = None
    curator: str | None = None
    purpose: str | None = None

    @property
    def charges(self) -> tuple[Charge, ...]:
        """Everything that was ever charged to the data set."""
        return () if self.account is None else self.account.charges

    @property
    def own_charges(self) -> tuple[Charge, ...]:
        """The charges of this study, its scales among them."""
        return tuple(
            charge
            for charge in self.charges
            if charge.study_hash.partition("/")[0] == self.study.hash
        )

    @property
    def curators(self) -> tuple[str, ...]:
        """Who holds the rows: as stated, or as the charges of this study name them."""
        if self.curator is not None:
            return (self.curator,)
        return tuple(dict.fromkeys(charge.holder for charge in self.own_charges))


def subject_of(
    study: Study,
    ledger: Ledger,
    dataset: str | None = None,
    *,
    curator: str | None = None,
    purpose: str | None = None,
) -> Subject:
    """The study with the account of the data set that pays, if the ledger knows it."""
    name = ledger.paying(dataset)
    accounts = ledger.accounts() if ledger.exists() else []
    account = next((each for each in accounts if each.dataset == name), None)
    return Subject(study=study, dataset=name, account=account, curator=curator, purpose=purpose)
