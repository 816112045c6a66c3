"""Errand: one table on its way to one release, from the rehearsal to the file.

What a page showed is bound by a hash: the study, the digests of the files, how they are read, who
pays what, and the whole rehearsal. Only that hash can be confirmed, and publishing, which reads the
rows again, pays only if the files, the numbers of rows and the cost are still those; rows that come
from no file are rehearsed once more. So an old tab, a table that was exchanged or a ledger that
moved on cannot make the officer confirm something else than was shown. An errand publishes once:
whoever confirms it a second time is shown the release of the first.
"""

import hashlib
import json
import secrets
import threading
from dataclasses import dataclass, field, replace
from functools import cached_property

from tacit.cli.source import source_of
from tacit.desk.chosen import Chosen, Payer
from tacit.desk.setting import Setting, Source
from tacit.errors import DeskError
from tacit.holder.publish import publish, rehearse
from tacit.holder.rehearsal import Rehearsal
from tacit.study import Study

CHANGED = (
    "what would be published is no longer what this page showed, because the table or the ledger "
    "has changed since: nothing was paid; rehearse once more and look again"
)

REMOVED = "this table was removed from the desk: nothing was paid; hand it over once more"


@dataclass
class Errand:
    """What was shown, and the charge it became, if it did."""

    study: Study
    source: Source
    chosen: Chosen
    payer: Payer
    setting: Setting
    rehearsal: Rehearsal
    digests: tuple[str, ...]
    charge: int | None = None
    id: str = field(default_factory=lambda: secrets.token_urlsafe(16))
    lock: threading.Lock = field(default_factory=threading.Lock)

    @classmethod
    def begin(cls, study: Study, source: Source, chosen: Chosen, setting: Setting) -> "Errand":
        """Rehearse; nothing is paid."""
        payer = chosen.payer()
        digests = source.digests()
        rehearsal = rehearsed(study, source, payer, setting)
        if source.digests() != digests:
            raise DeskError("the table changed while it was read: rehearse once more")
        return cls(
            study=study,
            source=source,
            chosen=replace(chosen, source=source.id),
            payer=payer,
            setting=setting,
            rehearsal=rehearsal,
            digests=digests,
        )

    @cached_property
    def binding(self) -> str:
        """The hash of everything that a person is asked to confirm."""
        facts = {
            "rehearsal": self.rehearsal.document(),
            "files": self.digests,
            "source": self.source.name,
            "written": repr(sorted(self.source.asked.written.items())),
        }
        text = json.dumps(facts, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        return "sha256:" + hashlib.sha256(text.encode()).hexdigest()

    def finish(self, seen: str) -> int:
        """Publish what was seen, once; gives the charge that paid for it."""
        with self.lock:
            if self.charge is not None:
                return self.charge
            if not secrets.compare_digest(seen.encode(), self.binding.encode()):
                raise DeskError(CHANGED)
            self._look_again()
            release = publish(
                self.study,
                source_of(self.source.asked, self.study),
                holder=self.payer.holder,
                ledger=self.setting.ledger,
                dataset=self.payer.dataset,
                new_dataset=self.payer.new_dataset,
                key=self.setting.signing_key,
                confirm=self._same,
            )
            if release.ledger is None:
                raise DeskError("the release has no receipt: look at the ledger")
            self.charge = release.ledger.charge
            return self.charge

    def _look_again(self) -> None:
        """Refuse rows that are gone or, where no file's digest can tell, are others by now."""
        if self.source.upload and not all(path.exists() for path in self.source.files()):
            raise DeskError(REMOVED)
        if self.source.digests() != self.digests:
            raise DeskError(CHANGED)
        if self.digests:
            return
        rehearsal = rehearsed(self.study, self.source, self.payer, self.setting)
        if rehearsal.document() != self.rehearsal.document():
            raise DeskError(CHANGED)

    def _same(self, rehearsal: Rehearsal) -> None:
        """Refuse, before anything is paid, what is not what was shown."""
        if essence(rehearsal) != essence(self.rehearsal) or self.source.digests() != self.digests:
            raise DeskError(CHANGED)


def rehearsed(study: Study, source: Source, payer: Payer, setting: Setting) -> Rehearsal:
    """What publishing would do, and cost."""
    return rehearse(
        study,
        source_of(source.asked, study),
        holder=payer.holder,
        ledger=setting.ledger,
        dataset=payer.dataset,
        new_dataset=payer.new_dataset,
    )


def essence(rehearsal: Rehearsal) -> tuple[object, ...]:
    """What a rehearsal and publishing, which looks at some columns less closely, both know."""
    return (
        rehearsal.study.hash,
        rehearsal.holder,
        rehearsal.rows,
        rehearsal.incomplete,
        rehearsal.cost,
        rehearsal.leaves,
    )
