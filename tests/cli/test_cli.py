"""Every command of a holder as a user gives it: what it prints, its exit code, what it leaves.

Covers `tacit.cli.publish`, `tacit.cli.study`, `tacit.cli.study_template`, `tacit.cli.ledger`,
`tacit.cli.key`, `tacit.cli.demo`, `tacit.cli.plan`, `tacit.study.words`,
`tacit.demo.hospitals`, `tacit.demo.airlines`.
"""

import json
import re
import stat
import subprocess
import sys
import tempfile

import pytest
from house import ROWS

from tacit.cli import app
from tacit.demo.hospitals import STUDY
from tacit.holder.ledger import Ledger
from tacit.release import Release
from tacit.release.signature import verify
from tacit.study import Study
from tacit.study.visits import visit_mechanism

SECRET = "SECRET7731"  # noqa: S105

PUBLISH = ("publish", "study.toml", "table.csv", "--holder", "north", "--out", "north.json")


def refused(result):
    """The one sentence of a command that was refused."""
    code, out, err = result
    assert code == 2, (out, err)
    assert out == ""
    assert err.startswith("tacit: ")
    assert err.count("\n") == 1
    assert "Traceback" not in err
    assert SECRET not in err
    return err.removeprefix("tacit: ").rstrip("\n")


def files(folder):
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


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


# study new, study check.


def test_study_new_writes_a_study_that_holds(tacit, house):
    options = (
        "--response",
        "days:0..30",
        "--columns",
        "age:18..100",
        "--columns",
        "sex:female|male",
        "--columns",
        "x:-1e-3..-.5e-3",
    )
    code, out, err = tacit(
        "study",
        "new",
        *options,
        "--name",
        'my "best" study',
        "--epsilon",
        0.5,
        "--delta",
        1e-7,
        "--out",
        "new.toml",
    )
    assert (code, err) == (0, "")
    assert out.startswith("new.toml: edit it")
    study = Study.load(house / "new.toml")
    assert (study.name, study.epsilon, study.delta) == ('my "best" study', 0.5, 1e-7)
    assert study.columns == ("(intercept)", "age", "sex[male]", "x")
    assert study.features[2].range == (-1e-3, -0.5e-3)
    assert tacit("study", "check", "new.toml")[0] == 0


@pytest.mark.parametrize(
    ("formula", "columns", "intercept"),
    [
        ("days ~ age * sex", ("(intercept)", "age", "sex[male]", "age:sex[male]"), True),
        (
            "log1p(days) ~ 0 + sex + poly(age, 2)",
            ("sex[female]", "sex[male]", "age", "legendre(age, 2)"),
            False,
        ),
        ("days ~ sex + age", ("(intercept)", "sex[male]", "age"), True),
        ("days ~ 0 + age:sex", ("age:sex[female]", "age:sex[male]"), False),
    ],
)
def test_study_new_takes_a_formula(tacit, house, formula, columns, intercept):
    options = (
        "--response",
        "days:0..30",
        "--columns",
        "age:18..100",
        "--columns",
        "sex:female|male",
        "--formula",
        formula,
    )
    assert tacit("study", "new", *options, "--out", "new.toml")[0] == 0
    study = Study.load(house / "new.toml")
    assert (study.columns, study.intercept) == (columns, intercept)
    described = {"days": (0, 30), "age": (18, 100), "sex": ["female", "male"]}
    assert (
        study.hash
        == Study.from_formula(formula, described, name="my-study", epsilon=1.0, delta=1e-6).hash
    )
    assert tacit("study", "check", "new.toml")[0] == 0


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (
            ["--formula", "days ~ age + bs(age, 3)"],
            "formula: 'bs(age, 3)' is not supported; a formula is made of",
        ),
        (
            ["--formula", "days ~ age + bmi"],
            "formula: 'bmi' is not among the columns, which are days, age",
        ),
        (
            ["--response", "days"],
            "--response must be NAME:LOW..HIGH, such as days:0..30; got 'days'",
        ),
        (
            ["--response", "days:1..0"],
            "response: range must be [low, high] with low clearly below high",
        ),
        (["--response", "days:0..1e999"], "response.range.entry 2: must be a finite number"),
        (
            ["--response", "days:0..1-2"],
            "'days:0..1-2' must have two numbers around '..', such as age:18..100",
        ),
        (["--columns", "age"], "--columns must be NAME:LOW..HIGH or NAME:LEVEL|LEVEL"),
        (["--columns", "age:old"], "--columns must be NAME:LOW..HIGH or NAME:LEVEL|LEVEL"),
        (
            ["--columns", "days:0..1"],
            "the document: the names of response and features must all differ",
        ),
        (
            ["--columns", "sex:a|"],
            "feature 'sex': levels.entry 2: must not be empty",
        ),
        (["--epsilon", "0"], "epsilon: must be at least 0.001"),
        (["--epsilon", "nan"], "epsilon: must be"),
        (["--name", ""], "name: must not be empty"),
        (
            ["--out", "study.toml"],
            "'study.toml' exists already: choose another --out, or remove it",
        ),
        (["--out", "absent/new.toml"], "cannot write 'absent/new.toml': No such file or directory"),
        (["--out", "x" * 300], f"cannot write '{'x' * 300}': File name too long"),
    ],
)
def test_study_new_refuses_and_writes_nothing(tacit, house, options, sentence):
    before = files(house), (house / "study.toml").read_bytes()
    usual = ["--out", "new.toml", "--columns", "age:18..100"]
    if "--response" not in options:  # which may be repeated
        usual += ["--response", "days:0..30"]
    result = tacit("study", "new", *usual, *options)
    assert refused(result).startswith(sentence)
    assert (files(house), (house / "study.toml").read_bytes()) == before


def test_study_check_explains(tacit):
    code, out, err = tacit("study", "check", "study.toml")
    assert (code, err) == (0, "")
    for words in (
        "study 'length-of-stay'  sha256:",
        "d = 5: (intercept), age, bmi, sex[male], admission[emergency]",
        "n is published exactly",
    ):
        assert words in out
    assert "epsilon = 1, delta = 1e-06, for exchanging one row for any other" in out
    assert "at most 54.7 times" in out


def unwrapped(text):
    """Words as they follow each other, whatever the width."""
    return " ".join(text.split())


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ('relation = "add-remove"\nrelease.count = "withheld"', "n is not published"),
        ('relation = "add-remove"\nrelease.count = "noisy"', "n is published with noise of sd"),
        ('relation = "add-remove"\nrelease.count = "public"', "outside the guarantee"),
        ('missing = "impute"', "becomes the middle of its range"),
        ('missing = "refuse"', "that it was refused may be seen by others"),
        ("release.row_radius = 9.0", "no row is shrunk"),
        ("release.smallest_eigenvalue = true", "smallest eigenvalue"),
        ("release.response_square = false", "not published"),
        ("release.average = 4", "noise on X'X is 2.04 times that without averaging"),
    ],
)
def test_study_check_explains_every_form(tacit, house, change, words):
    text = (
        STUDY.replace('relation = "replace-one"', change)
        if "relation" in change
        else f"{change}\n{STUDY}"
    )
    (house / "study.toml").write_text(text, encoding="utf-8")
    code, out, _ = tacit("study", "check", "study.toml")
    assert code == 0
    assert words in unwrapped(out)


def test_a_new_study_takes_planned_rows_and_then_has_visits(tacit, house):
    options = ("--response", "days:0..30", "--columns", "age:18..100")
    planned = ("--planned-rows", "5000", "--planned-rows", "800")
    assert tacit("study", "new", *options, *planned, "--out", "planned.toml")[0] == 0
    study = Study.load(house / "planned.toml")
    assert study.planned_rows == (5000, 800)
    facts = json.loads(tacit("study", "check", "planned.toml", "--json")[1])
    last = visit_mechanism(study, study.visit_count, study.budget())
    assert facts["visits"] == study.visit_count > 1
    assert (facts["row_radius"], facts["noise"]["xty"]) == (None, last.noise.xty)


def test_a_new_study_takes_several_responses(tacit, house):
    options = ("--response", "days:0..30", "--response", "cost:0..2000", "--columns", "age:18..100")
    for formula in ((), ("--formula", "days ~ poly(age, 2)")):
        out = f"responses{len(formula)}.toml"
        assert tacit("study", "new", *options, *formula, "--out", out)[0] == 0
        study = Study.load(house / out)
        assert study.responses == ("days", "cost")
        assert "cost" not in study.columns


def test_study_check_as_json(tacit):
    code, out, err = tacit("study", "check", "study.toml", "--json")
    facts = json.loads(out)
    study = Study.from_toml(STUDY)
    assert (code, err) == (0, "")
    assert facts["hash"] == study.hash
    assert facts["columns"] == list(study.columns)
    assert facts["noise"]["xty"] == study.mechanism().noise.xty
    assert facts["noise"]["count"] is None
    assert (facts["average"], facts["average_noise"]) == (1, 1.0)


@pytest.mark.parametrize("file", ["absent.toml", "table.csv", ".", "latin.toml"])
def test_study_check_refuses_what_is_no_study(tacit, house, file):
    (house / "latin.toml").write_bytes(b'name = "Malm\xf6"')
    refused(tacit("study", "check", file))


# publish.


def test_publish_writes_a_release_and_says_what_it_cost(tacit, house):
    code, out, err = tacit(*PUBLISH)
    assert (code, err) == (0, "")
    assert out.splitlines() == [
        (
            "north.json: the release of 'north' for study 'length-of-stay'; "
            "this file, and nothing else, may leave the house"
        ),
        f"paid: epsilon = 1 at delta = 1e-06, by data set 'default' in {house / 'ledger.db'}",
        "spent in all: epsilon = 1; left: 0 of 1",
    ]
    release = Release.load(house / "north.json")
    assert (release.holder, release.n, release.simulated) == ("north", 4, False)
    assert release.mechanism.startswith("discrete Gaussian, OpenDP")
    assert files(house) == {
        *("study.toml", "table.csv", "ledger.db", "ledger.db.head", "north.json"),
    }
    assert stat.S_IMODE((house / "north.json").stat().st_mode) == 0o644


def test_publish_as_json(tacit, house):
    code, out, err = tacit(
        *PUBLISH, "--json", "--epsilon", 0.25, "--dataset", "patients", "--ledger", "my.db"
    )
    facts = json.loads(out)
    assert (code, err) == (0, "")
    assert facts["release"] == "north.json"
    assert facts["study"] == Release.load(house / "north.json").study_hash
    assert (facts["epsilon"], facts["delta"], facts["dataset"], facts["ledger"]) == (
        0.25,
        1e-6,
        "patients",
        "my.db",
    )
    assert facts["epsilon_spent"] == pytest.approx(0.25)
    assert facts["epsilon_left"] == 0.0
    assert not (house / "ledger.db").exists()


def test_publish_takes_several_tables(tacit, house):
    (house / "more").mkdir()
    (house / "more" / "a.csv").write_text(ROWS)
    (house / "more" / "b.csv").write_text(ROWS)
    assert tacit(*PUBLISH[:3], "more", *PUBLISH[3:])[0] == 0
    assert Release.load(house / "north.json").n == 12


CODED = (
    ROWS.splitlines()[0]
    + "\n"
    + "".join(f"{20 + k},{-999 if k < 20 else 25},female,planned,{k % 20}\n" for k in range(60))
)


def test_a_rehearsal_is_for_the_screen_and_a_file_that_stays(tacit, house):
    (house / "table.csv").write_text(CODED, encoding="utf-8")
    before = files(house)
    code, out, err = tacit(*PUBLISH[:-2], "--rehearse", "--keep-rehearsal", "kept.json")
    assert (code, out) == (0, "")
    assert "-999 is there 20 times" in " ".join(err.split())
    assert "stays here" in err
    assert files(house) - before == {"kept.json"}
    sentence = refused(tacit("fit", "kept.json", "--out", "p.parquet"))
    assert "this is not a release" in sentence
    assert refused(tacit(*PUBLISH[:-2])).startswith("give --out")
    code, out, _ = tacit(*PUBLISH[:-2], "--rehearse", "--quiet")
    assert (code, out) == (0, "")
    taken = refused(tacit(*PUBLISH[:-2], "--rehearse", "--keep-rehearsal", "study.toml"))
    assert "overwrite" in taken


def test_publishing_stops_where_the_rehearsal_would_shout(tacit, house, monkeypatch):
    (house / "table.csv").write_text(CODED, encoding="utf-8")
    code, out, err = tacit(*PUBLISH)
    assert (code, out) == (2, "")
    *told, sentence = err.splitlines()
    assert "-999 is there 20 times" in " ".join(told)
    assert sentence.startswith("tacit: the table does not look like what the study describes")
    assert "bmi" not in sentence
    assert not (house / "ledger.db").exists()
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("typer.confirm", lambda *_words, **_options: False)
    assert tacit(*PUBLISH)[0] == 2
    monkeypatch.setattr("typer.confirm", lambda *_words, **_options: True)
    assert tacit(*PUBLISH)[0] == 0
    assert tacit(*PUBLISH, "--again", "--anyway")[0] == 2  # the budget, and nothing before it
    assert len(Ledger(house / "ledger.db").accounts()[0].charges) == 1


@pytest.mark.parametrize("as_json", [[], ["--json"]])
def test_local_diagnostics_go_to_the_error_stream_alone(tacit, house, as_json):
    code, out, err = tacit(*PUBLISH, "--local-diagnostics", *as_json)
    assert code == 0
    assert err.splitlines()[:2] == [
        "for this screen only, never to be passed on:",
        "  rows 4, incomplete 1, shrunk to the radius 2",
    ]
    assert "  age: 1 values outside the public range, clamped" in err.splitlines()
    for word in ("clamped", "incomplete", "shrunk"):
        assert word not in out
        assert word not in (house / "north.json").read_text()


def test_a_second_release_needs_again_and_budget(tacit, house):
    assert tacit(*PUBLISH)[0] == 0
    first = (house / "north.json").read_bytes()
    assert "`--again` pays for a new one" in refused(tacit(*PUBLISH))
    assert "has epsilon = 0 at delta = 1e-06 left of its limit 1: nothing was published" in refused(
        tacit(*PUBLISH, "--again")
    )
    assert (house / "north.json").read_bytes() == first
    assert tacit("ledger", "limit", "--epsilon", 2, "--delta", 1e-6)[0] == 0
    assert tacit(*PUBLISH, "--again")[0] == 0
    assert (house / "north.json").read_bytes() != first


BAD_TABLES = {
    "no file": None,
    "unseen level": ROWS + f"50,25,{SECRET},planned,3\n",
    "column missing": ROWS.replace("bmi", "BMI"),
    "column twice": ROWS.replace("bmi", "age"),
    "empty": "",
    "binary": "\x00\x01\x02",
}


@pytest.mark.parametrize("kind", BAD_TABLES)
def test_a_bad_table_is_refused_and_nothing_is_paid(tacit, house, kind):
    if BAD_TABLES[kind] is None:
        (house / "table.csv").unlink()
    else:
        (house / "table.csv").write_text(BAD_TABLES[kind])
    before = files(house)
    refused(tacit(*PUBLISH))
    assert files(house) == before


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (
            ["--out", "absent/north.json"],
            "cannot write 'absent/north.json': its folder must exist and be writable",
        ),
        (["--out", "."], "cannot write '.': its folder must exist and be writable"),
        (
            ["--out", "x" * 300],
            f"cannot write '{'x' * 300}': its folder must exist and be writable",
        ),
        (["--holder", ""], "holder: string should have at least 1 character"),
        (["--holder", "a\nb"], "holder: must hold no control characters or line breaks"),
        (["--epsilon", "1.5"], "epsilon must lie between 0.001 and the study's 1"),
        (["--epsilon", "nan"], "epsilon must lie between 0.001 and the study's 1"),
        (["--delta", "0.01"], "delta must lie between 1e-15 and the study's 1e-06"),
        (["--sign", "absent.key"], "cannot read the key 'absent.key': No such file or directory"),
        (["--sign", "table.csv"], "'table.csv' is not an unencrypted Ed25519 private key"),
        (["--ledger", "."], "the ledger '.' cannot be used"),
        (["--ledger", "table.csv"], "the ledger 'table.csv' cannot be used"),
    ],
)
def test_what_cannot_be_published_is_found_before_paying(tacit, house, options, sentence):
    before = {name: (house / name).read_bytes() for name in files(house)}
    assert refused(tacit(*PUBLISH, *options)).startswith(sentence)
    assert {name: (house / name).read_bytes() for name in files(house)} == before


def test_a_folder_that_may_not_be_written_is_found_before_paying(tacit, house, monkeypatch):
    """As the system would say of a sealed folder; root, who may write anywhere, is asked too."""
    monkeypatch.setattr("os.access", lambda path, _mode: "sealed" not in str(path))
    (house / "sealed").mkdir()
    assert "its folder must exist and be writable" in refused(
        tacit(*PUBLISH[:-1], "sealed/north.json")
    )
    assert not (house / "ledger.db").exists()


def test_a_release_that_could_not_be_written_is_not_lost(tacit, house, monkeypatch):
    make = tempfile.mkstemp

    def full(*, prefix, **options):
        if prefix.startswith(".north.json"):
            raise OSError(28, "No space left on device")
        return make(prefix=prefix, **options)

    with monkeypatch.context() as patch:
        patch.setattr("tempfile.mkstemp", full)
        assert "No space left on device" in refused(tacit(*PUBLISH))
    assert not (house / "north.json").exists()
    assert tacit("ledger", "export", 1, "--out", "north.json")[0] == 0
    assert Release.load(house / "north.json").holder == "north"


def test_a_full_disk_after_the_charge_costs_nothing(tacit, monkeypatch):
    def full(**_options):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("tempfile.mkstemp", full)
        assert "No space left on device" in refused(tacit(*PUBLISH))
    code, out, _ = tacit(*PUBLISH)
    assert code == 0
    assert "spent in all: epsilon = 1;" in out


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


@pytest.mark.parametrize("name", ['my "study"', "a'b", "tab \\ end", "[release]", "é = 1 # no"])
def test_a_new_study_holds_what_it_was_given(tacit, house, name):
    """Values are written as values: no name can become another field of the file."""
    columns = ("--columns", f"{name}:18..100", "--columns", f"x{name}:a|{name}")
    options = ("--response", "days:0..30", "--name", name, "--out", "new.toml")
    code, _, err = tacit("study", "new", *options, *columns)
    assert (code, err) == (0, "")
    study = Study.load(house / "new.toml")
    assert (study.name, study.epsilon, study.delta) == (name, 1.0, 1e-6)
    assert [feature.name for feature in study.features] == [name, f"x{name}"]
    assert study.features[1].levels == ("a", name)


def test_a_new_study_from_a_formula_holds_its_terms(tacit, house):
    formula = "log(days) ~ 0 + age:sex + poly(age, 2)"
    columns = ("--columns", "age:18..100", "--columns", "sex:female|male")
    options = ("--response", "days:1..30", "--formula", formula, "--out", "new.toml")
    assert tacit("study", "new", *options, *columns)[0] == 0
    described = {"days": (1, 30), "age": (18, 100), "sex": ["female", "male"]}
    expected = Study.from_formula(formula, described, epsilon=1.0, delta=1e-6, name="my-study")
    assert Study.load(house / "new.toml").hash == expected.hash
    assert f"from the formula {formula}\n" in (house / "new.toml").read_text(encoding="utf-8")
