"""A real federation on this machine: SuperLink, SuperNodes and sites as processes of their own.

All are ended at the end.
"""

import itertools
import json
import os
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import time
import tomllib
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import psutil
from sites import STUDY, make_site
from wire_cutter import Wire

from tacit.federation.client.policy import Policy
from tacit.federation.client.requests import Requests
from tacit.federation.environment import QUIET
from tacit.federation.keys import write_keys
from tacit.federation.project import Project, write_project
from tacit.federation.server.sites import Sites

BIN = Path(sys.executable).parent


@contextmanager
def at_most(seconds):
    """A hard limit: whatever hangs is interrupted."""

    def out_of_time(_signal, _frame):
        raise TimeoutError(f"not done within {seconds} seconds")

    before = signal.signal(signal.SIGALRM, out_of_time)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def until(holds, what, seconds=300.0):
    """Wait for something to become true."""
    end = time.monotonic() + seconds
    while not (value := holds()):
        if time.monotonic() > end:
            raise TimeoutError(f"{what}: not within {seconds:g} seconds")
        time.sleep(0.1)
    return value


def batched(names, size):
    """Names in groups."""
    return [names[start : start + size] for start in range(0, len(names), size)]


PORTS = itertools.cycle(range(20_000 + 101 * os.getpid() % 11_000, 32_000))
"""Below those that the system gives out by itself: nobody takes one before its server does."""


def free_port():
    return next(port for port in PORTS if _is_free(port))


def _is_free(port):
    with socket.socket() as listener:
        try:
            listener.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


@dataclass
class Federation:
    """A SuperLink with its files in `folder`, and every process that was started."""

    folder: Path
    port: int = field(default_factory=free_port)
    running: dict[str, subprocess.Popen] = field(default_factory=dict)
    ports: dict[str, int] = field(default_factory=dict)
    public: dict[str, str] = field(default_factory=dict)

    @property
    def environment(self):
        path = f"{BIN}:{os.environ['PATH']}"
        source = str(Path(__file__).parents[2] / "src")
        home = str(self.folder / "flwr")
        return (
            os.environ
            | {
                "PATH": path,
                "PYTHONPATH": source,
                "FLWR_HOME": home,
                "OPENBLAS_NUM_THREADS": "1",
                "NO_COLOR": "1",
            }
            | QUIET
        )

    @property
    def certificate(self):
        return self.folder / "project/superlink/ca.crt"

    def log(self, name):
        return (self.folder / f"{name}.log").read_text(encoding="utf-8", errors="replace")

    # Processes.

    def start(self, name, *command):
        assert name not in self.running
        with (self.folder / f"{name}.log").open("ab") as log:
            self.running[name] = subprocess.Popen(
                [str(part) for part in command],
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                env=self.environment,
                cwd=self.folder,
                start_new_session=True,
            )
        return self.running[name]

    def kill(self, *names):
        for name in names:
            process = self.running.pop(name)
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait(120)

    def stop(self, name):
        """End a process as a service manager would; a SuperNode then says that it leaves."""
        os.killpg(self.running[name].pid, signal.SIGTERM)
        self.running.pop(name).wait(120)

    def run(self, *command, timeout=300):
        return subprocess.run(
            [str(part) for part in command],
            env=self.environment,
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )

    # The parts of a federation.

    def start_superlink(self, holders):
        """Write the project as `tacit federate init` does, make certificates, start it."""
        prefix = str(BIN.parent)
        out = str(self.folder / "out")
        write_project(
            Project(STUDY, tuple(holders), "127.0.0.1:8443", prefix, out), self.folder / "project"
        )
        made = self.run("sh", "project/superlink/certificates.sh")
        assert made.returncode == 0, made.stderr
        (self.folder / "flwr").mkdir()
        config = (self.folder / "project/superlink/config.toml").read_text()
        config = config.replace("127.0.0.1:8000", f"127.0.0.1:{self.port}").replace(
            "/etc/tacit/ca.crt", str(self.certificate)
        )
        (self.folder / "flwr/config.toml").write_text(config)
        self.start_link()
        until(self.superlink_answers, "the SuperLink answers")

    def start_link(self):
        """The SuperLink as its service starts it."""
        (self.folder / "state").mkdir(exist_ok=True)
        place = ("--folder", self.folder / "project/superlink", "--state", self.folder / "state")
        self.tacit("superlink", "federate", "link", *place, "--port", self.port)

    def tacit(self, name, *words, before=()):
        """A command of Tacit's as a process of its own."""
        return self.start(name, *before, sys.executable, "-m", "tacit", *words)

    def superlink_answers(self):
        with suppress(httpx.HTTPError):
            trusted = ssl.create_default_context(cafile=self.certificate)
            return (
                httpx.get(f"https://127.0.0.1:{self.port}/health", verify=trusted).status_code
                == 200
            )
        return False

    def add_site(self, name, **policy):
        """A site's folder with rows, policy and keys."""
        make_site(self.folder / name, name, seed=len(name), key="sign.key", **policy)
        self.public[name] = write_keys(self.folder / name).sign_public

    def register(self, *names):
        """Register SuperNodes by the command an analyst uses, a few at once."""
        known = Sites(self.folder / "project/app")
        for group in batched(names, 4):
            for name in group:
                key = self.folder / name / "node.key.pub"
                command = (BIN / "flwr", "supernode", "register", key, "tacit", "--name", name)
                self.start(f"register-{name}", *command, "--format", "json")
            for name in group:
                ended = self.running.pop(f"register-{name}").wait(300)
                answer = self.log(f"register-{name}")
                assert ended == 0, answer
                number = str(json.loads(answer[answer.index("{") :])["node-id"])
                key = (self.folder / name / "node.key.pub").read_text()
                known.add(name, self.public[name], key, number)

    def trust(self, *names):
        """Put holders' keys where the ServerApp looks for them."""
        (self.folder / "project/app/holders.toml").write_text(
            "".join(f'{name} = "{self.public[name]}"\n' for name in names)
        )

    def start_node(self, name, address=None, before=()):
        """A site's SuperNode, which executes nothing itself."""
        self.ports.setdefault(name, free_port())
        if not (self.folder / name / "ca.crt").exists():
            shutil.copy(self.certificate, self.folder / name / "ca.crt")
        address = address or f"127.0.0.1:{self.port}"
        words = ("--address", address, "--folder", name, "--port", self.ports[name])
        self.tacit(f"{name}-node", "federate", "node", *words, before=before)

    def start_executor(self, name, before=()):
        options = (
            "--secret",
            f"{name}/secret",
            "--supernode",
            f"127.0.0.1:{self.ports[name]}",
            "--poll",
            "0.2",
        )
        policy = f"{name}/holder.toml"
        self.tacit(f"{name}-site", "federate", "serve", policy, *options, before=before)

    def start_rogue(self, name, kind):
        """A site that runs another program than Tacit's, or Tacit's with a fault (rogue.py)."""
        rogue = Path(__file__).with_name("rogue.py")
        self.start(
            f"{name}-site",
            sys.executable,
            rogue,
            kind,
            f"{name}/holder.toml",
            f"127.0.0.1:{self.ports[name]}",
            f"{name}/secret",
        )

    def start_dying(self, name, step):
        """A site that is killed at a step of its first answer (dying.py)."""
        dying = Path(__file__).with_name("dying.py")
        place = (f"{name}/holder.toml", f"127.0.0.1:{self.ports[name]}", f"{name}/secret")
        self.start(f"{name}-site", sys.executable, dying, step, *place)

    def kill_child(self, name):
        """Kill what a supervisor has started."""
        for child in psutil.Process(self.running[name].pid).children():
            child.kill()

    def start_wire(self):
        """A wire to the SuperLink that can be cut."""
        return Wire(self.port)

    def tacit_words(self, *words):
        return (sys.executable, "-m", "tacit", *words)

    @property
    def server_words(self):
        """Where the status finds what belongs to the server."""
        place = self.folder / "project/superlink"
        return ("--folder", place, "--state", self.folder / "state")

    def copy_app(self, name, study, out):
        """A second study over the same sites."""
        shutil.copytree(self.folder / "project/app", self.folder / name)
        (self.folder / name / "study.toml").write_text(study)
        project = self.folder / name / "pyproject.toml"
        text = project.read_text().replace(str(self.folder / "out"), str(self.folder / out))
        project.write_text(text)

    def approve(self, name, study):
        """The data officer has approved before anybody asks."""
        requests = Requests(Policy.load(self.folder / name / "holder.toml").requests)
        requests.ask(study)
        requests.decide(requests.find(study.hash), "approved")

    def start_site(self, name, before=()):
        self.start_node(name, before=before)
        self.start_executor(name, before=before)

    def start_study(self, app="project/app", **config):
        """`tacit federate run` in the background; gives the process's name."""
        values = " ".join(f"{key.replace('_', '-')}={value!r}" for key, value in config.items())
        name = f"study-{len(list(self.folder.glob('study-*.log')))}"
        self.tacit(name, "federate", "run", app, "--config", values)
        return name

    def ended(self, name, seconds=180):
        """Exit code and words of `tacit federate run`."""
        return self.running.pop(name).wait(seconds), self.log(name)

    def start_run(self, app="project/app", **config):
        values = " ".join(f"{key.replace('_', '-')}={value!r}" for key, value in config.items())
        options = ("--run-config", values) if values else ()
        name = f"run-{len(list(self.folder.glob('run-*.log')))}"
        self.start(name, BIN / "flwr", "run", app, "tacit", "--stream", *options)
        return name

    def finish(self, run, seconds=180):
        assert self.running.pop(run).wait(seconds) == 0, self.log(run)
        assert "Exit Code" not in self.log(run), self.log(
            run
        )  # the command ends well even where the app did not
        return self.log(run)


@contextmanager
def federation(folder):
    """A federation, every process of which is ended on the way out."""
    made = Federation(folder)
    try:
        yield made
    finally:
        made.kill(*list(made.running))


def config_of(path):
    return tomllib.loads(path.read_text(encoding="utf-8"))
