"""What a ledger says when it refuses: the rule, and the way out."""

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from tacit.errors import BudgetError, LedgerError
from tacit.rows.names import near

MOST_NAMED = 3
"""Data sets that a refusal names."""


class Spent(Protocol):
    """What a refusal tells of an account."""

    @property
    def dataset(self) -> str: ...  # noqa: D102
    @property
    def epsilon(self) -> float: ...  # noqa: D102
    @property
    def delta(self) -> float: ...  # noqa: D102
    @property
    def epsilon_left(self) -> float: ...  # noqa: D102


def too_much(account: Spent, epsilon: float, delta: float) -> BudgetError:
    """A charge does not fit what is left."""
    return BudgetError(
        f"publishing needs epsilon = {epsilon:g} at delta = {delta:g}, "
        f"but data set {account.dataset!r} has epsilon = {account.epsilon_left:.4g} "
        f"at delta = {account.delta:g} left of its limit {account.epsilon:g}: "
        "nothing was published; lower epsilon, raise the limit with `tacit ledger limit`, or ask "
        "more of what is already released, at no cost (docs/questions.md, Budget gone)"
    )


def repeated(dataset: str, number: int) -> LedgerError:
    """The same study was published from the data set before."""
    return LedgerError(
        f"this study was published from data set {dataset!r} already, as charge {number}: "
        f"`tacit ledger export {number}` gives that release again for free, "
        "and `again` pays for a new one"
    )


def unknown_dataset(dataset: str, names: Sequence[str]) -> LedgerError:
    """A name that the ledger does not know, beside others."""
    known = ", ".join(map(repr, names[:MOST_NAMED]))
    if len(names) > MOST_NAMED:
        known += ", …"
    close = near(dataset, names)
    use = f"did you mean {close[0]!r}? Use" if close else "use"
    return LedgerError(
        f"this ledger knows the data set {known}, not {dataset!r}: nothing was paid; "
        f"{use} that name, or say `new_dataset` if the rows are of other persons"
    )


def other_dataset(dataset: str, other: str) -> LedgerError:
    """The same study and holder were charged to another data set."""
    return LedgerError(
        f"this holder published this study from data set {other!r} already: nothing was paid; "
        f"say `new_dataset` if the rows of {dataset!r} are of other persons"
    )


def older_copy(path: Path) -> LedgerError:
    """The ledger has fewer charges than its witness knows of."""
    return LedgerError(
        f"the ledger {str(path)!r} lacks charges that were made before: it was put back from an "
        "older copy, or is another one; put the newest back, or enter what is missing with "
        "`tacit ledger mend`"
    )


def still_missing(path: Path, count: int) -> str:
    """Mending left a gap."""
    return (
        f"the ledger {str(path)!r} still lacks {count} charges that were made: give the releases "
        "they paid for as well, or say `accept_loss` and lower the limit by what they may have "
        "spent"
    )


def unusable(path: Path, error: Exception) -> str:
    """SQLite or the system refused.

    It may quote what is damaged, so only printable letters are told.
    """
    reason = "".join(letter if letter.isprintable() else " " for letter in str(error)[:200])
    return f"the ledger {str(path)!r} cannot be used: {reason}"
