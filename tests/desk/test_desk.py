"""The desk over HTTP, from a study to a file: what is bound to what, and what is paid once.

Covers `tacit.desk.setting`, `tacit.desk.errand`, `tacit.desk.chosen`, `tacit.desk.desk`,
`tacit.desk.server`, `tacit.desk.pages.account`, `tacit.federation.client.described`.
"""

import json
import re
import stat
import threading

import pytest
from desks import (
    AGREED,
    DIGITS,
    FORM,
    Visitor,
    accounts,
    rehearsed,
    running,
    setting_in,
    write_table,
)

from tacit.demo.hospitals import STUDY
from tacit.desk import errand as errand_module
from tacit.desk import server
from tacit.desk.chosen import Chosen
from tacit.desk.errand import Errand
from tacit.desk.setting import Source, asked_of, picked
from tacit.desk.uploads import PREFIX
from tacit.errors import DeskError
from tacit.holder.publish import publish
from tacit.release import Release
from tacit.release.signature import verify
from tacit.study import Study
from tacit.study.toml import study_toml


def test_from_a_study_to_a_signed_file(officer, patients, tmp_path):
    officer.send("key")
    _, status, text = officer.send("studies", text=STUDY)
    assert status == 200
    assert "What it promises" in text
    place, seen = rehearsed(officer, patients)
    assert accounts(tmp_path) == []
    _, status, text = officer.send(f"{place}/publish", seen=seen)
    assert status == 200
    assert "Save the release" in text
    [account] = accounts(tmp_path)
    [charge] = account.charges
    status, headers, release = officer.see("charges/1/release")
    assert status == 200
    assert headers["content-disposition"] == 'attachment; filename="north-length-of-stay.json"'
    assert release == charge.release
    assert verify(Release.from_json(release))
    assert "ε = 1 of 1" in text
    _, _, text = officer.see("ledger")
    assert "length-of-stay" in text


def test_a_table_is_for_its_owner_alone_and_goes_when_it_is_done_with(officer, patients, tmp_path):
    place, seen = rehearsed(officer, patients)
    [copy] = tmp_path.glob(f"{PREFIX}*/*/patients.csv")
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    assert stat.S_IMODE(copy.parent.parent.stat().st_mode) == 0o700
    officer.send(f"{place}/publish", seen=seen)
    assert not copy.exists()


def test_a_table_that_is_not_published_is_removed(officer, patients, tmp_path):
    place, _ = rehearsed(officer, patients)
    assert [*tmp_path.glob(f"{PREFIX}*/*/patients.csv")]
    officer.send(f"{place}/discard")
    assert not [*tmp_path.glob(f"{PREFIX}*/*/*")]
    assert officer.see(place)[0] == 422
    assert accounts(tmp_path) == []


def test_two_presses_pay_once(officer, patients, tmp_path):
    place, seen = rehearsed(officer, patients)
    answers = []

    def press():
        answers.append(officer.send(f"{place}/publish", seen=seen)[1:])

    presses = [threading.Thread(target=press) for _ in range(4)]
    for each in presses:
        each.start()
    for each in presses:
        each.join()
    assert [status for status, _ in answers] == [200] * 4
    assert all("Save the release" in text for _, text in answers)
    [account] = accounts(tmp_path)
    assert len(account.charges) == 1


def test_only_what_was_shown_can_be_confirmed(officer, patients, tmp_path):
    place, _ = rehearsed(officer, patients)
    for seen in ("", "sha256:" + "0" * 64):
        _, _, text = officer.send(f"{place}/publish", seen=seen)
        assert 'role="alert"' in text
        assert "nothing was paid" in text
    assert accounts(tmp_path) == []


def test_a_page_that_the_ledger_has_overtaken_pays_nothing(officer, patients, tmp_path):
    first, seen = rehearsed(officer, patients)
    second, also_seen = rehearsed(officer, patients)
    assert officer.send(f"{first}/publish", seen=seen)[1] == 200
    _, _, text = officer.send(f"{second}/publish", seen=also_seen)
    assert 'role="alert"' in text
    assert "has changed since" in text
    [account] = accounts(tmp_path)
    assert len(account.charges) == 1


def exchanged(row, other):
    """Two rows with each other's response: every count of a rehearsal stays as it was."""
    first, _, days = row.rpartition(",")
    second, _, others = other.rpartition(",")
    assert days != others
    return f"{first},{others}", f"{second},{days}"


def test_a_table_that_was_exchanged_is_not_published(tmp_path, monkeypatch):
    path = write_table(tmp_path / "stays.csv")
    source = picked(asked_of([str(path)]))
    setting = setting_in(tmp_path, sources=(source,))
    with running(setting, tmp_path, monkeypatch, [AGREED]) as address:
        officer = Visitor(address).come_in()
        place, _, text = officer.send(f"studies/{DIGITS}/rehearsals", **FORM, source=source.id)
        seen = re.search(r'name="seen" value="([^"]+)"', text)[1]
        rows = path.read_text("utf-8").splitlines()
        path.write_text("\n".join([*rows[:-2], *exchanged(*rows[-2:])]) + "\n", encoding="utf-8")
        _, _, text = officer.send(f"{place}/publish", seen=seen)
        assert 'role="alert"' in text
        assert "nothing was paid" in text
        path.write_text("\n".join(rows) + "\n", encoding="utf-8")
        assert officer.send(f"{place}/publish", seen=seen)[1] == 200
    assert path.exists()


@pytest.mark.parametrize(
    "fields",
    [
        {"planned_rows": [300], "visits": 4},
        {"planned_rows": [300, 300], "visits": 4},
        {"person": "note"},
    ],
    ids=["visits", "visits of several", "persons"],
)
def test_every_form_of_study_goes_the_same_way(officer, patients, tmp_path, fields):
    """What publishing looks at less closely than a rehearsal is no change of the table."""
    study = Study.from_document(AGREED.document() | {"release": {}} | fields)
    rows = patients.read_text("utf-8").splitlines()
    numbered = [f"{row},{place // 2}" for place, row in enumerate(rows)]
    numbered[0] = rows[0] + ',"note"'
    patients.write_text("\n".join(numbered) + "\n", encoding="utf-8")
    officer.send("studies", text=study_toml(study))
    number = json.loads(officer.hand_over(patients)[1])["id"]
    place, _, text = officer.send(
        f"studies/{study.hash.removeprefix('sha256:')}/rehearsals", **FORM | {"source": number}
    )
    seen = re.search(r'name="seen" value="([^"]+)"', text)[1]
    assert ("Length of rows" in text) == (study.visit_count == 1)
    _, _, text = officer.send(f"{place}/publish", seen=seen, anyway="yes")
    assert "Save the release" in text
    assert ("It is the first of 4 visits." in text) == (len(study.planned_rows) == 2)
    [account] = accounts(tmp_path)
    assert len(account.charges) == 1


def test_rows_without_a_file_are_looked_at_again(tmp_path, monkeypatch):
    """As those of a database's server, whose digest nobody can take."""
    monkeypatch.setattr(Source, "files", lambda _source: ())
    path = write_table(tmp_path / "stays.csv")
    source = picked(asked_of([str(path)]))
    chosen = Chosen(source=source.id, holder="north", dataset="+", new_name="patients")
    errand = Errand.begin(AGREED, source, chosen, setting_in(tmp_path))
    rows = path.read_text("utf-8")
    path.write_text(rows.replace("female", "male", 1), encoding="utf-8")
    with pytest.raises(DeskError, match="has changed since"):
        errand.finish(errand.binding)
    assert accounts(tmp_path) == []
    path.write_text(rows, encoding="utf-8")
    assert errand.finish(errand.binding) == 1
    assert errand.finish("whatever") == 1


def test_a_table_that_changes_while_it_is_read_is_not_shown(tmp_path, monkeypatch):
    path = write_table(tmp_path / "stays.csv")
    source = picked(asked_of([str(path)]))
    chosen = Chosen(source=source.id, holder="north", dataset="+", new_name="patients")

    def meanwhile(*arguments):
        path.write_text(path.read_text("utf-8") + "50,25,male,planned,3\n", encoding="utf-8")
        return rehearsed_as_ever(*arguments)

    rehearsed_as_ever = errand_module.rehearsed
    monkeypatch.setattr(errand_module, "rehearsed", meanwhile)
    with pytest.raises(DeskError, match="changed while it was read"):
        Errand.begin(AGREED, source, chosen, setting_in(tmp_path))


def test_a_table_that_changes_while_it_is_published_is_not_paid_for(tmp_path, monkeypatch):
    path = write_table(tmp_path / "stays.csv")
    source = picked(asked_of([str(path)]))
    chosen = Chosen(source=source.id, holder="north", dataset="+", new_name="patients")
    errand = Errand.begin(AGREED, source, chosen, setting_in(tmp_path))

    def meanwhile(*arguments, **terms):
        rows = path.read_text("utf-8").splitlines()
        path.write_text("\n".join([*rows[:-2], *exchanged(*rows[-2:])]) + "\n", encoding="utf-8")
        return publish(*arguments, **terms)

    monkeypatch.setattr(errand_module, "publish", meanwhile)
    with pytest.raises(DeskError, match="has changed since"):
        errand.finish(errand.binding)
    assert accounts(tmp_path) == []


def test_a_loud_rehearsal_needs_a_word(officer, tmp_path):
    path = tmp_path / "codes.csv"
    rows = ["age,bmi,sex,admission,days", *["-999,25,female,planned,3"] * 40]
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    place, seen = rehearsed(officer, path)
    _, _, text = officer.send(f"{place}/publish", seen=seen)
    assert 'role="alert"' in text
    assert "Stop and look" in text
    assert accounts(tmp_path) == []
    assert officer.send(f"{place}/publish", seen=seen, anyway="yes")[1] == 200


def test_what_would_be_refused_offers_no_button(officer, patients, tmp_path):
    publish(AGREED, patients, holder="north", ledger=tmp_path / "ledger.db", dataset="patients")
    number = json.loads(officer.hand_over(patients)[1])["id"]
    _, status, text = officer.send(
        f"studies/{DIGITS}/rehearsals", source=number, dataset="=patients", holder="north"
    )
    assert status == 200
    assert "was published from data set" in text
    assert 'name="seen"' not in text


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"source": ""}, "Choose a table"),
        ({"source": "nothing"}, "no longer at the desk"),
        ({"new_name": " "}, "Give the data set a name"),
        ({"dataset": ""}, "Say which data set pays"),
        ({"holder": ""}, "holder"),
        ({"holder": "a\u202eb"}, "holder"),
    ],
)
def test_a_form_that_lacks_something_says_what(officer, patients, fields, sentence):
    number = json.loads(officer.hand_over(patients)[1])["id"]
    _, _, text = officer.send(f"studies/{DIGITS}/rehearsals", **FORM | {"source": number} | fields)
    assert 'role="alert"' in text
    assert 'role="alert"' in text
    assert sentence in text
    assert 'value="north"' in text or "holder" in fields


def test_a_wrong_table_is_told_and_stays_to_be_chosen_again(officer, tmp_path):
    path = tmp_path / "other.csv"
    path.write_text("a,b\n1,2\n", encoding="utf-8")
    number = json.loads(officer.hand_over(path)[1])["id"]
    _, _, text = officer.send(f"studies/{DIGITS}/rehearsals", **FORM | {"source": number})
    assert 'role="alert"' in text
    assert "age" in text
    assert f'value="{number}" checked' in text


def test_how_a_table_is_written_can_be_said(officer, tmp_path):
    rows = ["Alter;bmi;sex;admission;days", *["50;25,5;female;planned;-999"] * 20]
    path = tmp_path / "stays.csv"
    path.write_text("\n".join([*rows, "1.050;25,5;female;planned;3"]) + "\n", encoding="cp1252")
    said = {"columns": "age=Alter\n", "missing": "-999\n?", "separator": ";", "decimal": ","}
    number = json.loads(officer.hand_over(path)[1])["id"]
    form = FORM | {"source": number, "encoding": "windows-1252", "thousands": "."} | said
    _, status, text = officer.send(f"studies/{DIGITS}/rehearsals", **form)
    assert status == 200
    assert "20 missing" in text
    assert "semicolon" in text
    for wrong in ({"header": "first"}, {"separator": "ab"}, {"encoding": "none"}):
        _, status, text = officer.send(f"studies/{DIGITS}/rehearsals", **form | wrong)
        assert 'role="alert"' in text
        assert "details open" in text


@pytest.mark.parametrize(
    ("text", "sentence"),
    [("", "name"), ("nonsense", "not valid TOML"), (STUDY.replace("1e-6", "2"), "delta")],
)
def test_a_wrong_study_is_told_and_kept_to_be_mended(officer, text, sentence):
    _, _, page = officer.send("studies", text=text)
    assert 'role="alert"' in page
    assert sentence in page
    assert text.partition("\n")[0].replace("'", "&#x27;") in page


def test_what_is_too_long_is_refused(officer):
    _, _, text = officer.send("studies", text="x" * (server.MOST_FORM + 1))
    assert 'role="alert"' in text
    assert "longer than any study" in text


def test_names_stay_words(officer, tmp_path):
    evil = "<script>alert(1)</script>"
    _, status, text = officer.send(
        "studies", text=STUDY.replace("length-of-stay", evil).replace("planned", evil)
    )
    assert status == 200
    assert evil not in text
    assert "&lt;script&gt;" in text
    path = tmp_path / f"{evil.replace('/', '')}.csv"
    path.write_text("a\n1\n", encoding="utf-8")
    number = json.loads(officer.hand_over(path)[1])["id"]
    _, _, text = officer.send(f"studies/{DIGITS}/rehearsals", **FORM | {"source": number})
    assert "<script>alert" not in text


def test_what_nobody_foresaw_is_told_by_its_kind_alone(officer, monkeypatch):
    def fail(*_):
        raise RuntimeError("a value of a row")

    monkeypatch.setattr(server.Desk, "home", fail)
    status, _, text = officer.see("")
    assert status == 500
    assert "RuntimeError" in text
    assert "a value" not in text


@pytest.mark.parametrize(
    "place", ["studies/0", "errands/0", "charges/0/release", "charges/x/release", "requests"]
)
def test_what_is_not_there_is_said(officer, place):
    status, _, text = officer.see(place)
    assert status == 422
    assert 'role="alert"' in text


# The ledger and the dossier.


def test_a_limit_is_set_and_told(officer, tmp_path):
    _, status, text = officer.send("ledger/limit", dataset="patients", epsilon="2,5", delta="1e-6")
    assert status == 200
    assert "the limit is ε = 2.5" in text
    assert accounts(tmp_path)[0].epsilon == 2.5
    for epsilon in ("much", "1e9"):
        _, status, text = officer.send(
            "ledger/limit", dataset="patients", epsilon=epsilon, delta="1e-6"
        )
        assert 'role="alert"' in text
        assert 'role="alert"' in text


def test_the_dossier_is_the_command_lines(officer):
    _, headers, text = officer.see(f"studies/{DIGITS}/dossier.md")
    assert text.startswith("# The privacy of study length-of-stay")
    assert "attachment" in headers["content-disposition"]
    _, headers, text = officer.see(f"studies/{DIGITS}/dossier.html")
    assert "sandbox" in headers["content-security-policy"]
    assert json.loads(officer.see(f"studies/{DIGITS}/dossier.json")[2])["version"] == 1
    assert officer.see(f"studies/{DIGITS}/dossier.exe")[0] == 422
