"""Tables that were handed over to the desk: what stays of them, and what does not.

Covers `tacit.desk.uploads`, `tacit.desk.setting`, `tacit.desk.serve`.
"""

import json
import os
import socket
from urllib.parse import urlsplit

import pytest
from desks import TIMEOUT_S, comes_true, setting_in

from tacit.desk.uploads import PREFIX, Uploads, safe_name
from tacit.errors import DeskError, TableError


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
