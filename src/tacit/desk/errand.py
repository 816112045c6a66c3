"""Errand: one table on its way to one release, from the rehearsal to the file.

What a page showed is bound by a hash: the study, the digests of the files, who pays what, and the
whole rehearsal, which counts every column. Publishing reads the rows again and pays only if the
same comes out, so that an old tab, a table that was exchanged or a ledger that moved on cannot make
the officer confirm something else than was shown. An errand publishes once: whoever confirms it a
second time is shown the release of the first.
"""

import hashlib
import json
import secrets
import threading
from dataclasses import dataclass, field

from tacit.cli.source import source_of
from tacit.desk.setting import Setting, Source
from tacit.desk.uploads import digest_of
from tacit.errors import DeskError
from tacit.holder.publish import publish, rehearse
from tacit.holder.rehearsal import Rehearsal
from tacit.holder.scales import publish_scales, rehearse_scales
from tacit.study import Study

CHANGED = (
    "what would be published is no longer what this page showed, because the table or the ledger "
    "has changed since: nothing was paid; rehearse once more and look again"
)

REMOVED = "this table was removed from the desk: nothing was paid; hand it over once more"


@dataclass(frozen=True)
class Payer:
    """Who publishes, and which data set pays."""

    holder: str
    dataset: str
    new_dataset: bool = False


@dataclass
class Errand:
    """What was shown, and the charge it became, if it did."""

    study: Study
    source: Source
    payer: Payer
    setting: Setting
    rehearsal: Rehearsal
    binding: str
    charge: int | None = None
    id: str = field(default_factory=lambda: secrets.token_urlsafe(16))
    lock: threading.Lock = field(default_factory=threading.Lock)

    @classmethod
    def begin(cls, study: Study, source: Source, payer: Payer, setting: Setting) -> "Errand":
        """Rehearse; nothing is paid."""
        work = rehearse if study.scales_share is None else rehearse_scales
        rehearsal = work(
            study,
            source_of(source.asked, study),
            holder=payer.holder,
            ledger=setting.ledger,
            dataset=payer.dataset,
            new_dataset=payer.new_dataset,
        )
        binding = binding_of(rehearsal, source)
        return cls(study, source, payer, setting, rehearsal, binding)

    def finish(self, seen: str) -> int:
        """Publish what was seen, once; gives the charge that paid for it."""
        with self.lock:
            if self.charge is not None:
                return self.charge
            if not secrets.compare_digest(seen.encode(), self.binding.encode()):
                raise DeskError(CHANGED)
            if not all(path.exists() for path in self.source.files()):
                raise DeskError(REMOVED)
            work = publish if self.study.scales_share is None else publish_scales
            release = work(
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

    def _same(self, rehearsal: Rehearsal) -> None:
        """Refuse, before anything is paid, what is not what was shown."""
        if binding_of(rehearsal, self.source) != self.binding:
            raise DeskError(CHANGED)


def binding_of(rehearsal: Rehearsal, source: Source) -> str:
    """The hash of everything that a person is asked to confirm."""
    facts = {
        "rehearsal": rehearsal.document(),
        "files": [digest_of(path) for path in source.files()],
        "source": source.name,
    }
    text = json.dumps(facts, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()
