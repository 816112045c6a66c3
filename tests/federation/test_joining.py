"""Joining a federation in one step each, leaving it, and renewing keys.

Covers `tacit.federation.invitation`, `tacit.federation.services`,
`tacit.federation.client.joining`, `tacit.federation.server.opening`, `tacit.cli.federate_join`.
"""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from sites import STUDY

from tacit.errors import FederationError
from tacit.federation.client.joining import SERVICES, Joining, leave, perform
from tacit.federation.client.place import Place
from tacit.federation.client.policy import Policy
from tacit.federation.invitation import Invitation, Reply
from tacit.federation.project import Project, filled, write_project
from tacit.federation.server.opening import admit, certify, dismiss, front, invitation_of
from tacit.federation.server.sites import Sites
from tacit.federation.services import Services
from tacit.study.toml import study_toml


class Register:
    """The SuperLink's list of keys; the real one is asked in test_processes.py."""

    def __init__(self):
        self.known = {}

    def register(self, key, name):
        number = str(len(self.known) + 1)
        self.known[number] = (name, key.read_text())
        return number

    def unregister(self, number):
        del self.known[number]


@pytest.fixture
def project(tmp_path):
    folder = tmp_path / "stay"
    write_project(Project(STUDY, ("north", "south"), "localhost:8443"), folder)
    certify(folder, anew=False)
    return folder


@pytest.fixture
def joining(project, tmp_path):
    return Joining(
        invitation=invitation_of(project, "north"),
        folder=tmp_path / "site",
        state=tmp_path / "state",
        data=str(tmp_path / "rows.parquet"),
        prefix=tmp_path / "opt",
        services=Services(user=False, root=tmp_path / "root"),
    )


def everything(folder):
    return {
        path: path.read_bytes() for path in folder.rglob("*") if path.is_file() and path.name != "x"
    }


def test_an_invitation_is_all_that_a_site_needs(joining):
    assert all(not act.is_done for act in joining.acts())
    perform(joining.acts())
    policy = Policy.load(joining.folder / "holder.toml")
    assert policy.holder == "north"
    assert policy.data == (joining.data,)
    assert policy.ledger == str(joining.state / "ledger.db")
    assert policy.objection(STUDY) == ""
    place = Place.beside(joining.folder / "holder.toml")
    assert (place.address, place.port) == ("localhost:8443", 9094)
    unit = (joining.services.folder / "tacit-supernode.service").read_text()
    assert f"--folder {joining.folder}" in unit
    assert "@" not in unit.replace("@system-service", "")


def test_joining_again_changes_nothing(joining):
    perform(joining.acts())
    with (joining.folder / "holder.toml").open("a") as policy:
        policy.write("# read by the officer\n")
    before = everything(joining.folder)
    assert all(act.is_done for act in joining.acts())
    perform(joining.acts())
    assert everything(joining.folder) == before


def test_a_reply_is_admitted_once_and_replaced_by_a_newer(project, joining, tmp_path):
    perform(joining.acts())
    register = Register()
    app = project / "app"
    assert admit(app, joining.reply(), register) == "1"
    assert admit(app, joining.reply(), register) == "1"
    assert Sites(app).keys()["north"] == joining.reply().sign_key
    for name in ("node.key", "node.key.pub"):
        (joining.folder / name).unlink()
    perform(joining.acts())
    assert admit(app, joining.reply(), register) == "2"
    assert list(register.known) == ["2"]
    assert Sites(app).nodes() == {"north": "2"}
    dismiss(app, "north", register)
    assert register.known == {}
    assert list(Sites(app).keys()) == ["south"]
    with pytest.raises(FederationError, match="knows no site 'west'"):
        dismiss(app, "west", register)
    assert tmp_path.exists()


def test_a_reply_that_was_changed_is_refused(joining, tmp_path):
    perform(joining.acts())
    joining.reply().save(tmp_path / "north.reply")
    fields = json.loads((tmp_path / "north.reply").read_text())
    fields["holder"] = "south"
    (tmp_path / "north.reply").write_text(json.dumps(fields))
    with pytest.raises(FederationError, match="changed on its way"):
        Reply.load(tmp_path / "north.reply").check()


@pytest.mark.parametrize(
    "change",
    [{"address": "a b:1"}, {"holder": "../x"}, {"authority": "none"}, {"surprise": 1}],
    ids=str,
)
def test_a_strange_invitation_is_refused(project, tmp_path, change):
    fields = json.loads(invitation_of(project, "north").model_dump_json()) | change
    (tmp_path / "x").write_text(json.dumps(fields))
    with pytest.raises(FederationError):
        Invitation.load(tmp_path / "x")


def test_who_leaves_keeps_the_proof(joining):
    perform(joining.acts())
    place = Place.beside(joining.folder / "holder.toml")
    unsaid = leave(place, joining.services)
    assert "disable --now tacit-supernode tacit-site" in (unsaid or "")
    assert not (joining.folder / "node.key").exists()
    assert (joining.folder / "sign.key").exists()
    assert not list(joining.services.folder.glob("*.service"))
    perform(joining.acts())  # and may come back
    assert (joining.folder / "node.key").exists()


def test_nginx_is_put_before_the_server_where_there_is_one(project, tmp_path):
    services = Services(user=False, root=tmp_path / "root")
    assert "cp " in (front(project, services) or "")
    (tmp_path / "root/etc/nginx/conf.d").mkdir(parents=True)
    assert "restart nginx" in (front(project, services) or "")
    text = (tmp_path / "root/etc/nginx/conf.d/tacit.conf").read_text()
    assert "location /v1/fleet/" in text


def test_services_of_a_user_forbid_only_what_a_user_can(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    services = Services(user=True)
    services.write("x.service", "[Service]\nUser=tacit\nExecStart=x\nWantedBy=multi-user.target\n")
    text = (tmp_path / "systemd/user/x.service").read_text()
    assert "User=" not in text
    assert "default.target" in text


def test_four_commands_at_a_site_and_five_at_the_server(tacit, house, monkeypatch):
    """Without root and without systemd, as in a container: files are made, commands are said."""
    monkeypatch.setenv("HOME", str(house))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(house / "config"))
    monkeypatch.setenv("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nowhere")
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    (house / "study.toml").write_text(study_toml(STUDY))
    init = ("federate", "init", "stay", "--study", "study.toml", "--address", "localhost:8443")
    assert tacit(*init, "--holder", "north")[0] == 0
    code, out, err = tacit("federate", "open", "stay", "--user", "--yes")
    assert code == 0, err
    assert "north.invitation" in out
    join = ("federate", "join", "stay/sites/north.invitation", "--user", "--yes")
    code, out, err = tacit(*join, "--data", house / "table.csv")
    assert code == 0, err
    assert "will:" in out
    assert "read this out" in out
    assert tacit(*join)[1].splitlines()[2].strip() == "- change nothing"
    policy = house / ".config/tacit/holder.toml"
    code, out, err = tacit("federate", "check", policy)
    assert code == 0, err
    services = house / "config/systemd/user"
    assert {path.stem for path in services.iterdir()} == {*SERVICES, "tacit-superlink"}
    code, out, err = tacit("federate", "renew", policy, "--user", "--yes")
    assert code == 0, err
    assert (policy.with_name("node.key.old")).exists()
    assert tacit("federate", "leave", policy, "--user", "--yes")[0] == 0


def test_without_root_the_machine_is_left_alone(tacit, project, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert project.exists()
    assert "run it as root, or with --user" in tacit("federate", "open", project, "--yes")[2]


@pytest.mark.parametrize("user", [False, True], ids=["machine", "user"])
def test_systemd_understands_every_service(project, joining, tmp_path, monkeypatch, user):
    """`systemd-analyze verify` says nothing; where it is not there, nothing can be said."""
    analyse = shutil.which("systemd-analyze")
    if analyse is None:
        pytest.skip("systemd-analyze is not installed")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    services = Services(user=user, root=tmp_path / "root")
    site = replace(joining, services=services, prefix=Path(sys.prefix), port=9200)
    perform(site.acts())
    words = {"PREFIX": sys.prefix, "FOLDER": str(project), "STATE": "/srv", "INNER": "8000"}
    services.write("tacit-superlink.service", filled("superlink/tacit-superlink.service", words))
    units = sorted(map(str, services.folder.iterdir()))
    assert len(units) == 3
    manner = ["--user"] if user else []
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    checked = subprocess.run(
        [analyse, *manner, "verify", *units], capture_output=True, text=True, check=False
    )
    assert (checked.returncode, checked.stderr) == (0, "")
    started = "".join(Path(unit).read_text() for unit in units)
    assert "--supernode 127.0.0.1:9200" in started
    assert "--port 9200" in started
