"""The desk over HTTP: who may come in, what is bound to what, what is paid once, what stays.

Covers `tacit.desk.guard`, `tacit.desk.uploads`, `tacit.desk.setting`, `tacit.desk.errand`,
`tacit.desk.chosen`,
`tacit.desk.desk`, `tacit.desk.server`, `tacit.desk.serve`, `tacit.desk.pages.account`,
`tacit.federation.client.described`.
"""

import json
import os
import re
import secrets
import socket
import stat
import threading
from urllib.parse import urlsplit

import pytest
from desks import TIMEOUT_S, Visitor, comes_true, running, setting_in, write_table

from tacit.demo.hospitals import STUDY
from tacit.desk import errand as errand_module
from tacit.desk import server
from tacit.desk.chosen import Chosen
from tacit.desk.errand import Errand
from tacit.desk.guard import HEADERS, Lock
from tacit.desk.setting import Source, asked_of, picked
from tacit.desk.uploads import PREFIX, Uploads, safe_name
from tacit.errors import DeskError, TableError
from tacit.holder.ledger import Ledger
from tacit.holder.publish import publish
from tacit.release import Release
from tacit.release.signature import verify
from tacit.study import Study
from tacit.study.toml import study_toml

AGREED = Study.from_toml(STUDY)
DIGITS = AGREED.hash.removeprefix("sha256:")
FORM = {"dataset": "+", "new_name": "patients", "holder": "north"}


@pytest.fixture
def desk(tmp_path, monkeypatch):
    """A visitor at a desk where the study lies open."""
    with running(setting_in(tmp_path), tmp_path, monkeypatch, [AGREED]) as address:
        yield Visitor(address)


@pytest.fixture
def officer(desk):
    return desk.come_in()


@pytest.fixture
def patients(tmp_path):
    return write_table(tmp_path / "patients.csv")


def rehearsed(officer, path, **fields):
    """A rehearsal's place and the hash of what it showed."""
    number = json.loads(officer.hand_over(path)[1])["id"]
    place, status, text = officer.send(
        f"studies/{DIGITS}/rehearsals", **FORM | {"source": number} | fields
    )
    assert status == 200, text
    return place, re.search(r'name="seen" value="([^"]+)"', text)[1]


def accounts(folder):
    ledger = Ledger(folder / "ledger.db")
    return ledger.accounts() if ledger.exists() else []


# Who may come in.


def test_the_key_opens_the_desk_once(desk):
    status, headers, _ = desk.ask("GET", desk.address.removeprefix(desk.origin))
    assert status == 303
    assert {"HttpOnly", "SameSite=strict"} <= set(headers["set-cookie"].split("; "))
    assert f"Path={headers['location']}" in headers["set-cookie"]
    status, headers, text = desk.ask("GET", desk.address.removeprefix(desk.origin))
    assert status == 403
    assert "set-cookie" not in headers
    assert "start it again" in text


@pytest.mark.parametrize("key", ["", "?key=", "?key=x", "?key=" + 43 * "A"])
def test_a_wrong_key_opens_nothing_and_spends_none(desk, key):
    status, headers, text = desk.ask("GET", f"/{key}")
    assert status == 403
    assert "set-cookie" not in headers
    assert "length-of-stay" not in text
    assert desk.come_in().see("")[0] == 200


@pytest.mark.parametrize("host", ["evil.example", "localhost", "127.0.0.1", "[::1]"])
def test_another_host_is_refused(officer, host):
    """A name that somebody made to point here is not ours, even with the right cookie."""
    port = urlsplit(officer.origin).port
    for name in (host, f"{host}:{port}"):
        if name != f"127.0.0.1:{port}":
            assert officer.see("", host=name)[0] == 421


@pytest.mark.parametrize(
    "headers",
    [
        {"cookie": None},
        {"cookie": "tacit-desk=wrong"},
        {"cookie": 'tacit-desk="; broken'},
        {"sec_fetch_site": "cross-site"},
        {"sec_fetch_site": "same-site"},  # a page of another port of this machine
    ],
)
def test_pages_are_for_who_came_in(officer, headers):
    status, _, text = officer.see("", **headers)
    assert status == 403
    assert "Publish" not in text


def test_a_cookie_without_the_path_is_nothing(officer):
    assert officer.ask("GET", "/ledger")[0] == 404
    assert officer.ask("GET", "/" + secrets.token_urlsafe(16) + "/ledger")[0] == 404
    assert officer.ask("GET", officer.room)[0] == 404


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": None},
        {"origin": "null"},
        {"origin": "https://evil.example"},
        {"origin": "http://127.0.0.1:1"},
        {"sec_fetch_site": "cross-site"},
        {"sec_fetch_site": "none"},
    ],
)
def test_another_page_cannot_act_in_the_officers_name(officer, patients, tmp_path, headers):
    place, seen = rehearsed(officer, patients)
    path = f"{officer.room}/{place}/publish"
    assert officer.ask("POST", path, f"seen={seen}", **headers)[0] == 403
    assert officer.ask("PUT", f"{officer.room}/uploads?name=x", b"1", **headers)[0] == 403
    assert officer.ask("POST", f"{officer.room}/close", "", **headers)[0] == 403
    assert accounts(tmp_path) == []


def test_every_answer_is_sealed(officer):
    for method, path in (
        ("GET", f"{officer.room}/"),
        ("GET", f"{officer.room}/nothing"),
        ("GET", f"{officer.room}/static/desk.js"),
        ("GET", "/"),
        ("POST", f"{officer.room}/studies"),
        ("DELETE", f"{officer.room}/ledger"),
    ):
        _, headers, _ = officer.ask(method, path)
        assert {name: headers[name] for name in HEADERS} == HEADERS
        assert "server" not in headers


def test_a_port_scan_learns_nothing(desk):
    port = urlsplit(desk.origin).port
    for said in (
        b"GET / HTTP/1.0\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: scan.example\r\n\r\n",
        b"OPTIONS * HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        b"CONNECT evil.example:443 HTTP/1.1\r\nHost: evil.example\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(64),
        b"SSH-2.0-scan\r\n",
        b"GET /?key=" + b"x" * 100_000 + b" HTTP/1.1\r\n\r\n",
    ):
        with socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT_S) as connection:
            connection.sendall(said)
            connection.shutdown(socket.SHUT_WR)
            heard = b""
            while piece := connection.recv(4096):
                heard += piece
        assert b" 200 " not in heard
        assert b"acit" not in heard.replace(b"`tacit desk`", b"")
    assert desk.come_in().see("")[0] == 200


def test_the_guard_listens_on_this_machine_alone(desk):
    assert urlsplit(desk.origin).hostname == "127.0.0.1"
    others = {address[4][0] for address in socket.getaddrinfo(socket.gethostname(), None)}
    for address in others - {"127.0.0.1", "127.0.1.1", "::1"}:
        with pytest.raises(OSError):  # noqa: PT011 - refused, or no such way
            socket.create_connection((address, urlsplit(desk.origin).port), timeout=2).close()


def test_keys_are_long_and_differ():
    locks = [Lock("http://127.0.0.1:1") for _ in range(3)]
    texts = {text for lock in locks for text in (lock.key, lock.session, lock.room)}
    assert len(texts) == 9
    assert all(len(text) > 20 for text in texts)


# The way to a file.


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
    [{"planned_rows": [300], "visits": 4}, {"person": "note"}],
    ids=["visits", "persons"],
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
    _, _, text = officer.send(f"{place}/publish", seen=seen, anyway="yes")
    assert "Save the release" in text
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


# Uploads.


def test_half_a_table_does_not_stay(officer, tmp_path):
    parts = urlsplit(officer.origin)
    with socket.create_connection((parts.hostname, parts.port), timeout=TIMEOUT_S) as connection:
        connection.sendall(
            (
                f"PUT {officer.room}/uploads?name=half.csv HTTP/1.1\r\nHost: {parts.netloc}\r\n"
                f"Cookie: {officer.headers['cookie']}\r\nOrigin: {officer.origin}\r\n"
                "Content-Length: 1000\r\n\r\nage,bmi"
            ).encode()
        )
    assert officer.see("")[0] == 200
    assert comes_true(lambda: not [*tmp_path.glob(f"{PREFIX}*/*/half.csv")])


def test_an_empty_table_is_refused(officer, tmp_path):
    (tmp_path / "none.csv").write_bytes(b"")
    status, text = officer.hand_over(tmp_path / "none.csv")
    assert status == 422
    assert "is empty" in json.loads(text)["error"]


def test_closing_removes_what_was_handed_over(desk, patients, tmp_path):
    officer = desk.come_in()
    officer.hand_over(patients)
    [folder] = tmp_path.glob(f"{PREFIX}*")
    status, _, text = officer.ask("POST", f"{officer.room}/close", "")
    assert status == 200
    assert "closed" in text
    assert comes_true(lambda: not folder.exists())


def test_the_next_desk_removes_what_a_killed_one_left(tmp_path):
    left = tmp_path / f"{PREFIX}left"
    left.mkdir()
    (left / "lock").write_bytes(b"")
    (left / "rows.csv").write_text("1\n", encoding="utf-8")
    (tmp_path / f"{PREFIX}link").symlink_to(tmp_path)
    running_desk = Uploads(tmp_path)
    other = Uploads(tmp_path)
    assert not left.exists()
    assert running_desk.folder.exists()
    running_desk.close()
    other.close()
    assert [path.name for path in tmp_path.iterdir()] == [f"{PREFIX}link"]


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("../../etc/passwd", "passwd"),
        ("C:\\Users\\a\\Stays 2024.xlsx", "Stays 2024.xlsx"),
        ("...", "table"),
        ("a*?[b].csv", "a___b_.csv"),
        ("Größe.csv", "Größe.csv"),
        ("x\n\r\0.csv", "x___.csv"),
        ("é" * 300 + ".csv.gz", "é" * 93 + ".csv.gz"),
    ],
)
def test_a_file_name_means_nothing_to_the_file_system(name, kept):
    assert safe_name(name) == kept


def test_a_table_that_is_gone_is_said(tmp_path):
    held = Uploads(tmp_path)
    with pytest.raises(TableError, match="hand it over once more"):
        held.find("nothing")
    held.remove("nothing")
    held.close()


def test_a_port_in_use_is_said(desk, tmp_path):
    from tacit.desk.serve import serve

    with pytest.raises(DeskError, match="cannot be used"):
        serve(setting_in(tmp_path), [], urlsplit(desk.origin).port, lambda _opened: None)
    assert not os.environ.get("TACIT_DEBUG")
