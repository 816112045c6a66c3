"""What all commands share: quiet, help with an example, completion, exit codes; and the doctor.

Covers `tacit.cli.options`, `tacit.cli.doctor`, `tacit.cli.progress`, `tacit.__main__`.
"""

import json
import os
import sqlite3
import subprocess
import sys

import pytest

from tacit.cli import app
from tacit.cli.options import QuietCommand, every_command
from tacit.cores import ONE_THREAD

PUBLISH = ("publish", "study.toml", "table.csv", "--holder", "north", "--out", "north.json")


def test_quiet_says_nothing_and_does_the_work(tacit, house):
    assert tacit(*PUBLISH, "--quiet") == (0, "", "")
    assert (house / "north.json").exists()
    assert tacit("summary", "north.json", "-q")[0] == 2  # an error is still told
    assert tacit("summary", "north.json", "-q")[2].startswith("tacit: ")


def test_quiet_keeps_the_json_that_was_asked_for(tacit):
    code, out, err = tacit(*PUBLISH, "--quiet", "--json")
    assert (code, err) == (0, "")
    assert json.loads(out)["release"] == "north.json"


def test_every_command_can_be_quiet():
    found = list(every_command(app))
    assert len(found) > 10
    assert all(command.cls is QuietCommand for command in found)


@pytest.mark.parametrize(
    ("arguments", "target"),
    [
        (("ledger", "export", 1), "ledger.db"),
        (("fit", "north.json"), "north.json"),
        (("fit", "."), "north.json"),
        (("follow", "north.log", "--once"), "north.log"),
        (("publish", "study.toml", "*.csv", "--holder", "south", "--dataset", "b"), "table.csv"),
        (
            (
                "publish",
                "study.toml",
                "table.csv",
                "--holder",
                "south",
                "--dataset",
                "b",
                "--sign",
                "north.key",
            ),
            "north.key",
        ),
        (("predict", "posterior.parquet", "."), "table.csv"),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else value,
)
def test_nothing_that_a_command_reads_or_keeps_is_overwritten(tacit, house, arguments, target):
    tacit("key", "new", "--out", "north.key")
    tacit(*PUBLISH)
    tacit("fit", "north.json", "--out", "posterior.parquet")
    tacit(
        "stream",
        "study.toml",
        "table.csv",
        "--holder",
        "n",
        "--batch-rows",
        2,
        "--log",
        "north.log",
        "--dataset",
        "s",
        "--idle",
        0,
    )
    before = {path.name: path.read_bytes() for path in house.iterdir()}
    code, out, err = tacit(*arguments, "--out", target)
    assert (code, out, err) == (
        2,
        "",
        f"tacit: {target!r} would overwrite what is read: choose another file\n",
    )
    assert {path.name: path.read_bytes() for path in house.iterdir()} == before


def test_a_table_without_a_row_costs_nothing_where_the_number_of_rows_is_public(tacit, house):
    (house / "table.csv").write_text("age,bmi,sex,admission,days\n", encoding="utf-8")
    code, _, err = tacit(*PUBLISH)
    assert code == 2
    assert "! the table has no row" in err
    code, _, err = tacit(*PUBLISH, "--anyway")
    assert (code, err) == (
        2,
        (
            "tacit: the table has no row: nothing was published or paid; "
            "check the files or the query\n"
        ),
    )
    assert not (house / "ledger.db").exists()
    study = (house / "study.toml").read_text(encoding="utf-8")
    (house / "study.toml").write_text(study.replace("replace-one", "add-remove"), encoding="utf-8")
    assert tacit(*PUBLISH, "--anyway")[0] == 0  # a refusal would tell the number


def test_a_paid_release_that_cannot_be_written_is_said_to_be_in_the_ledger(
    tacit, house, monkeypatch
):
    from tacit.errors import ReleaseError
    from tacit.release import Release

    def fail(_release, path):
        raise ReleaseError(f"cannot write {str(path)!r}: No space left on device")

    monkeypatch.setattr(Release, "save", fail)
    code, _, err = tacit(*PUBLISH)
    assert code == 2
    assert "No space left on device; it is paid and in the ledger" in err
    monkeypatch.undo()
    monkeypatch.chdir(house)
    assert tacit("ledger", "export", 1, "--ledger", "ledger.db", "--out", "north.json")[0] == 0


def test_the_doctor_finds_a_sound_house_sound(tacit):
    code, out, _ = tacit("doctor")
    assert code == 0
    assert "none yet" in out
    assert "BROKEN" not in out
    tacit(*PUBLISH)
    code, out, _ = tacit("doctor", "--json")
    found = {finding["what"]: finding for finding in json.loads(out)["needed"]}
    assert "1 data sets, 1 charges, 0 of them without a release" in found["ledger"]["seen"]


def test_the_doctor_reports_a_damaged_ledger(tacit, house):
    (house / "ledger.db").write_bytes(b"SQLite format 3\0" + b"x" * 5000)
    code, out, _ = tacit("doctor")
    assert code == 1
    assert "BROKEN  ledger" in out


def test_the_doctor_counts_charges_whose_release_was_lost(tacit, house):
    tacit(*PUBLISH)
    with sqlite3.connect(house / "ledger.db") as database:
        database.execute("UPDATE charge SET release = NULL")
    database.close()
    assert "1 of them without a release" in tacit("doctor")[1]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_is_offered(shell, house):  # noqa: ARG001
    command = [
        sys.executable,
        "-c",
        "from tacit.cli import app; app(prog_name='tacit')",
        "--show-completion",
        shell,
    ]
    named = os.environ | {
        "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"
    }  # or the shell that runs the tests is asked about
    done = subprocess.run(command, env=named, capture_output=True, text=True, check=True)
    assert f"complete_{shell}" in done.stdout


def test_no_colours_into_a_pipe(house):  # noqa: ARG001
    done = subprocess.run(
        [sys.executable, "-m", "tacit", "--help"], capture_output=True, text=True, check=True
    )
    assert "\x1b[" not in done.stdout


@pytest.mark.parametrize("present", [True, False])
def test_the_doctor_names_a_stranger_called_tacit(tacit, tmp_path, monkeypatch, present):
    """Another project owns that name on the package index; its files would lie where ours do."""
    if present:
        folder = tmp_path / "site" / "tacit-1.8.0.dist-info"
        folder.mkdir(parents=True)
        (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: tacit\nVersion: 1.8.0\n")
        monkeypatch.syspath_prepend(folder.parent)
    code, out, _ = tacit("doctor")
    [line] = [line for line in out.splitlines() if " name: " in line]
    if present:
        assert code == 1
        assert line.startswith("BROKEN  name: the distribution tacit 1.8.0 is installed")
        assert "pip uninstall tacit, then pip install --force-reinstall tacit-dp" in line
    else:
        assert code == 0
        assert line.startswith("ok      name: ")


def test_linear_algebra_keeps_to_one_core_unless_told_otherwise():
    """Set before NumPy is loaded, which reads it once."""
    script = (
        "import os, sys, tacit.cli\n"
        "assert 'numpy' not in sys.modules\n"
        "tacit.cli._command = lambda: lambda: print(*map(os.environ.get, sys.argv[1:]))\n"
        "tacit.cli.main()\n"
    )
    environment = {name: said for name, said in os.environ.items() if name not in ONE_THREAD}
    done = subprocess.run(
        [sys.executable, "-c", script, "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"],
        env=environment | {"OMP_NUM_THREADS": "3"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "1 3\n"
