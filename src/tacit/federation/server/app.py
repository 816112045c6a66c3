"""The ServerApp: asks for a study, collects what comes, fits, and writes all into one folder.

Its run configuration (`[tool.flwr.app.config]` of the project): `study` and `holders`, files in the
project; `out`, a folder on the SuperLink's machine; `least-holders`, `deadline` and `poll` in
seconds; `method` and `prior`.
"""

import json
import logging
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from flwr.app import Context, UserConfig
from flwr.common.config import get_project_dir
from flwr.serverapp import Grid, ServerApp

from tacit.analyst.collection import collect
from tacit.analyst.fit import fit
from tacit.analyst.posterior.posterior import Posterior
from tacit.analyst.report import write_report
from tacit.errors import FederationError, TacitError
from tacit.federation.project import refuse_two_stages
from tacit.federation.secure_sum.server import Sum
from tacit.federation.server.ask import Patience, Standing
from tacit.federation.server.gather import Inquiry, enough, gather
from tacit.files import read_toml, write_whole
from tacit.release import Release
from tacit.release.attestation import attesting
from tacit.study import Study

LOG = logging.getLogger("flwr")
"""Flower streams what is said here to whoever started the run."""

app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    """Run one study."""
    LOG.addFilter(in_one_sentence)
    run = grid.run
    order = Order.read(
        context.run_config, get_project_dir(run.fab_id, run.fab_version, run.fab_hash)
    )
    federate(grid, order)


def in_one_sentence(record: logging.LogRecord) -> bool:
    """Let Flower log what a user can cause as its sentence, not as a traceback."""
    error = record.exc_info[1] if record.exc_info else None
    if isinstance(error, TacitError):
        record.msg = f"nothing was fitted: {error}"
        record.args = ()
        record.exc_info = None
    return True


@dataclass(frozen=True)
class Order:
    """What to run, how to fit it, and where results go."""

    inquiry: Inquiry
    out: Path
    method: str
    prior: str

    @classmethod
    def read(cls, config: UserConfig, project: Path) -> Self:
        """An order from a run's configuration; files are those of the project."""
        try:
            keys = str(config.get("holders", ""))
            inquiry = Inquiry(
                study=Study.load(project / str(config["study"])),
                patience=Patience(float(config["deadline"]), float(config.get("poll", 30))),
                least=int(config["least-holders"]),
                keys=_keys(project / keys) if keys else None,
            )
            return cls(
                inquiry,
                Path(str(config["out"])),
                str(config.get("method", "noise-aware")),
                str(config.get("prior", "weak")),
            )
        except KeyError as error:
            raise FederationError(
                f"[tool.flwr.app.config] lacks {error}: `tacit federate init` writes all of them"
            ) from None


def _keys(path: Path) -> dict[str, str]:
    """Public keys by holder's name, from a file with one `name = "key"` per line."""
    keys = read_toml(path, "the holders' keys", FederationError)
    if not keys or not all(isinstance(key, str) for key in keys.values()):
        raise FederationError(
            f'{str(path)!r} must hold one line  name = "public key"  for each holder'
        )
    return keys


@dataclass
class Minutes:
    """Who answered, who did not and why, and how the run ended: for the analyst's own files."""

    order: Order
    standings: list[Standing[Any]] = field(default_factory=list)
    holders: dict[int, str] = field(default_factory=dict)
    failure: str | None = None

    def write(self) -> None:
        """Write them, whatever the run came to."""
        nodes = [
            {
                "node": str(standing.node),
                "holder": self.holders.get(standing.node),
                "state": standing.state,
                "reason": standing.reason,
            }
            for standing in self.standings
        ]
        study = self.order.inquiry.study
        record = {
            "study": study.name,
            "study_hash": study.hash,
            "outcome": "fitted" if self.failure is None else "failed",
            "failure": self.failure,
            "nodes": nodes,
        }
        text = json.dumps(record, indent=2, ensure_ascii=False) + "\n"
        write_whole(self.order.out / "federation.json", text)


def federate(grid: Grid, order: Order) -> Posterior:
    """Ask, collect, fit, and write everything; `federation.json` in any case."""
    (order.out / "releases").mkdir(parents=True, exist_ok=True)
    minutes = Minutes(order)
    try:
        return _fitted(grid, order, minutes)
    except Exception as error:
        known = isinstance(error, TacitError)
        minutes.failure = str(error) if known else f"unexpected {type(error).__name__}"
        raise
    finally:
        minutes.write()


def _fitted(grid: Grid, order: Order, minutes: Minutes) -> Posterior:
    inquiry = order.inquiry
    refuse_two_stages(inquiry.study)
    ask = _gathered if inquiry.study.secure_sum is None else _summed
    releases = ask(grid, order, minutes)
    collection = collect(
        releases, allow_simulated=inquiry.allow_simulated, trusted_keys=inquiry.keys
    )
    posterior = fit(collection, order.method, prior=order.prior)
    posterior.save(order.out / "posterior.parquet")
    write_whole(order.out / "summary.txt", str(posterior.summary()) + "\n")
    write_report(posterior, order.out / "report.html")
    LOG.info("%d releases; posterior, summary and report are in %s", len(releases), order.out)
    return posterior


def _gathered(grid: Grid, order: Order, minutes: Minutes) -> list[Release]:
    """Each holder's release."""
    standings = gather(grid, order.inquiry, _say)
    minutes.standings = list(standings)
    for standing in standings:
        if standing.document is not None:
            minutes.holders[standing.node] = standing.document.holder
            standing.document.save(order.out / "releases" / f"{standing.node}.json")
    return enough(standings, order.inquiry)


def _summed(grid: Grid, order: Order, minutes: Minutes) -> list[Release]:
    """One release, of all holders' sum, signed by those who stayed."""
    under_way = Sum(grid, order.inquiry.study, order.inquiry.patience, _say)
    try:
        release = under_way.run()
    finally:
        minutes.standings = list(under_way.standings.values())
        minutes.holders = under_way.names
    attesting(release)
    release.save(order.out / "releases" / "sum.json")
    return [release]


def _say(standing: Standing[Any]) -> None:
    reason = f": {standing.reason}" if standing.reason else ""
    LOG.info("node %d: %s%s", standing.node, standing.state, reason)
