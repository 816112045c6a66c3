"""The whole dossier, and the three files that it is written to."""

from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import version
from pathlib import Path

from tacit.files import write_whole
from tacit.holder.dossier.algorithm import algorithm
from tacit.holder.dossier.blocks import Chapter
from tacit.holder.dossier.deployment import by_hand, deployment
from tacit.holder.dossier.guarantee import guarantee
from tacit.holder.dossier.markdown import as_markdown
from tacit.holder.dossier.page import as_page
from tacit.holder.dossier.registry import entry_of
from tacit.holder.dossier.subject import Subject, subject_of
from tacit.holder.ledger import Ledger
from tacit.page.numbers import moment, power
from tacit.records import now
from tacit.study import Study


@dataclass(frozen=True)
class Dossier:
    """What a study promises and its data set has spent, chapter by chapter."""

    subject: Subject

    @property
    def title(self) -> str:
        """What it is about."""
        return f"The privacy of study {self.subject.study.name}"

    @property
    def lead(self) -> str:
        """What it is for."""
        return (
            "For an ethics board or a data-protection officer: what the study promises to the "
            "persons in the table, how, and what was spent so far; in the order of NIST SP "
            "800-226, Guidelines for Evaluating Differential Privacy Guarantees."
        )

    @property
    def facts(self) -> dict[str, str]:
        """The figures that are asked for first."""
        study = self.subject.study
        account = self.subject.account
        spent = "nothing yet"
        if account is not None:
            spent = f"ε = {account.epsilon_spent:.4g} of {account.epsilon:g}"
        return {
            "one release": f"ε = {study.epsilon:g}, δ = {power(study.delta)}",
            "data set": self.subject.dataset,
            "spent so far": spent,
            "held by": ", ".join(self.subject.curators) or "not stated",
        }

    @cached_property
    def chapters(self) -> tuple[Chapter, ...]:
        """The whole, in the order of NIST SP 800-226."""
        makers = (guarantee, algorithm, deployment, by_hand)
        return tuple(make(self.subject) for make in makers)

    @cached_property
    def origin(self) -> str:
        """What wrote it, from what, and when."""
        return (
            f"Written by tacit-dp {version('tacit-dp')} on {moment(now())} from the study "
            f"{self.subject.study.hash} and the holder's ledger; it holds nothing that depends "
            "on a row."
        )

    def files(self) -> dict[str, str]:
        """Its three forms by the ending of their file's name."""
        return {
            ".html": as_page(self),
            ".md": as_markdown(self),
            ".json": entry_of(self.subject).model_dump_json(indent=2) + "\n",
        }


def dossier_of(
    study: Study,
    ledger: Ledger | str | Path,
    dataset: str | None = None,
    *,
    curator: str | None = None,
    purpose: str | None = None,
) -> Dossier:
    """The dossier of a study, with the account of the data set that pays for it.

    `curator` says who holds the rows and `purpose` what the study is for; without them the page
    has a line to fill in by hand.
    """
    book = Ledger.at(ledger)
    return Dossier(subject_of(study, book, dataset, curator=curator, purpose=purpose))


def write_dossier(dossier: Dossier, out: Path) -> list[Path]:
    """Write the three files beside each other: `out` with .html, .md and .json at its end."""
    written = []
    for ending, text in dossier.files().items():
        path = out.with_name(out.name + ending)
        write_whole(path, text)
        written.append(path)
    return written
