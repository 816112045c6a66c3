"""The ServerApp: asks for a study, collects what comes, fits, and writes releases, posterior and summary into one folder.

Its run configuration (`[tool.flwr.app.config]` of the project): `study` and `holders`, files in the project; `out`, a folder
on the SuperLink's machine; `least-holders`, `deadline` and `poll` in seconds; `method` and `prior`.
"""

import json
import logging
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from flwr.app import Context, UserConfig
from flwr.common.config import get_project_dir
from flwr.serverapp import Grid, ServerApp

from tacit.analyst.collection import collect
from tacit.analyst.fit import fit
from tacit.analyst.posterior import Posterior
from tacit.document import write_whole
from tacit.errors import FederationError
from tacit.federation.server.gather import Standing, Terms, enough, gather
from tacit.study import Study

LOG = logging.getLogger("flwr")
"""Flower streams what is said here to whoever started the run."""

app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    """Run one study."""
    run = grid.run
    order = Order.read(context.run_config, get_project_dir(run.fab_id, run.fab_version, run.fab_hash))
    federate(grid, order)


@dataclass(frozen=True)
class Order:
    """What to run, how to fit it, and where results go."""

    terms: Terms
    out: Path
    method: str
    prior: str

    @classmethod
    def read(cls, config: UserConfig, project: Path) -> Self:
        """An order from a run's configuration; files are those of the project."""
        try:
            keys = str(config.get("holders", ""))
            terms = Terms(
                study=Study.load(project / str(config["study"])),
                deadline=float(config["deadline"]),
                least=int(config["least-holders"]),
                poll=float(config.get("poll", 30)),
                keys=_keys(project / keys) if keys else None,
            )
            return cls(terms, Path(str(config["out"])), str(config.get("method", "noise-aware")), str(config.get("prior", "weak")))
        except KeyError as error:
            message = f"[tool.flwr.app.config] lacks {error}: `tacit federate init` writes all of them"
            raise FederationError(message) from None


def _keys(path: Path) -> dict[str, str]:
    """Public keys by holder's name, from a file with one `name = "key"` per line."""
    try:
        keys = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not valid TOML"
        message = f"cannot read the holders' keys {str(path)!r}: {reason}"
        raise FederationError(message) from None
    if not keys or not all(isinstance(key, str) for key in keys.values()):
        message = f'{str(path)!r} must hold one line  name = "public key"  for each holder'
        raise FederationError(message)
    return keys


def federate(grid: Grid, order: Order) -> Posterior:
    """Ask, collect, fit, and write everything."""
    order.out.mkdir(parents=True, exist_ok=True)
    (order.out / "releases").mkdir(exist_ok=True)
    standings = gather(grid, order.terms, _say)
    for standing in standings:
        if standing.release is not None:
            standing.release.save(order.out / "releases" / f"{standing.node}.json")
    write_whole(order.out / "federation.json", json.dumps(_record(standings, order.terms), indent=2, ensure_ascii=False) + "\n")
    releases = enough(standings, order.terms)
    keys = None if order.terms.keys is None else order.terms.keys.values()
    collection = collect(releases, allow_simulated=order.terms.allow_simulated, trusted_keys=keys)
    posterior = fit(collection, order.method, prior=order.prior)
    posterior.save(order.out / "posterior.parquet")
    write_whole(order.out / "summary.txt", str(posterior.summary()) + "\n")
    LOG.info("%d holders published; posterior and summary are in %s", len(releases), order.out)
    return posterior


def _say(standing: Standing) -> None:
    holder = f" ({standing.release.holder})" if standing.release is not None else ""
    LOG.info("node %d%s: %s%s", standing.node, holder, standing.state, f": {standing.reason}" if standing.reason else "")


def _record(standings: list[Standing], terms: Terms) -> dict[str, object]:
    """Who answered, who did not, and why: for the analyst's own files."""
    nodes = [
        {
            "node": str(standing.node),
            "holder": None if standing.release is None else standing.release.holder,
            "state": standing.state,
            "reason": standing.reason,
        }
        for standing in standings
    ]
    return {"study": terms.study.name, "study_hash": terms.study.hash, "nodes": nodes}
