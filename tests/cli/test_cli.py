"""Every command of a holder as a user gives it: what it prints, its exit code, what it leaves.

Covers `tacit.cli.ledger`, `tacit.cli.key`, `tacit.cli.demo`, `tacit.cli.plan`,
`tacit.demo.hospitals`, `tacit.demo.airlines`.
"""

import json
import re
import stat
import subprocess
import sys

import pytest
from house import PUBLISH, SECRET, files, refused, unwrapped

from tacit.cli import app
from tacit.holder.ledger import Ledger
from tacit.release import Release
from tacit.release.signature import verify
from tacit.study import Study

# The command itself.


def commands(group=None, prefix=()):
    group = group or app
    for command in group.registered_commands:
        yield (*prefix, command.name or command.callback.__name__)
    for inner in group.registered_groups:
        yield from commands(inner.typer_instance, (*prefix, inner.name))


@pytest.mark.parametrize("command", sorted(commands()), ids=" ".join)
def test_the_help_of_every_command_has_an_example(tacit, command):
    code, out, err = tacit(*command, "--help")
    assert (code, err) == (0, "")
    assert f"Example: tacit {' '.join(command)}" in re.sub(r"[\s`│]+", " ", out)


def test_the_commands_of_a_holder_are_there():
    assert set(commands()) >= {
        *(
            ("study", "new"),
            ("study", "check"),
            ("publish",),
            ("ledger", "show"),
            ("ledger", "limit"),
            ("ledger", "export"),
            ("key", "new"),
            ("demo",),
        ),
    }


def test_help_names_the_exit_codes_and_version_the_version(tacit):
    assert "Exit codes: 0 done, 2 wrong input" in tacit("--help")[1]
    code, out, _ = tacit("--version")
    assert code == 0
    assert re.fullmatch(r"tacit \d+\.\d+\.\d+\n", out)


@pytest.mark.parametrize(
    "wrong",
    [
        ["nothing"],
        ["publish"],
        ["study", "check"],
        ["publish", "--nothing"],
        ["ledger", "limit", "--epsilon", "x", "--delta", "1"],
    ],
)
def test_wrong_usage_ends_with_2(tacit, wrong):
    code, out, err = tacit(*wrong)
    assert code == 2
    assert out == ""
    assert "Usage: " in err


def test_something_unforeseen_is_reported_without_its_text(tacit, monkeypatch):
    def breaks(_path):
        raise RuntimeError(SECRET)

    monkeypatch.setattr(Study, "load", breaks)
    code, out, err = tacit("study", "check", "study.toml")
    assert (code, out) == (1, "")
    assert err.startswith("tacit: unexpected RuntimeError: please report it")
    assert SECRET not in err
    monkeypatch.setenv("TACIT_DEBUG", "1")
    with pytest.raises(RuntimeError, match=SECRET):
        tacit("study", "check", "study.toml")


def test_an_interrupt_is_not_a_traceback(tacit, monkeypatch):
    def interrupts(_path):
        raise KeyboardInterrupt

    monkeypatch.setattr(Study, "load", interrupts)
    code, _, err = tacit("study", "check", "study.toml")
    assert code in {1, 130}
    assert "Traceback" not in err


def test_the_installed_program_does_the_same(house):
    program = [sys.executable, "-c", "from tacit.cli import main; main()"]
    done = subprocess.run(
        [*program, *PUBLISH], cwd=house, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert Release.load(house / "north.json").holder == "north"
    done = subprocess.run(
        [*program, *PUBLISH], cwd=house, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert done.stderr.startswith(
        "tacit: this study was published from data set 'default' already, as charge 1: "
    )


# ledger.


def test_ledger_show(tacit):
    tacit("ledger", "limit", "--epsilon", 3, "--delta", 1e-6)
    tacit(*PUBLISH)
    tacit("ledger", "limit", "--epsilon", 2, "--delta", 1e-5, "--dataset", "staff")
    code, out, err = tacit("ledger", "show")
    assert (code, err) == (0, "")
    assert "data set 'default' (replace-one): spent epsilon = 1, left " in out
    assert (
        "data set 'staff' (not charged yet): spent epsilon = 0, left 2 of 2, at delta = 1e-05"
        in unwrapped(out)
    )
    assert "stored" in out


def test_ledger_show_as_json(tacit):
    tacit(*PUBLISH)
    code, out, err = tacit("ledger", "show", "--json")
    (account,) = json.loads(out)
    assert (code, err) == (0, "")
    assert (account["dataset"], account["relation"], account["limit"]) == (
        "default",
        "replace-one",
        {"epsilon": 1.0, "delta": 1e-6},
    )
    (charge,) = account["charges"]
    assert (charge["id"], charge["holder"], charge["epsilon"], charge["release"]) == (
        1,
        "north",
        1.0,
        True,
    )


def test_ledger_show_names_an_interrupted_charge_and_publishing_again_finishes_it(
    tacit, house, monkeypatch
):
    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "record", lambda *_arguments: 1 / 0)
        assert tacit(*PUBLISH)[0] == 1
    assert not (house / "north.json").exists()
    assert "interrupted:" in tacit("ledger", "show")[1]
    assert "publish the study again" in refused(tacit("ledger", "export", 1, "--out", "north.json"))
    assert not (house / "north.json").exists()
    assert tacit(*PUBLISH)[0] == 0
    assert "interrupted" not in tacit("ledger", "show")[1]


def test_ledger_limit(tacit):
    code, out, err = tacit("ledger", "limit", "--epsilon", 2, "--delta", 1e-6)
    assert (code, out, err) == (
        0,
        "data set 'default': limit epsilon = 2 at delta = 1e-06; left 2\n",
        "",
    )
    tacit(*PUBLISH)
    assert "the limit cannot be lower" in refused(
        tacit("ledger", "limit", "--epsilon", 0.5, "--delta", 1e-6)
    )
    assert "a limit needs epsilon in" in refused(
        tacit("ledger", "limit", "--epsilon", "nan", "--delta", 1e-6)
    )


def test_ledger_export_gives_the_same_bytes_for_free(tacit, house):
    tacit(*PUBLISH)
    code, out, err = tacit("ledger", "export", 1, "--out", "again.json")
    assert (code, out, err) == (0, "again.json: release of charge 1, at no cost\n", "")
    assert (house / "again.json").read_bytes() == (house / "north.json").read_bytes()
    assert len(json.loads(tacit("ledger", "show", "--json")[1])[0]["charges"]) == 1


def test_ledger_refusals(tacit, house):
    assert "there is no ledger at" in refused(tacit("ledger", "show"))
    assert "there is no ledger at" in refused(tacit("ledger", "export", 1, "--out", "again.json"))
    tacit(*PUBLISH)
    assert "the ledger has no charge 7" in refused(
        tacit("ledger", "export", 7, "--out", "again.json")
    )
    assert "cannot write" in refused(tacit("ledger", "export", 1, "--out", "absent/again.json"))
    assert "cannot be used" in refused(tacit("ledger", "show", "--ledger", "table.csv"))
    assert files(house) == {
        *("study.toml", "table.csv", "ledger.db", "ledger.db.head", "north.json"),
    }


# key.


def test_a_signed_release(tacit, house):
    code, out, err = tacit("key", "new", "--out", "north.key")
    assert (code, err) == (0, "")
    public = re.search(r"public key: +(\S+) ", out)[1]
    assert stat.S_IMODE((house / "north.key").stat().st_mode) == 0o600
    assert "PRIVATE" not in out
    assert tacit(*PUBLISH, "--sign", "north.key")[0] == 0
    assert verify(Release.load(house / "north.json")) == public
    assert "a key is never overwritten" in refused(tacit("key", "new", "--out", "north.key"))
    assert "cannot write" in refused(tacit("key", "new", "--out", "absent/north.key"))


# demo.


@pytest.mark.usefixtures("same_noise")
@pytest.mark.parametrize(
    ("real", "holders"), [(True, {"UA", "OO"}), (False, {"north", "south", "east"})]
)
def test_demo_tells_the_whole_story(tacit, house, monkeypatch, real, holders):
    monkeypatch.setattr("tacit.demo.airlines.is_available", lambda: real)
    code, out, err = tacit("demo", "--out", "demo")
    assert (code, err) == (0, "")
    for holder in holders:
        assert Release.load(house / "demo" / "analyst" / f"{holder}.json").holder == holder
        assert len(Ledger(house / "demo" / holder / "ledger.db").accounts()[0].charges) == 1
    share = float(re.search(r"interval for ([\d.]+) %", out)[1])
    assert 87 < share < 93
    assert (house / "demo" / "analyst" / "report.html").stat().st_size > 10_000


@pytest.mark.parametrize(
    ("out", "reason"),
    [
        ("study.toml", "exists already"),
        (".", "exists already"),
        ("table.csv/demo", "Not a directory"),
    ],
)
def test_demo_touches_nothing_that_exists(tacit, house, out, reason):
    before = {name: (house / name).read_bytes() for name in files(house)}
    assert reason in refused(tacit("demo", "--out", out))
    assert {name: (house / name).read_bytes() for name in files(house)} == before
