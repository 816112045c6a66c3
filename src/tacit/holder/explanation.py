"""How a data set's charges add up, in paragraphs for whoever audits the ledger."""

from tacit.holder.account import Account
from tacit.privacy.gaussian import epsilon_of


def explanation(account: Account) -> list[str]:
    """Why spent and left are not the limit together, with this data set's own numbers."""
    opening = (
        f"Data set {account.dataset!r} may spend epsilon = {account.epsilon:g} at delta = "
        f"{account.delta:g} in all. Spent: {account.epsilon_spent:.4g}. Left: "
        f"{account.epsilon_left:.4g}, which is the largest single charge that still fits."
    )
    rule = (
        "What two releases tell together is less than the sum of what each tells. Noise of this "
        "kind has one number, mu, for each charge, and the squares of these add up: charges of mu "
        "= 0.3 and 0.4 are together one of 0.5. Epsilon at a delta is a reading of mu, as a "
        "temperature can be read in two scales, and epsilons themselves do not add up."
    )
    return [opening, rule, *_charges(account), _limit(account)]


def _charges(account: Account) -> list[str]:
    if not account.charges:
        return ["Nothing was charged yet."]
    entries = [
        f"charge {charge.id}: epsilon = {epsilon_of(charge.mu, account.delta):.4g}, mu = "
        f"{charge.mu:.4g}, its square {charge.mu**2:.4g}"
        for charge in account.charges
    ]
    total = (
        f"The squares' sum is {account.spent**2:.4g}, so mu = {account.spent:.4g} in all, which "
        f"is epsilon = {account.epsilon_spent:.4g} at delta = {account.delta:g}."
    )
    return ["; ".join(entries) + ".", total]


def _limit(account: Account) -> str:
    left = max(account.limit**2 - account.spent**2, 0.0)
    return (
        f"The limit is mu = {account.limit:.4g}, its square {account.limit**2:.4g}. What is left "
        f"of that is {left:.4g}, so mu = {left**0.5:.4g}, which is epsilon = "
        f"{account.epsilon_left:.4g} at delta = {account.delta:g}."
    )
