"""`tacit desk` as a command: how it starts, what it says, and what is left when it ends.

Covers `tacit.cli.desk`.
"""

import os
import queue
import signal
import subprocess
import sys
import urllib.error
import urllib.request

import pytest

PATIENCE_S = 120
POLICY = """
holder = "south"
data = ["table.csv"]
dataset = "patients"
ledger = "own.db"
key = "own.key"
studies = ["*"]

[most]
epsilon = 1.0
delta = 1e-6
epsilon_in_all = 2.0
delta_in_all = 1e-6
"""


def start(folder, *arguments):
    """The command in a process of its own, and the address that it shows."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tacit", "desk", "--no-browser", *map(str, arguments)],
        cwd=folder,
        env=os.environ | {"TMPDIR": str(folder), "TACIT_LEDGER": str(folder / "ledger.db")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    line = process.stdout.readline()
    assert line.startswith("the desk is open, for one browser: http://127.0.0.1:"), line
    return process, line.split()[-1]


def come_in(address):
    with urllib.request.build_opener(urllib.request.HTTPCookieProcessor()).open(address) as page:
        return page.read().decode()


def test_it_opens_for_who_has_the_key_and_leaves_no_table(house):
    process, address = start(house, "study.toml", "--holder", "north", "--table", "table.csv")
    with pytest.raises(urllib.error.HTTPError) as refused:
        come_in(address.partition("?")[0])
    assert refused.value.code == 403
    assert b"length-of-stay" not in refused.value.read()
    assert "length-of-stay" in come_in(address)
    [folder] = house.glob("tacit-desk-*")
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, err) == (0, "")
    assert "the desk is closed" in out
    assert not folder.exists()


def test_what_a_killed_desk_left_is_removed_by_the_next(house):
    process, _ = start(house)
    [folder] = house.glob("tacit-desk-*")
    (folder / "rows.csv").write_text("1\n", encoding="utf-8")
    process.kill()
    process.communicate(timeout=PATIENCE_S)
    assert folder.exists()
    process, _ = start(house)
    assert not folder.exists()
    process.terminate()
    process.communicate(timeout=PATIENCE_S)
    assert [*house.glob("tacit-desk-*")] == []


@pytest.fixture
def served(monkeypatch):
    """What the command would serve, without a server."""
    from tacit.desk import serve as serving

    settings = []

    def serve(setting, _studies, _port, announce):
        settings.append(setting)
        announce(serving.Opened("http://here", lambda: None))

    monkeypatch.setattr(serving, "serve", serve)
    return settings


def test_a_policy_says_who_and_where(tacit, house, served):
    (house / "holder.toml").write_text(POLICY, encoding="utf-8")
    assert tacit("desk", "--no-browser", "--policy", "holder.toml")[0] == 0
    [setting] = served
    assert setting.ledger.path == house / "own.db"
    assert setting.key == house / "own.key"
    assert setting.holder == "south"
    assert [source.name for source in setting.sources] == [str(house / "table.csv")]


def test_a_key_lies_beside_the_ledger_unless_told_otherwise(tacit, house, served):
    tacit("desk", "--no-browser")
    tacit("desk", "--no-browser", "--sign", "other.key", "--ledger", "other.db")
    assert [setting.key.name for setting in served] == ["sign.key", "other.key"]
    assert served[0].key.parent == house
    assert [setting.ledger.path.name for setting in served] == ["ledger.db", "other.db"]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("nothing.toml",), "cannot read the study"),
        (("--policy", "holder.toml", "--holder", "north"), "leave out the others"),
        (("--sql", "select 1"), "go together"),
        (("--port", "70000"), "cannot be used"),
    ],
)
def test_what_is_wrong_is_said_before_anything_opens(tacit, house, arguments, sentence):
    (house / "holder.toml").write_text(POLICY, encoding="utf-8")
    code, _, error = tacit("desk", "--no-browser", *arguments)
    assert code == 2
    assert sentence in error


def test_without_its_packages_it_says_how_to_get_them(tacit, monkeypatch):
    for name in [name for name in sys.modules if name.startswith("tacit.desk")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    code, _, error = tacit("desk", "--no-browser")
    assert code == 2
    assert "pip install 'tacit-dp[desk]'" in error


@pytest.mark.usefixtures("served")
def test_the_browser_is_opened_unless_told_otherwise(tacit, monkeypatch):
    from tacit.cli import desk as command

    opened = queue.Queue()
    monkeypatch.setattr(command.webbrowser, "open", opened.put)
    assert tacit("desk")[0] == 0
    assert opened.get(timeout=PATIENCE_S) == "http://here"
    assert tacit("desk", "--no-browser")[0] == 0
    assert opened.empty()
