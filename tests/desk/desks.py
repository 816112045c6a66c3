"""A desk that runs, and a visitor who speaks HTTP to it by hand."""

import http.client
import json
import re
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from urllib.parse import quote, urlencode, urlsplit

import numpy as np
import pyarrow.csv

from tacit.demo.hospitals import STUDY, patients
from tacit.desk import uploads
from tacit.desk.serve import serve
from tacit.desk.setting import Setting
from tacit.holder.ledger import Ledger
from tacit.study import Study

TIMEOUT_S = 120
AGREED = Study.from_toml(STUDY)
DIGITS = AGREED.hash.removeprefix("sha256:")
FORM = {"dataset": "+", "new_name": "patients", "holder": "north"}


def comes_true(holds):
    """Whether something holds before a busy machine would have done it."""
    end = time.monotonic() + TIMEOUT_S
    while not (value := holds()) and time.monotonic() < end:
        time.sleep(0.05)
    return value


def write_table(path, rows=300, seed=0):
    pyarrow.csv.write_csv(patients(np.random.default_rng(seed), rows), path)
    return path


def setting_in(folder, **fields):
    usual = {"ledger": Ledger(folder / "ledger.db"), "key": folder / "sign.key", "holder": "north"}
    return Setting(**usual | fields)


@contextmanager
def running(setting, folder, monkeypatch, studies=()):
    """The address of a desk that runs beside the test, with its uploads in the test's folder."""
    monkeypatch.setattr(uploads.tempfile, "gettempdir", lambda: str(folder))
    opened = []
    ready = threading.Event()

    def announce(desk):
        opened.append(desk)
        ready.set()

    thread = threading.Thread(target=serve, args=(setting, studies, 0, announce))
    thread.start()
    assert ready.wait(TIMEOUT_S)
    try:
        yield opened[0].address
    finally:
        opened[0].close()
        thread.join(TIMEOUT_S)
        assert not thread.is_alive()


@dataclass
class Visitor:
    """Somebody who opened the desk by its key, and says what a browser says."""

    address: str
    room: str = ""
    cookie: str = ""
    headers: dict = field(default_factory=dict)

    @property
    def origin(self):
        parts = urlsplit(self.address)
        return f"{parts.scheme}://{parts.netloc}"

    def ask(self, method, path, body=None, **headers):
        """Status, headers and text of an answer."""
        said = {name.replace("_", "-"): value for name, value in headers.items()}
        sent = {name: value for name, value in (self.headers | said).items() if value is not None}
        connection = http.client.HTTPConnection(urlsplit(self.origin).netloc, timeout=TIMEOUT_S)
        connection.request(method, path, body=body, headers=sent)
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        return answer.status, answer.headers, text

    def come_in(self):
        status, headers, _ = self.ask("GET", self.address.removeprefix(self.origin))
        assert status == 303
        self.room = headers["location"].rstrip("/")
        self.cookie = headers["set-cookie"]
        self.headers = {"cookie": self.cookie.split(";")[0], "origin": self.origin}
        return self

    def see(self, place, **headers):
        return self.ask("GET", f"{self.room}/{place}", **headers)

    def send(self, place, **fields):
        """Send a form, and follow where it leads."""
        kind = {"content_type": "application/x-www-form-urlencoded"}
        status, headers, text = self.ask("POST", f"{self.room}/{place}", urlencode(fields), **kind)
        if status == 303:
            place = headers["location"].partition("#")[0].removeprefix(self.room + "/")
            return place, *self.see(place)[::2]
        return place, status, text

    def hand_over(self, path):
        status, _, text = self.ask(
            "PUT", f"{self.room}/uploads?name={quote(path.name)}", path.read_bytes()
        )
        return status, text


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
