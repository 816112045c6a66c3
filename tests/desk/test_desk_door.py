"""Who may come in to the desk, and what a page of another's may do there.

Covers `tacit.desk.guard`, `tacit.desk.serve`.
"""

import secrets
import socket
from urllib.parse import urlsplit

import pytest
from desks import TIMEOUT_S, accounts, rehearsed

from tacit.desk.guard import HEADERS, Lock


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
