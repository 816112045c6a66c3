"""`tacit publish` as a holder gives it: what it prints, what it costs, what it leaves.

Covers `tacit.cli.publish`.
"""

import json
import stat
import tempfile

import pytest
from house import PUBLISH, ROWS, SECRET, files, refused

from tacit.holder.ledger import Ledger
from tacit.release import Release


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
