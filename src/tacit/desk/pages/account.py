"""The ledger as a timeline: what was spent, on what, and what is left."""

from collections.abc import Sequence

from tacit.desk.pages.frame import NOTHING, Frame, figures, good, note, paragraph, problem
from tacit.desk.pages.pictures import Share, budget
from tacit.holder.account import Account, Charge
from tacit.holder.rehearsal import Rehearsal
from tacit.page.markup import Html, html, join, section
from tacit.page.numbers import moment, percent, power
from tacit.privacy.gaussian import epsilon_of, mu_of


def ledger_page(
    frame: Frame, accounts: Sequence[Account], *, complaint: str = "", news: str = ""
) -> str:
    """Every data set with its charges."""
    return frame.page(
        "The ledger",
        problem(complaint) if complaint else NOTHING,
        good(news) if news else NOTHING,
        paragraph(
            "What was ever spent on each data set, in the order in which it happened. Charges are "
            "a hash chain: none can be changed or go missing unseen."
        ),
        *(_account(frame, place, account) for place, account in enumerate(accounts)),
        NOTHING if accounts else paragraph("Nothing was spent yet."),
        section("limit", "Set a limit", _limit(frame, accounts)),
        here="ledger",
    )


def _account(frame: Frame, place: int, account: Account) -> Html:
    shares = [
        Share(f"charge {charge.id}", share_of(charge.mu, account.limit), f"part{k % 2}")
        for k, charge in enumerate(account.charges)
    ]
    return section(
        f"dataset-{place}",
        f"Data set {account.dataset}",
        figures(
            {
                "left": f"ε = {account.epsilon_left:.4g}",
                "spent": f"ε = {account.epsilon_spent:.4g}",
                "limit": f"ε = {account.epsilon:g}",
                "at": f"δ = {power(account.delta)}",
            }
        ),
        budget(f"budget-{place}", shares),
        note(
            "The squares of noise add up, not the ε: so spent and left make more than the limit "
            "when they are added, and are right. The bar shows the squares."
        ),
        _timeline(frame, account),
    )


def _timeline(frame: Frame, account: Account) -> Html:
    items = []
    for place, charge in enumerate(account.charges, 1):
        spent = sum(each.mu**2 for each in account.charges[:place]) ** 0.5
        items.append(_event(frame, charge, account, spent))
    if not items:
        return paragraph("Nothing was charged to it yet.")
    return html('<ol class="timeline">$items</ol>', items=join(items))


def _event(frame: Frame, charge: Charge, account: Account, spent: float) -> Html:
    return html(
        '<li><p class="when">$when</p><p><b>$study</b>, published as $holder: ε = $epsilon at '
        "δ = $delta, $share of the limit. Spent until then: ε = $spent.</p><p>$file</p></li>",
        when=moment(charge.time),
        study=charge.study,
        holder=charge.holder,
        epsilon=f"{charge.epsilon:.4g}",
        delta=power(charge.delta),
        share=percent(share_of(charge.mu, account.limit)),
        spent=f"{epsilon_of(spent, account.delta):.4g}",
        file=_file(frame, charge),
    )


def _file(frame: Frame, charge: Charge) -> Html:
    if not charge.is_used:
        return html(
            "Interrupted before anything left: publishing the study again finishes it, at no "
            "further cost."
        )
    return html(
        '<a href="$room/charges/$number/release" download>Save the $what of charge $number again'
        "</a>, for free",
        room=frame.room,
        number=charge.id,
        what="release" if charge.batches is None else "stream's log",
    )


def _limit(frame: Frame, accounts: Sequence[Account]) -> Html:
    name = accounts[0].dataset if len(accounts) == 1 else ""
    return html(
        '<form method="post" action="$room/ledger/limit" class="card">'
        '<p><label for="limit-dataset">Data set</label>'
        '<input id="limit-dataset" name="dataset" value="$name" required maxlength="200"></p>'
        '<p><label for="limit-epsilon">Most ε that may ever be spent on it</label>'
        '<input id="limit-epsilon" name="epsilon" inputmode="decimal" required></p>'
        '<p><label for="limit-delta">at δ</label>'
        '<input id="limit-delta" name="delta" value="1e-6" required></p>'
        '<p><button type="submit">Set the limit</button></p></form>',
        room=frame.room,
        name=name,
    )


def after(rehearsal: Rehearsal, account: Account | None) -> Html:
    """The budget as it would be after paying."""
    cost = rehearsal.cost
    limit = mu_of(cost.limit, cost.limit_delta)
    spent = 0.0 if account is None else account.spent
    shares = [
        Share("spent so far", share_of(spent, limit), "part0"),
        Share("this release", share_of(mu_of(cost.epsilon, cost.delta), limit), "privacy"),
    ]
    return budget("budget", [each for each in shares if each.share > 0])


def share_of(mu: float, limit: float) -> float:
    """The share of a limit that a charge takes: squares of μ add up."""
    return min(1.0, (mu / limit) ** 2)
