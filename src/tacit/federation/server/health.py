"""The server's status: SuperLink, certificates, and every holder as it was last seen."""

import json
import os
from importlib.metadata import version
from pathlib import Path
from typing import Any

from tacit.errors import FederationError
from tacit.federation.clock import days_left
from tacit.federation.server.control import AwayError, Control
from tacit.federation.server.link import clocks
from tacit.federation.server.minutes import FILE
from tacit.federation.server.sites import Sites
from tacit.federation.status import Check, Status, certificate_check, checked
from tacit.files import read_toml


def server_status(app: Path, control: Control, folder: Path, state: Path) -> Status:
    """Everything an operator at the server must know: `app` is the project's folder app/."""
    versions = f"Tacit {version('tacit-dp')}, Flower {version('flwr')}"
    common = [
        checked("certificate", lambda: _certificate(folder)),
        Check("versions", good=True, words=versions),
    ]
    try:
        nodes = {str(node["node-id"]): node for node in control.nodes()}
    except AwayError as error:
        return [Check("superlink", good=False, words=str(error)), *common]
    record = _record(app)
    return [
        Check("superlink", good=True, words="answers"),
        *common,
        _study(record),
        *_holders(Sites(app), nodes, record, clocks(state)),
    ]


def _certificate(folder: Path) -> Check:
    days = min(days_left(folder / name) for name in ("superlink.crt", "ca.crt"))
    return certificate_check(days, "`tacit federate renew`")


def _record(app: Path) -> dict[str, Any]:
    """What the last run wrote, where this user may read it."""
    config = read_toml(app / "pyproject.toml", "the app", FederationError)
    out = config.get("tool", {}).get("flwr", {}).get("app", {}).get("config", {}).get("out", "")
    path = Path(str(out)) / FILE
    if not os.access(path, os.R_OK):
        return {}
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return record if isinstance(record, dict) else {}


def _study(record: dict[str, Any]) -> Check:
    if not record:
        return Check("study", good=True, words="none was run yet, or its record cannot be read")
    outcome = record.get("outcome")
    words = f"{record.get('study')!r}: {outcome}, as of {record.get('written')}"
    if outcome == "failed":
        words += f"; {record.get('failure')}"
    return Check("study", good=outcome != "failed", words=words)


def _holders(
    sites: Sites, nodes: dict[str, Any], record: dict[str, Any], wrong: dict[str, Any]
) -> Status:
    """A check for each holder: is it connected, and what did it say last."""
    said = {node["node"]: node for node in record.get("nodes", [])}
    checks = []
    for name, number in sites.nodes().items():
        connection = _connection(nodes.get(number), wrong.get(sites.node_key(name)))
        checks.append(
            Check(
                "connected",
                good=connection == "online",
                words=connection,
                value=float(connection == "online"),
                about=name,
            )
        )
        if number in said:
            checks.append(_last_word(name, said[number]))
    return checks


def _connection(node: dict[str, Any] | None, clock: dict[str, float] | None) -> str:
    if node is None:
        return "the SuperLink does not know it: `tacit federate admit` its answer"
    status = str(node["status"])
    if status == "online":
        return status
    if clock is not None:
        return f"its clock is {clock['ahead']:+.0f} s off, which is too much: it must be set there"
    since = node.get("offline-at")
    when = "" if since in {None, "N/A"} else f" since {since}"
    return f"{status}{when}: `tacit federate status` at the site says why"


def _last_word(name: str, said: dict[str, Any]) -> Check:
    """What a holder said in the last run: deaf, waiting, refused and why, or published."""
    words = f"{said['state']}: {said['reason']}"
    if said.get("tacit"):
        words += f" (Tacit {said['tacit']}, clock {said.get('clock_ahead') or 0:+d} s)"
    return Check("said", good=said["state"] == "released", words=words, about=name)
