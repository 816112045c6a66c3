"""The desk itself: what its pages show and do, each by one call of the holder's side."""

import secrets
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from tacit.desk.chosen import OTHER, Chosen
from tacit.desk.errand import Errand
from tacit.desk.pages.account import ledger_page
from tacit.desk.pages.errand import rehearsal_page, released_page
from tacit.desk.pages.frame import Frame
from tacit.desk.pages.home import home
from tacit.desk.pages.study import study_page
from tacit.desk.setting import Setting, Source, source_named, uploaded_source
from tacit.desk.uploads import Uploads
from tacit.errors import DeskError, LedgerError
from tacit.holder.account import Account, Charge
from tacit.holder.dossier import dossier_of
from tacit.study import Study

if TYPE_CHECKING:
    from tacit.federation.client.described import Described
    from tacit.federation.client.requests import Request, Requests


MOST_NOTICES = 200
"""What pages were told that is still remembered."""


@dataclass(frozen=True)
class Notice:
    """What a page is to say when it is shown next, and what its form held."""

    complaint: str = ""
    news: str = ""
    text: str = ""
    chosen: Chosen | None = None


@dataclass
class Desk:
    """Studies that were opened, tables that were handed over, and errands under way."""

    setting: Setting
    uploads: Uploads
    room: str
    studies: dict[str, Study] = field(default_factory=dict)
    errands: dict[str, Errand] = field(default_factory=dict)
    notices: dict[str, Notice] = field(default_factory=dict)

    # Pages.

    def frame(self) -> Frame:
        """What every page needs to know."""
        waiting = 0
        if self.setting.policy is not None:
            waiting = sum(each.decision == "waiting" for each in self.requests().every())
        return Frame(
            room=self.room,
            ledger=str(self.setting.ledger.path),
            has_requests=self.setting.policy is not None,
            waiting=waiting,
        )

    def keep(self, notice: Notice) -> str:
        """Remember what a page is to say; gives the number by which it asks for it."""
        number = secrets.token_urlsafe(9)
        self.notices[number] = notice
        while len(self.notices) > MOST_NOTICES:
            self.notices.pop(next(iter(self.notices)))
        return number

    def home(self, notice: Notice) -> str:
        """The first page."""
        return home(
            self.frame(),
            self.setting,
            list(self.studies.values()),
            self.accounts(),
            complaint=notice.complaint,
            text=notice.text,
        )

    def study_page(self, study: Study, notice: Notice) -> str:
        """A study in words, with the form."""
        begin = Chosen(holder=self.setting.holder, dataset=self._usual_dataset())
        return study_page(
            self.frame(),
            study,
            self.setting,
            self.sources(),
            notice.chosen or begin,
            complaint=notice.complaint,
        )

    def errand_page(self, errand: Errand, notice: Notice) -> str:
        """A rehearsal or, once it is paid, the release."""
        if errand.charge is not None:
            return released_page(self.frame(), *self.charge(errand.charge))
        name = errand.rehearsal.cost.dataset
        account = next((each for each in self.accounts() if each.dataset == name), None)
        form = self.keep(Notice(chosen=errand.chosen))
        return rehearsal_page(self.frame(), errand, account, form=form, complaint=notice.complaint)

    def ledger_page(self, notice: Notice) -> str:
        """The timeline."""
        told = {"complaint": notice.complaint, "news": notice.news}
        return ledger_page(self.frame(), self.accounts(), **told)

    # Steps.

    def open_study(self, text: str) -> Study:
        """Read a study's text and keep it at the desk."""
        study = Study.from_toml(text)
        self.studies[study.hash] = study
        return study

    def study(self, digits: str) -> Study:
        """A study that is at the desk, by its hash."""
        study = self.studies.get(f"sha256:{digits}")
        if study is None:
            raise DeskError("this study is not at the desk: open it on the first page")
        return study

    def rehearse(self, study: Study, chosen: Chosen) -> Errand:
        """Read the chosen table, and keep what was seen."""
        source = source_named(tuple(self.sources()), chosen.source)
        said = replace(source, asked=chosen.asked(source.asked))
        errand = Errand.begin(study, said, chosen, self.setting)
        self.errands[errand.id] = errand
        return errand

    def errand(self, number: str) -> Errand:
        """An errand by its number."""
        if number not in self.errands:
            raise DeskError("this rehearsal is not at the desk any more: begin with the study")
        return self.errands[number]

    def publish(self, errand: Errand, seen: str, *, anyway: bool) -> None:
        """Pay and publish what was seen, once; the table is then removed."""
        if errand.charge is None and errand.rehearsal.shouts and not anyway:
            raise DeskError(
                "say that you have looked at what stands under “Stop and look”: nothing was paid"
            )
        errand.finish(seen)
        self.uploads.remove(errand.source.id)

    def discard(self, errand: Errand) -> None:
        """Forget a rehearsal, and remove its table."""
        self.errands.pop(errand.id, None)
        self.uploads.remove(errand.source.id)

    def set_limit(self, dataset: str, epsilon: str, delta: str) -> str:
        """Set a data set's limit, and say so."""
        try:
            limit = (float(epsilon.replace(",", ".")), float(delta.replace(",", ".")))
        except ValueError:
            raise LedgerError("ε and δ must be numbers, such as 2 and 1e-6") from None
        account = self.setting.ledger.set_limit(dataset, *limit)
        return (
            f"data set {account.dataset}: the limit is ε = {account.epsilon:g} at "
            f"δ = {account.delta:g}"
        )

    def dossier(self, study: Study, ending: str) -> str:
        """The dossier in one of its forms."""
        name = self.setting.holder or None
        return dossier_of(study, self.setting.ledger, curator=name).files()[ending]

    # What the holder's side knows.

    def sources(self) -> list[Source]:
        """What may be picked: configured ones, and tables that lie here."""
        return [*self.setting.sources, *map(uploaded_source, self.uploads.every())]

    def accounts(self) -> list[Account]:
        """Every data set of the ledger, if there is one."""
        return self.setting.ledger.accounts() if self.setting.ledger.exists() else []

    def charge(self, number: int) -> tuple[Charge, Account]:
        """A charge and the account that it belongs to."""
        for account in self.accounts():
            for charge in account.charges:
                if charge.id == number:
                    return charge, account
        raise DeskError(f"the ledger has no charge {number}")

    def _usual_dataset(self) -> str:
        names = self.setting.ledger.datasets()
        policy = self.setting.policy
        name = names[0] if len(names) == 1 else policy.dataset if policy is not None else None
        return f"={name}" if name in names else OTHER

    # A federation's requests.

    def requests(self) -> "Requests":
        """The folder of requests."""
        from tacit.federation.client.requests import Requests

        if self.setting.policy is None:
            raise DeskError("the desk was started without a site's policy")
        return Requests(self.setting.policy.requests)

    def described(self, digits: str) -> "Described":
        """A request with what a person must know."""
        from tacit.federation.client.described import described

        request = self.requests().find(digits)
        if self.setting.policy is None or request.study_hash != f"sha256:{digits}":
            raise DeskError("there is no such request")
        return described(request, self.setting.policy)

    def decide(self, digits: str, decision: str, seen: str) -> "Request":
        """Write down what the officer decided on what was shown."""
        from tacit.desk.pages.requests import shown

        described = self.described(digits)
        if shown(described) != seen:
            raise DeskError(
                "this request is no longer as the page showed it: nothing was decided; look again"
            )
        if decision == "approved":
            return self.requests().decide(described.request, "approved")
        if decision == "refused":
            return self.requests().decide(described.request, "refused")
        raise DeskError("decide: approve or refuse")
