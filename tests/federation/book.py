"""A federation set up by the runbook's own commands, without root; tests play systemd and nginx.

Each machine has a home folder of its own. What `tacit federate open` and `join` wrote as services
is started as it is written there, and ended and started again as systemd would.
"""

import json
import re
import shlex
import shutil
import sys
from contextlib import contextmanager
from pathlib import Path

import pyarrow.parquet as pq
from processes import Federation, free_port, until
from sites import STUDY, changed, table
from wire_cutter import Wire

from tacit.holder.ledger import Ledger
from tacit.study.toml import study_toml

RUNBOOK = Path(__file__).parents[2] / "docs/operate.md"


def commands(heading):
    """The console blocks below a heading of the runbook: a list of commands for each."""
    text = RUNBOOK.read_text(encoding="utf-8")
    part = re.search(rf"^## {heading}$(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)[1]
    blocks = re.findall(r"```console\n(.*?)```", part, re.DOTALL)
    return [block.strip().splitlines() for block in blocks]


class Book:
    """The machines `server` and one for each holder."""

    def __init__(self, made):
        self.made = made
        self.port = free_port()
        self.wire = Wire(self.port)  # stands where nginx does
        self.ports = {}

    def home(self, machine):
        return self.made.folder / machine

    def _at(self, machine):
        """The environment of a user there, who has no systemd."""
        unset = ("-u", "FLWR_HOME", "-u", "XDG_CONFIG_HOME", "-u", "XDG_RUNTIME_DIR")
        return ("env", *unset, f"HOME={self.home(machine)}")

    def tacit(self, machine, *words, code=0):
        """A command given at a machine."""
        done = self.made.run(*self._at(machine), sys.executable, "-m", "tacit", *words, timeout=240)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr

    # Services.

    def start(self, machine, service):
        """What systemd would start, as the service's file says."""
        unit = self.home(machine) / f".config/systemd/user/tacit-{service}.service"
        command = re.search(r"^ExecStart=(.*)$", unit.read_text(), re.MULTILINE)[1]
        words = shlex.split(command)
        assert words[0] == f"{sys.prefix}/bin/tacit"
        if service == "superlink":
            words[words.index("--port") + 1] = str(self.port)
        command = (*self._at(machine), sys.executable, "-m", "tacit", *words[1:])
        self.made.start(f"{machine}-{service}", *command)

    def restart(self, machine, *services):
        for service in services:
            self.made.stop(f"{machine}-{service}")
        for service in services:
            self.start(machine, service)

    # A federation.

    def open(self, holders):
        """At the server: the project, certificates, invitations and the SuperLink."""
        home = self.home("server")
        home.mkdir()
        (home / "study.toml").write_text(study_toml(STUDY))
        named = [word for holder in holders for word in ("--holder", holder)]
        place = ("--out", home / "results", "--address", f"localhost:{self.wire.port}")
        study = ("--study", home / "study.toml")
        self.tacit("server", "federate", "init", home / "stay", *study, *named, *place)
        self.tacit("server", "federate", "open", home / "stay", "--user", "--yes")
        flower = home / ".config/tacit/flwr/config.toml"
        flower.write_text(flower.read_text().replace(":8000", f":{self.port}"))
        self.made.port = self.port
        self.start("server", "superlink")
        until(self.answers, "the SuperLink answers")

    def answers(self):
        shutil.copytree(
            self.home("server") / "stay/superlink",
            self.made.folder / "project/superlink",
            dirs_exist_ok=True,
        )
        return self.made.superlink_answers()

    def join(self, holder, most=5.0):
        """At a site: keys, policy and services; then its reply is admitted."""
        home = self.home(holder)
        home.mkdir()
        pq.write_table(table(seed=len(holder)), home / "rows.parquet")
        self.ports[holder] = free_port()
        invitation = self.home("server") / f"stay/sites/{holder}.invitation"
        place = ("--data", home / "rows.parquet", "--port", self.ports[holder])
        said = self.tacit(holder, "federate", "join", invitation, "--user", "--yes", *place)
        assert "read this out" in said
        policy = self.policy(holder)
        text = policy.read_text().replace("epsilon_in_all = 1.0", f"epsilon_in_all = {most}")
        text = text.replace("delta_in_all = 1e-06", "delta_in_all = 1e-05")
        policy.write_text(text.replace('studies = ["length-of-stay"]', 'studies = ["length-of-*"]'))
        assert policy.read_text().count("length-of-*") == 1
        self.admit(holder)
        self.start(holder, "supernode")
        self.start(holder, "site")

    def policy(self, holder):
        return self.home(holder) / ".config/tacit/holder.toml"

    def admit(self, holder):
        reply = self.policy(holder).with_name(f"{holder}.reply")
        said = self.tacit("server", "federate", "admit", self.app, reply, "--yes")
        assert "is admitted as node" in said

    @property
    def app(self):
        return self.home("server") / "stay/app"

    def ledger(self, holder):
        return self.home(holder) / ".local/share/tacit/ledger.db"

    def charges(self, holder):
        accounts = Ledger(self.ledger(holder)).accounts()
        return [charge.study for account in accounts for charge in account.charges]

    # Studies.

    def write(self, name, **fields):
        """A further study over the same sites; gives its app."""
        study = changed(name=f"length-of-{name}", epsilon=0.5, **fields)
        app = self.home("server") / name
        shutil.copytree(self.app, app)
        (app / "study.toml").write_text(study_toml(study))
        project = app / "pyproject.toml"
        out = str(self.home("server") / "results")
        project.write_text(project.read_text().replace(out, f"{out}-{name}"))
        return app

    def run(self, app, deadline=120.0, code=0, least=None):
        """`tacit federate run`; gives what it said."""
        fewer = "" if least is None else f" least-holders={least}"
        config = f"deadline={deadline} poll=2.0{fewer}"
        words = ("federate", "run", app, "--config", config)
        return self.tacit("server", *words, code=code)

    def begin(self, name, app, deadline=400.0):
        """`tacit federate run` in the background, as the process `name`."""
        words = ("federate", "run", app, "--config", f"deadline={deadline} poll=2.0")
        self.made.start(name, *self._at("server"), *self.made.tacit_words(*words))

    def approve(self, holder, name):
        """The data officer approves, as soon as the request is there."""
        requests = self.ledger(holder).with_name("requests")
        until(lambda: any(name in path.read_text() for path in requests.glob("*.json")), name)
        self.tacit(holder, "federate", "approve", self.policy(holder), name, "--yes")

    def record(self, name):
        text = (self.home("server") / f"results-{name}/federation.json").read_text()
        return {node["holder"]: node for node in json.loads(text)["nodes"]}


@contextmanager
def by_the_book(folder, holders):
    """An open federation whose sites have joined; every process is ended on the way out."""
    made = Federation(folder)
    (folder / "project").mkdir()
    book = Book(made)
    try:
        book.open(holders)
        for holder in holders:
            book.join(holder)
        yield book
    finally:
        made.kill(*list(made.running))
