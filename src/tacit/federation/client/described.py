"""A request as a person decides on it: the study in words, what would leave, cost, and keys.

One record for the command line and the desk.
"""

from dataclasses import dataclass

from tacit.federation.client.policy import Policy
from tacit.federation.client.requests import Request
from tacit.federation.keys import fingerprint
from tacit.holder.ledger import Ledger
from tacit.holder.ledger_file import canonical_name
from tacit.study import Study
from tacit.study.words import telling


@dataclass(frozen=True)
class Peer:
    """A holder that takes part in a secure sum, its key as people read it out, and who knows it."""

    name: str
    fingerprint: str
    note: str


@dataclass(frozen=True)
class Described:
    """What a person must know before approving."""

    request: Request
    study: Study
    origin: str
    tells: tuple[str, ...]
    peers: tuple[Peer, ...]
    leaves: str
    cost: str
    objection: str

    @property
    def state(self) -> str:
        """When it was asked for, and what was decided when."""
        decided = f" {self.request.decided}" if self.request.decided else ""
        return f"asked {self.request.asked}; {self.request.decision}{decided}"


def described(request: Request, policy: Policy) -> Described:
    """The request beside what the site's policy and ledger say."""
    study = request.agreement()
    return Described(
        request=request,
        study=study,
        origin="whoever may start runs at the server that this site is connected to",
        tells=tuple(
            f"it would be refused, which tells something, for {reason}" for reason in telling(study)
        ),
        peers=_peers(study, policy),
        leaves=_leaves(study, policy),
        cost=_cost(study, policy),
        objection=policy.objection(study).value,
    )


def _peers(study: Study, policy: Policy) -> tuple[Peer, ...]:
    """The others in a sum: it is private only if they are real, separate holders."""
    if study.secure_sum is None:
        return ()
    known = "pinned in the policy" if policy.peers is not None else "ask them to read it out"
    return tuple(
        Peer(
            name=name,
            fingerprint=fingerprint(key),
            note="this site" if name == policy.holder else known,
        )
        for name, key in study.secure_sum.holders.items()
    )


def _leaves(study: Study, policy: Policy) -> str:
    square = ", and y'y" if study.response_square else ""
    each = "" if study.response_count == 1 else f" for each of {', '.join(study.responses)}"
    sums = f"{study.d} by {study.d} for X'X, {study.d} for X'y{square}{each}"
    return f"{_form(study)}, {sums}; the study; the name {policy.holder!r}; no row"


def _form(study: Study) -> str:
    if study.secure_sum and study.visit_count > 1:
        return (
            f"{study.visit_count} masked vectors, one for each visit, of which others learn the "
            "sum alone, and of which later ones answer whatever the server then asks all holders"
        )
    if study.secure_sum:
        return "a masked vector, of which others learn the sum alone"
    if study.visit_count > 1 and len(study.planned_rows) > 1:
        return (
            f"{study.visit_count} files with noisy sums, one for each visit, of which later ones "
            "answer whatever the server then asks, once each, at no further cost"
        )
    return "one file with noisy sums"


def _cost(study: Study, policy: Policy) -> str:
    ledger = Ledger(policy.ledger)
    accounts = ledger.accounts() if ledger.exists() else []
    name = canonical_name(policy.dataset)
    spent = next((each.epsilon_spent for each in accounts if each.dataset == name), 0.0)
    return (
        f"epsilon = {study.epsilon:g} at delta = {study.delta:g}; "
        f"data set {policy.dataset!r} has spent {spent:.4g} "
        f"of at most {policy.most.epsilon_in_all:g}"
    )
