"""Sites of a secure sum for the tests, and a server that says what it likes to them."""

import base64
import json

import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from flwr.app import Context, Message, RecordDict
from sites import changed, make_site

from tacit.federation.client.app import app
from tacit.federation.flower import identify
from tacit.federation.local import LocalGrid, Node
from tacit.federation.secure_sum.statements import digest
from tacit.federation.wire import Step, read_answer, step_request
from tacit.release.signature import load_key
from tacit.study.toml import study_toml

NAMES = ("ash", "birch", "cedar", "elm", "fir")


def public_key(path):
    return base64.b64encode(
        load_key(path).public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
    ).decode()


@pytest.fixture
def sites(tmp_path):
    return {
        name: make_site(tmp_path / name, name, rows=200 + 10 * k, seed=k, signed=True)
        for k, name in enumerate(NAMES)
    }


def summing(sites, least=4, colluding=1, **fields):
    """A study with a secure sum of the sites, which their policies name by its hash."""
    keys = {name: public_key(path.with_name("sign.key")) for name, path in sites.items()}
    study = changed(secure_sum={"holders": keys, "least": least, "colluding": colluding}, **fields)
    for path in sites.values():
        text = path.read_text(encoding="utf-8")
        path.write_text(text.replace('"length-of-*"', json.dumps(study.hash)), encoding="utf-8")
    return study


def grid_of(sites, on_reply=None):
    return LocalGrid(
        {k: Node(app, {"policy": str(path)}) for k, path in enumerate(sites.values(), 1)}, on_reply
    )


class Wire:
    """Talks to sites round by round, as a server may that does what it likes."""

    def __init__(self, sites, study, session="ab" * 16):
        self.sites = sites
        self.study = study
        self.session = session
        LocalGrid({})

    def ask(self, name, round_, payload):
        """A site's answer to a payload's text."""
        return self.answered(name, Step(study_toml(self.study), self.session, round_, payload))

    def answered(self, name, step):
        """A site's answer to a step."""
        context = Context(1, 1, {"policy": str(self.sites[name])}, RecordDict(), {})
        identify()
        return read_answer(app(Message(step_request(step), 1, "query"), context).content)

    def say(self, name, round_, payload):
        """A site's document, or the name of its reason."""
        answer = self.ask(name, round_, json.dumps(payload))
        return json.loads(answer.release) if answer.state == "released" else answer.reason.name

    def keys(self):
        return {name: self.say(name, "keys", {}) for name in self.sites}

    def passed(self, keys):
        """What each site is told of the others' shares."""
        shares = {name: self.say(name, "shares", keys) for name in self.sites}
        return {
            name: {other: shares[other][name] for other in self.sites if other != name}
            for name in self.sites
        }

    def until_masked(self):
        """All rounds up to the third: keys, shares passed on, masked vectors."""
        keys = self.keys()
        passed = self.passed(keys)
        return keys, passed, {name: self.say(name, "masked", passed[name]) for name in self.sites}

    def signatures(self, vectors):
        """Everybody's signature on who stayed with these vectors."""
        told = {"survivors": digests(vectors)}
        return {name: self.say(name, "agree", told)["signature"] for name in vectors}


def digests(vectors):
    return {name: digest(told["vector"]) for name, told in vectors.items()}
