"""tacit.cli.federate, federation.project and keys: as a data officer and an analyst use them.

Also the deployment page's commands.

Covers `tacit.cli.federate`, `tacit.federation.project`, `tacit.federation.keys`,
`tacit.federation.client.rehearsed`.
"""

import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from tacit.cli import app
from tacit.demo.hospitals import STUDY
from tacit.federation.client.policy import Policy
from tacit.federation.client.requests import Requests
from tacit.federation.wire import Reason
from tacit.study import Study

DOCS = Path(__file__).parents[2] / "docs"
BIN = Path(sys.executable).parent
INIT = (
    "federate",
    "init",
    "stay",
    "--study",
    "study.toml",
    "--holder",
    "north",
    "--holder",
    "south",
    "--address",
    "tacit.example.org:8443",
)


@pytest.fixture
def site(house, tacit):
    """A site made of what `init` wrote, with paths in the house."""
    assert tacit(*INIT)[0] == 0
    text = (house / "stay/sites/north/holder.toml").read_text()
    for place in ("/srv/tacit/*.parquet", "/var/lib/tacit/ledger.db", "/etc/tacit/sign.key"):
        text = text.replace(
            place, {"*.parquet": "table.csv"}.get(Path(place).name, Path(place).name)
        )
    (house / "holder.toml").write_text(text)
    return house / "holder.toml"


def test_init_writes_a_project_that_holds_together(tacit, house):
    code, out, err = tacit(*INIT, "--prefix", BIN.parent)
    assert (code, err) == (0, "")
    written = {
        str(path.relative_to(house / "stay"))
        for path in (house / "stay").rglob("*")
        if path.is_file()
    }
    assert {
        "README.md",
        "app/pyproject.toml",
        "app/study.toml",
        "app/holders.toml",
        "superlink/nginx.conf",
    } <= written
    assert all(str(Path("stay") / name) in out for name in written)
    for name in written:
        assert not re.search(r"@[A-Z]+@", (house / "stay" / name).read_text()), name
    assert Study.load(house / "stay/app/study.toml").hash == Study.from_toml(STUDY).hash
    policy = Policy.load(house / "stay/sites/south/holder.toml")
    assert (policy.holder, policy.approval, policy.most.epsilon) == ("south", True, 1.0)
    assert not policy.objection(Study.from_toml(STUDY))
    assert (
        "--address tacit.example.org:8443"
        in (house / "stay/sites/north/tacit-supernode.service").read_text()
    )


@pytest.mark.parametrize(
    "name", ['stay", "*', "stay*", "@COLUMNS@", "stay\\", "st[a-z]y", "stay #"]
)
def test_a_strange_name_of_a_study_means_itself_in_a_policy(tacit, house, name):
    """The policy that `init` writes takes the study, and no study of another name."""
    path = house / "study.toml"
    text = path.read_text(encoding="utf-8").replace('"length-of-stay"', json.dumps(name), 1)
    path.write_text(text, encoding="utf-8")
    study = Study.load(path)
    assert study.name == name
    assert tacit(*INIT)[0] == 0
    policy = Policy.load(house / "stay/sites/north/holder.toml")
    assert len(policy.studies) == 1
    assert not policy.objection(study)
    for other in ("stay", "staying", "*", "anything"):
        renamed = study.model_copy(update={"name": other})
        assert policy.objection(renamed) is Reason.STUDY


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--address", 'a";touch x;".org:8443'),
        ("--address", "a\nb:8443"),
        ("--address", "a b:8443"),
        ("--prefix", "/opt/tacit\nExecStartPre=/bin/sh"),
        ("--out", '/var/out"\nholders = "'),
    ],
)
def test_an_address_or_path_that_means_something_else_is_refused(tacit, house, option, value):
    arguments = [*INIT[:-2], "--address", "a.org:8443", option, value]
    code, _, err = tacit(*arguments)
    assert code == 2
    assert "must be" in err
    assert not (house / "stay").exists()


def test_the_services_are_valid(tacit, house):
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not installed")
    tacit(*INIT, "--prefix", BIN.parent)
    units = [str(path) for path in (house / "stay").rglob("*.service")]
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", *units],  # noqa: S607
        capture_output=True,
        text=True,
        check=False,
    )
    mine = [line for line in done.stderr.splitlines() if "tacit" in line]
    assert len(units) == 5
    assert mine == []


@pytest.mark.parametrize(
    ("arguments", "rule"),
    [
        ((*INIT[:-1], "nowhere"), "host:port"),
        ((*INIT, "--holder", "north"), "names that differ"),
        ((*INIT, "--holder", "../out"), "they name folders"),
        ((*INIT[:3], "--study", "missing.toml", *INIT[5:]), "cannot read the study"),
    ],
)
def test_init_refuses_in_one_sentence_and_writes_nothing(tacit, house, arguments, rule):
    code, _, err = tacit(*arguments)
    assert code == 2
    assert rule in err
    assert err.count("\n") == 1
    assert not (house / "stay").exists()


@pytest.mark.parametrize(
    ("fields", "rule"),
    [
        ("scales_share = 0.1\n", "scales_share: is no field any more"),
        (
            (
                "secure_sum = {least = 2, colluding = 0, "
                f"holders = {{a = '{'A' * 43}=', b = '{'B' * 43}='}}}}\n"
            ),
            "secure_sum is of a, b",
        ),
    ],
)
def test_init_refuses_a_study_that_no_site_could_answer(tacit, house, fields, rule):
    path = house / "study.toml"
    path.write_text(fields + path.read_text(encoding="utf-8"), encoding="utf-8")
    code, _, err = tacit(*INIT)
    assert code == 2
    assert rule in err
    assert not (house / "stay").exists()


def test_init_overwrites_nothing(tacit, house):
    (house / "stay").mkdir()
    code, _, err = tacit(*INIT)
    assert code == 2
    assert "does not exist yet" in err


def test_keys_are_made_once_and_kept_from_others(tacit, house):
    code, out, _ = tacit("federate", "keys", "--out", "keys")
    assert code == 0
    assert (house / "keys/node.key.pub").read_text().startswith("ecdsa-sha2-nistp384 ")
    modes = {path.name: path.stat().st_mode & 0o777 for path in (house / "keys").iterdir()}
    assert modes == {"node.key": 0o600, "node.key.pub": 0o644, "sign.key": 0o600, "secret": 0o640}
    assert "public key of releases" in out
    code, _, err = tacit("federate", "keys", "--out", "keys")
    assert code == 2
    assert "never overwritten" in err


def test_check_says_what_a_policy_allows_and_what_is_missing(tacit, site):
    code, out, err = tacit("federate", "check", site)
    assert code == 2
    assert "sign.key" in err
    assert "a person approves each study" in out
    tacit("key", "new", "--out", "sign.key")
    code, out, err = tacit("federate", "check", site, "--json")
    assert (code, err) == (0, "")
    assert (json.loads(out)["holder"], json.loads(out)["missing"]) == ("north", [])


def test_a_data_officer_sees_a_request_and_decides(tacit, site, monkeypatch):
    assert "no study was asked for" in tacit("federate", "approve", site)[1]
    assert "exclude each other" in tacit("federate", "approve", site, "x", "--yes", "--refuse")[2]
    study = Study.from_toml(STUDY)
    requests = Requests(Policy.load(site).requests)
    requests.ask(study)
    assert f"{study.hash[7:19]}  waiting" in tacit("federate", "approve", site)[1]
    (listed,) = json.loads(tacit("federate", "approve", site, "--json")[1])
    assert (listed["name"], listed["decision"]) == ("length-of-stay", "waiting")

    replies = iter([False, False])
    monkeypatch.setattr(typer, "confirm", lambda _question: next(replies))
    code, out, err = tacit("federate", "approve", site, study.hash[:15])
    assert code == 0
    assert "Rehearsal; stays here" in err or "cannot be rehearsed here" in err
    assert "stays here" not in out
    assert "guess right 50 times in 100" in out
    assert "what would leave: one file with noisy sums, 5 by 5 for X'X" in out
    assert "what it would cost: epsilon = 1 at delta = 1e-06; data set 'patients' has" in out
    assert "has spent 0 of at most 1" in out
    assert requests.ask(study) == "waiting"

    assert tacit("federate", "approve", site, "length-of-stay", "--refuse")[1].endswith(
        "'length-of-stay': refused\n"
    )
    assert requests.ask(study) == "refused"
    assert tacit("federate", "approve", site, "length-of-stay", "--yes")[1].endswith(
        "'length-of-stay': approved\n"
    )
    assert requests.ask(study) == "approved"
    code, _, err = tacit("federate", "approve", site, "other")
    assert code == 2
    assert "no request" in err


@pytest.mark.parametrize(
    ("arguments", "rule"),
    [
        (("--secret", "nowhere"), "cannot read the secret"),
        (
            ("--secret", "study.toml", "--supernode", "tacit.example.org:9094"),
            "must be on this machine",
        ),
    ],
)
def test_serve_refuses_what_cannot_work(tacit, site, arguments, rule):
    code, _, err = tacit("federate", "serve", site, *arguments)
    assert code == 2
    assert rule in err


# The deployment page.


PAGES = ("deploy.md", "operate.md")


def shell_commands():
    blocks = re.findall(
        r"```(?:sh|console)\n(.*?)```",
        "".join((DOCS / page).read_text(encoding="utf-8") for page in PAGES),
        re.DOTALL,
    )
    return [shlex.split(line) for block in blocks for line in block.splitlines()]


def test_the_deployment_pages_commands_have_the_options_they_use():
    commands = [words for words in shell_commands() if words[0] == "tacit"]
    assert len(commands) > 8
    helps = {}
    for words in commands:
        path = path_of(words)
        if (words[0], *path) not in helps:
            helps[words[0], *path] = help_of(words[0], path)
        options = {word for word in words if word.startswith("--")}
        assert options <= set(re.findall(r"--[a-z-]+", helps[words[0], *path])), words


def path_of(words):
    """The names of a command, without what it is given."""
    command = typer.main.get_command(app)
    path = []
    for word in words[1:]:
        if word not in getattr(command, "commands", {}):
            break
        command = command.commands[word]
        path.append(word)
    return path


def help_of(program, path):
    if program == "tacit":
        command = typer.main.get_command(app)
        for name in path:
            command = command.commands[name]
        return " ".join(option for parameter in command.params for option in parameter.opts)
    environment = {
        "COLUMNS": "200",
        "FLWR_TELEMETRY_ENABLED": "0",
        "PATH": str(BIN),
        "HOME": "/nonexistent",
        "FLWR_HOME": "/nonexistent",
    }
    done = subprocess.run(
        [BIN / program, *path, "--help"],
        capture_output=True,
        text=True,
        check=True,
        env=environment,
    )
    return done.stdout


def test_the_services_options_exist(tacit, house):
    tacit(*INIT)
    for unit in ("superlink/tacit-superlink.service", "sites/north/tacit-supernode.service"):
        text = (house / "stay" / unit).read_text().replace("\\\n", " ")
        (line,) = re.findall(r"ExecStart=\S+/(.*)", text)
        words = shlex.split(line)
        assert {word for word in words if word.startswith("--")} <= set(
            re.findall(r"--[a-z-]+", help_of(words[0], path_of(words)))
        )


def test_the_deployment_pages_files_are_those_that_init_writes(tacit, house):
    tacit(*(word if word != "south" else "east" for word in INIT))
    words = {word for command in shell_commands() for word in command}
    named = {word for word in words if word.startswith("stay/")}
    assert "stay/app" in named
    assert all((house / name).exists() for name in named)
    assert "-out superlink.crt" in (house / "stay/superlink/certificates.sh").read_text()
