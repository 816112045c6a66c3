"""Real sites for benchmarks/federation.py: a SuperLink, SuperNodes and executors as processes.

All is started as the services start it, on loopback, with TLS and keys, and ended at the end.
"""

import os
import shutil
import socket
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from tacit.federation.keys import ensure_keys
from tacit.federation.project import Project, write_project
from tacit.federation.server.control import Control
from tacit.federation.server.opening import certify
from tacit.federation.server.sites import Sites
from tacit.release.signature import load_key, public_key
from tacit.study import Study

START = 120.0
"""Seconds that processes have to begin."""


def free_port() -> int:
    """A port that nobody has just now."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


@dataclass
class Network:
    """A SuperLink and its sites, with their files in a folder."""

    folder: Path
    study: Study
    policies: list[Path]
    port: int = field(default_factory=free_port)
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    @property
    def app(self) -> Path:
        """The Flower app."""
        return self.folder / "project/app"

    def start(self, name: str, *words: object) -> None:
        """Start a command of Tacit's."""
        command = [sys.executable, "-m", "tacit", "federate", *map(str, words)]
        with (self.folder / f"{name}.log").open("wb") as log:
            self.processes[name] = subprocess.Popen(
                command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True
            )

    def open(self) -> None:
        """Certificates, the SuperLink, and every site."""
        names = tuple(policy.parent.name for policy in self.policies)
        project = Project(self.study, names, "127.0.0.1:8443", out=str(self.folder / "out"))
        write_project(project, self.folder / "project")
        certify(self.folder / "project", anew=False)
        place = self.folder / "project/superlink"
        home = self.folder / "flwr"
        home.mkdir()
        config = f'address = "127.0.0.1:{self.port}"\nroot-certificates = "{place / "ca.crt"}"\n'
        (home / "config.toml").write_text(f"[superlink.tacit]\n{config}", encoding="utf-8")
        os.environ["FLWR_HOME"] = str(home)
        self.start("link", "link", "--folder", place, "--state", self.folder, "--port", self.port)
        self._until(self._answers)
        for policy in self.policies:
            self._admit(policy)
        for policy in self.policies:
            self._start_site(policy, place / "ca.crt")
        self._until(lambda: self.online() == len(self.policies))

    def _admit(self, policy: Path) -> None:
        name = policy.parent.name
        ensure_keys(policy.parent)
        node_key = policy.with_name("node.key.pub")
        number = Control().register(node_key, name)
        signing = public_key(load_key(policy.with_name("sign.key")))
        Sites(self.app).add(name, signing, node_key.read_text(encoding="utf-8"), number)

    def _start_site(self, policy: Path, authority: Path) -> None:
        name = policy.parent.name
        shutil.copy(authority, policy.with_name("ca.crt"))
        port = free_port()
        link = ("--address", f"127.0.0.1:{self.port}", "--folder", policy.parent, "--port", port)
        self.start(f"{name}-node", "node", *link)
        served = ("--secret", policy.with_name("secret"), "--supernode", f"127.0.0.1:{port}")
        self.start(f"{name}-site", "serve", policy, *served)

    def online(self) -> int:
        """Sites that the SuperLink sees."""
        return [node["status"] for node in Control().nodes()].count("online")

    def _answers(self) -> bool:
        trusted = ssl.create_default_context(cafile=self.folder / "project/superlink/ca.crt")
        try:
            address = f"https://127.0.0.1:{self.port}/health"
            with urllib.request.urlopen(address, context=trusted) as page:
                return int(page.status) == 200
        except (urllib.error.URLError, OSError):
            return False

    def _until(self, holds: object) -> None:
        end = time.monotonic() + START
        while not holds():  # type: ignore[operator]
            if time.monotonic() > end:
                raise TimeoutError(f"not there within {START:.0f} seconds: see {self.folder}")
            time.sleep(0.2)

    def memory(self, name: str) -> float:
        """Megabytes of a site: executor, supervisor and SuperNode, what they share counted once."""
        parts = [self.processes[f"{name}-site"].pid, self.processes[f"{name}-node"].pid]
        every = [
            process
            for part in parts
            for process in (psutil.Process(part), *psutil.Process(part).children(recursive=True))
        ]
        return float(sum(process.memory_full_info().pss for process in every)) / 1e6

    def close(self) -> None:
        """End every process."""
        for process in self.processes.values():
            process.terminate()
        for process in self.processes.values():
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()


@contextmanager
def network(folder: Path, study: Study, policies: list[Path]) -> Iterator[Network]:
    """Sites that run, and are ended on the way out."""
    made = Network(folder, study, policies)
    try:
        made.open()
        yield made
    finally:
        made.close()
