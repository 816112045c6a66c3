"""A site's status: its policy and data, ledger and budget, its two processes, and the server."""

import os
import shutil
import socket
from importlib.metadata import version
from pathlib import Path

from tacit.errors import PolicyError
from tacit.federation.client.place import Place
from tacit.federation.client.policy import Policy
from tacit.federation.client.presence import is_present
from tacit.federation.client.requests import Requests
from tacit.federation.client.sources import source_trouble
from tacit.federation.clock import CLOCK_LIMIT, Door, look
from tacit.federation.status import Check, Status, certificate_check, checked
from tacit.holder.chain import Witness
from tacit.holder.ledger import Ledger

LEAST_DISK = 64 * 2**20
"""Bytes that must be free beside the ledger."""


def site_status(path: Path) -> Status:
    """Everything an operator at a site must know; no row is read."""
    try:
        policy = Policy.load(path)
    except PolicyError as error:
        return [Check("policy", good=False, words=str(error)), *_link_checks(path)]
    return [
        Check("policy", good=True, words=f"{path}, holder {policy.holder!r}"),
        checked("data", lambda: _data(policy)),
        checked("ledger", lambda: _ledger(policy)),
        checked("budget", lambda: _budget(policy)),
        checked("disk", lambda: _disk(policy)),
        checked("requests", lambda: _requests(policy)),
        *_link_checks(path),
    ]


def _link_checks(path: Path) -> Status:
    versions = f"Tacit {version('tacit-dp')}, Flower {version('flwr')}"
    place = Place.beside(path)
    door = look(place.address, place.certificate) if place.address else Door("no address is known")
    return [
        checked("executor", lambda: _executor(place)),
        checked("supernode", lambda: _supernode(place)),
        _server(door, place.address),
        _clock(door),
        certificate_check(door.certificate_days, "the analyst renews it (`tacit federate renew`)")
        if door.trouble is None
        else Check("certificate", good=False, words="the server must be reached first"),
        Check("versions", good=True, words=versions),
    ]


def _data(policy: Policy) -> Check:
    trouble = source_trouble(policy)
    places = ", ".join(policy.data)
    return Check("data", good=trouble is None, words=trouble or f"{places}: there")


def _ledger(policy: Policy) -> Check:
    path = Path(policy.ledger)
    place = path if path.exists() else path.parent
    if not os.access(place, os.W_OK):
        words = f"{place} cannot be written by this user: nothing can be charged, so nothing leaves"
        return Check("ledger", good=False, words=words)
    accounts = Ledger(path).accounts() if path.exists() else []
    count = sum(len(account.charges) for account in accounts)
    known = Witness(path).read()
    if known is not None and known.charges > count:
        words = f"{path} has {count} of {known.charges} charges: an older copy was put back; put "
        words += "the newest back, or enter what is missing with `tacit ledger mend`"
        return Check("ledger", good=False, words=words, value=count)
    return Check("ledger", good=True, words=f"{path}, {count} charges", value=count)


def _budget(policy: Policy) -> Check:
    limit = policy.most.epsilon_in_all
    path = Path(policy.ledger)
    accounts = Ledger(path).accounts() if path.exists() else []
    spent = next(
        (account.epsilon_spent for account in accounts if account.dataset == policy.dataset), 0.0
    )
    left = max(0.0, round(limit - spent, 6))
    words = f"epsilon {spent:.4g} of {limit:g} spent by data set {policy.dataset!r}"
    if left <= 0:
        words += ": out of budget; no further study can be answered"
    return Check("budget", good=left > 0, words=words, value=left)


def _disk(policy: Policy) -> Check:
    free = shutil.disk_usage(Path(policy.ledger).parent).free
    words = f"{free / 2**20:.0f} MB free beside the ledger"
    if free < LEAST_DISK:
        words += ": make room, or nothing can be charged"
    return Check("disk", good=free >= LEAST_DISK, words=words, value=free)


def _requests(policy: Policy) -> Check:
    requests = Requests(policy.requests)
    waiting = [request for request in requests.every() if request.decision == "waiting"]
    broken = requests.broken()
    if broken:
        return Check("requests", good=False, words=broken[0], value=len(waiting))
    if waiting:
        words = f"{len(waiting)} wait for a person: `tacit federate approve`"
        return Check("requests", good=False, words=words, value=len(waiting))
    return Check("requests", good=True, words="none waits for a person", value=0)


def _executor(place: Place) -> Check:
    if is_present(place.secret):
        return Check("executor", good=True, words="tacit-site answers")
    return Check("executor", good=False, words=f"tacit-site does not run: {place.start('site')}")


def _supernode(place: Place) -> Check:
    with socket.socket() as probe:
        probe.settimeout(2.0)
        runs = probe.connect_ex(("127.0.0.1", place.port)) == 0
    if runs:
        return Check("supernode", good=True, words=f"runs at 127.0.0.1:{place.port}")
    words = f"does not run: {place.start('supernode')}"
    return Check("supernode", good=False, words=words)


def _server(door: Door, address: str) -> Check:
    return Check("server", good=door.trouble is None, words=door.trouble or f"{address} answers")


def _clock(door: Door) -> Check:
    if door.ahead is None:
        return Check("clock", good=door.trouble is None, words="the server does not tell the time")
    words = f"{door.ahead:+.0f} s from the server's; {CLOCK_LIMIT:.0f} s are tolerated"
    trouble = door.clock_trouble
    return Check("clock", good=trouble is None, words=trouble or words, value=round(door.ahead))
