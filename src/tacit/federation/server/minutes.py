"""Minutes: who answered, who did not and why, told while a run goes on and kept in a file.

`federation.json` is written when the run begins, whenever a holder's standing changes, and when it
ends, however that is. The same is said in the run's log, a line each that begins with `tacit:`;
`tacit federate run` shows these, and takes the outcome from the last.
"""

import json
import logging
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tacit.federation.server.ask import Standing
from tacit.federation.server.gather import Inquiry
from tacit.files import write_whole
from tacit.records import now

LOG = logging.getLogger("flwr")
"""Flower streams what is said here to whoever started the run."""
MARK = "tacit:"
END = "tacit: end "
"""Begins the last line of a run, which holds its outcome as JSON."""
FILE = "federation.json"


@dataclass
class Minutes:
    """What is known of a run.

    `missing` and `paid` are of a secure sum, `visit` is of a study that asks holders several times.
    """

    inquiry: Inquiry
    out: Path
    standings: dict[int, Standing[Any]] = field(default_factory=dict)
    holders: dict[int, str] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)
    paid: tuple[str, ...] = ()
    outcome: str = "running"
    failure: str | None = None
    visit: int | None = None

    def __post_init__(self) -> None:
        self.holders = dict(self.inquiry.nodes)
        self._begun = now()

    def tell(self, standing: Standing[Any]) -> None:
        """Say where a node stands now."""
        who = self.holders.get(standing.node, f"node {standing.node}")
        reason = f": {standing.reason}" if standing.reason else ""
        visits = self.inquiry.study.visit_count
        at = f" at visit {self.visit} of {visits}" if self.visit is not None else ""
        LOG.info("%s %s: %s%s%s", MARK, who, standing.state, at, reason)
        self.take([standing])

    def take(self, standings: Iterable[Standing[Any]]) -> None:
        """Keep where nodes stand."""
        self.standings |= {standing.node: standing for standing in standings}
        self.write()

    def end(self, outcome: str, failure: str | None) -> None:
        """Keep and say how the run ended."""
        self.outcome = outcome
        self.failure = failure
        self.write()
        say_end(outcome, failure, str(self.out))

    def write(self) -> None:
        """Write all of it."""
        study = self.inquiry.study
        nodes = [self._node(standing) for standing in self.standings.values()]
        record: dict[str, Any] = {
            "study": study.name,
            "study_hash": study.hash,
            "begun": self._begun,
            "written": now(),
            "outcome": self.outcome,
            "failure": self.failure,
            "nodes": nodes,
        }
        if study.secure_sum is not None:
            record |= {"missing": self.missing, "paid": list(self.paid)}
        write_record(self.out, record)

    def _node(self, standing: Standing[Any]) -> dict[str, Any]:
        ahead = None if standing.ahead is None else round(standing.ahead)
        return {
            "node": str(standing.node),
            "holder": self.holders.get(standing.node),
            "state": standing.state,
            "reason": standing.reason,
            "clock_ahead": ahead,
            "tacit": standing.version,
        }


def unread(error: Exception) -> dict[str, Any]:
    """The record of a run whose order could not be read."""
    moment = now()
    return {
        "study": None,
        "study_hash": None,
        "begun": moment,
        "written": moment,
        "outcome": "failed",
        "failure": str(error),
        "nodes": [],
    }


def write_record(out: Path, record: dict[str, Any]) -> None:
    """Put a record in its place."""
    out.mkdir(parents=True, exist_ok=True)
    write_whole(out / FILE, json.dumps(record, indent=2, ensure_ascii=False) + "\n")


def say_end(outcome: str, failure: str | None, out: str = "") -> None:
    """Say how the run ended, in one line that a program can read."""
    LOG.info("%s%s", END, json.dumps({"outcome": outcome, "failure": failure, "out": out}))
