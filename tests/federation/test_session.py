"""tacit.federation.secure_sum (holder, session): a holder's states, before a server that lies.

Covers `tacit.federation.secure_sum.session`.
"""

import base64
import json
import multiprocessing
import os
import time
from contextlib import contextmanager

import numpy as np
import pytest
from sites import STUDY, charges
from sums import NAMES, Wire, digests, sites, summing

from tacit.federation.client.policy import Policy
from tacit.federation.secure_sum import masks, session
from tacit.federation.secure_sum.statements import keys_statement
from tacit.federation.wire import Step
from tacit.holder.ledger import Ledger
from tacit.holder.share import publish_share
from tacit.study.toml import study_toml
from tacit.visits.sitting import Sitting

__all__ = ["sites"]


def test_rounds_come_in_their_order(sites):
    wire = Wire(sites, summing(sites))
    for round_ in ("shares", "masked", "agree", "unmask"):
        assert wire.say("ash", round_, {}) == "SUM"
    assert charges(sites["ash"]) == []


def test_a_vector_alone_looks_like_noise_and_does_not_change(sites):
    """The masked vector's bytes: 256 cells, chi-squared below its 1 - 1e-9 quantile."""
    from scipy.stats import chi2

    study = summing(sites)
    wire = Wire(sites, study)
    _, passed, vectors = wire.until_masked()
    assert wire.say("ash", "masked", passed["ash"]) == vectors["ash"]
    assert wire.say("ash", "masked", {}) == "SUM", "another question gets no answer"
    data = b"".join(base64.b64decode(vector["vector"]) for vector in vectors.values())
    counts = np.bincount(np.frombuffer(data, dtype=np.uint8), minlength=256)
    expected = len(data) / 256
    assert np.sum((counts - expected) ** 2 / expected) < chi2.ppf(1 - 1e-9, 255)


def test_a_server_cannot_put_keys_of_its_own_in_place(sites):
    wire = Wire(sites, summing(sites))
    keys = wire.keys()
    forged = keys | {"birch": keys["cedar"]}
    assert wire.say("ash", "shares", forged) == "SUM"
    assert wire.say("ash", "shares", {name: keys[name] for name in NAMES[:3]}) == "SUM", "too few"
    assert wire.say("ash", "shares", keys | {"stranger": keys["ash"]}) == "SUM"


def test_shares_changed_on_the_way_are_refused(sites):
    wire = Wire(sites, summing(sites))
    passed = wire.passed(wire.keys())
    assert wire.say("ash", "masked", passed["ash"] | {"birch": passed["cedar"]["birch"]}) == "SUM"
    assert charges(sites["ash"]) == []


def test_a_server_cannot_unmask_fewer_than_the_study_says(sites):
    wire = Wire(sites, summing(sites))
    vectors = digests(wire.until_masked()[2])

    def told(names):
        return {"survivors": {name: vectors[name] for name in names}}

    assert wire.say("ash", "agree", told(NAMES[:3])) == "SUM"
    assert wire.say("ash", "agree", told(NAMES[1:])) == "SUM", "without the one who is asked"
    assert wire.say("ash", "agree", {"survivors": vectors | {"ash": "0" * 64}}) == "SUM"
    assert wire.say("ash", "agree", {"survivors": ["ash"] * 4}) == "SUM"


def test_a_server_cannot_tell_two_stories_of_who_stayed(sites):
    """Half is told that all stayed, half that elm did not: no story finds enough signatures."""
    study = summing(sites)
    wire = Wire(sites, study)
    vectors = digests(wire.until_masked()[2])
    without = {name: text for name, text in vectors.items() if name != "elm"}
    stories = {name: vectors if name in {"ash", "elm"} else without for name in NAMES}
    signatures = {
        name: wire.say(name, "agree", {"survivors": stories[name]})["signature"] for name in NAMES
    }
    assert study.secure_sum.threshold == 4
    for name in NAMES:
        assert wire.say(name, "unmask", signatures) == "SUM"


def test_two_different_answers_to_one_question_cannot_be_had(sites):
    wire = Wire(sites, summing(sites))
    vectors = digests(wire.until_masked()[2])
    first = wire.say("ash", "agree", {"survivors": vectors})
    fewer = {name: text for name, text in vectors.items() if name != "elm"}
    assert wire.say("ash", "agree", {"survivors": fewer}) == "SUM"
    assert wire.say("ash", "agree", {"survivors": vectors}) == first


def test_the_secrets_of_a_session_are_kept_from_others(sites):
    wire = Wire(sites, summing(sites))
    wire.say("ash", "keys", {})
    (file,) = (sites["ash"].parent / "sums").glob("*.json")
    assert file.stat().st_mode & 0o777 == 0o600
    assert file.parent.stat().st_mode & 0o777 == 0o700


def test_a_sum_is_not_asked_for_as_a_release_nor_the_other_way(sites):
    from tacit.federation.client.answer import answer

    policy = Policy.load(sites["ash"])
    assert answer(study_toml(summing(sites)), policy).reason.name == "UNREADABLE"
    assert (
        answer(Step(study_toml(STUDY), "ab" * 16, "keys", "{}"), policy).reason.name == "UNREADABLE"
    )


@pytest.mark.parametrize(
    "payload",
    [
        "",
        "[]",
        "{",
        "[" * 100_000,
        '{"a":' * 5000 + "1" + "}" * 5000,
        '{"birch": 5}',
        '{"survivors": 5}',
        '{"survivors": {"ash": "\\ud800"}}',
        '{"ash": {"cipher": "\\ud800", "mask": "x", "signature": "y"}}',
    ],
)
@pytest.mark.parametrize("after", ["keys", "masked"])
def test_a_wrong_payload_is_refused(sites, payload, after):
    wire = Wire(sites, summing(sites))
    if after == "masked":
        wire.until_masked()
    else:
        wire.keys()
    for round_ in ("shares", "masked", "agree", "unmask"):
        reply = wire.ask("ash", round_, payload)
        assert (reply.state, reply.reason.name) == ("refused", "SUM")


# What is decided once, with real keys, files and ledgers (TACIT-2026-002).


@contextmanager
def away(sites, name):
    """A site whose table is not there for a moment."""
    table = sites[name].with_name("rows.parquet")
    table.rename(table.with_suffix(".away"))
    yield
    table.with_suffix(".away").rename(table)


def test_after_an_outage_a_holder_masks_for_those_it_was_told_of_first(sites):
    wire = Wire(sites, summing(sites, least=3, colluding=0))
    passed = wire.passed(wire.keys())
    fewer = {name: passed["ash"][name] for name in ("birch", "cedar")}
    with away(sites, "ash"):
        assert wire.say("ash", "masked", passed["ash"]) == "TABLE"
    assert wire.say("ash", "masked", fewer) == "SUM"
    assert charges(sites["ash"]) == []
    assert "vector" in wire.say("ash", "masked", passed["ash"])
    assert len(charges(sites["ash"])) == 1


def forged(wire, name, sites, mask):
    """Keys that a colluding holder signs for this session, with a mask key of its choice."""
    cipher = masks.public_of(masks.new_secret())
    text = keys_statement(Sitting(wire.study), wire.session, name, cipher, mask)
    signature = masks.sign(str(sites[name].with_name("sign.key")), text)
    return {"cipher": cipher, "mask": mask, "signature": signature}


def test_a_bad_mask_key_is_refused_before_anything_is_sent(sites):
    wire = Wire(sites, summing(sites))
    keys = wire.keys()
    low = masks.encode(bytes(32))
    for mask in (low, keys["cedar"]["mask"], keys["cedar"]["cipher"], "", "AAAA", low[:-4]):
        bad = keys | {"birch": forged(wire, "birch", sites, mask)}
        assert wire.say("ash", "shares", bad) == "SUM"
    good = keys | {"birch": forged(wire, "birch", sites, masks.public_of(masks.new_secret()))}
    assert set(wire.say("ash", "shares", good)) == set(NAMES) - {"ash"}


class PowerCut(BaseException):
    """The machine stops."""


@pytest.fixture
def cutting(monkeypatch):
    """Cuts the power before a write of a session's file or the ledger; the list counts down."""
    left = []

    def cut(write):
        def counted(*arguments, **options):
            if left and left[-1] == 0:
                left.clear()
                raise PowerCut
            left[-1:] = [count - 1 for count in left[-1:]]
            return write(*arguments, **options)

        return counted

    monkeypatch.setattr(session, "write_whole", cut(session.write_whole))
    monkeypatch.setattr(Ledger, "pay", cut(Ledger.pay))
    monkeypatch.setattr(Ledger, "record", cut(Ledger.record))
    return left


@pytest.mark.parametrize("cut", range(4))
def test_a_power_cut_at_any_write_changes_no_answer(sites, cut, cutting):
    """State, charge, vector, state: whichever never comes, one vector is paid for and sent."""
    wire = Wire(sites, summing(sites, least=3, colluding=0))
    passed = wire.passed(wire.keys())
    cutting.append(cut)
    with pytest.raises(PowerCut):
        wire.say("ash", "masked", passed["ash"])
    assert cutting == []
    fewer = {name: passed["ash"][name] for name in ("birch", "cedar")}
    told = fewer if cut == 0 else passed["ash"]
    assert cut == 0 or wire.say("ash", "masked", fewer) == "SUM"
    vector = wire.say("ash", "masked", told)
    assert wire.say("ash", "masked", told) == vector
    _, state = states(sites, "ash")
    assert set(state["held"]) == {"ash", *told}, "what is signed is what was masked for"
    assert len(charges(sites["ash"])) == 1


@pytest.mark.parametrize("round_", ["keys", "shares", "agree", "unmask"])
def test_a_power_cut_before_a_state_is_written_leaves_the_one_before(sites, round_, cutting):
    wire = Wire(sites, summing(sites))
    payload = {}
    if round_ != "keys":
        payload = wire.keys()
    if round_ in {"agree", "unmask"}:
        passed = wire.passed(payload)
        vectors = {name: wire.say(name, "masked", passed[name]) for name in NAMES}
        payload = {"survivors": digests(vectors)}
    if round_ == "unmask":
        payload = wire.signatures(vectors)
    cutting.append(0)
    with pytest.raises(PowerCut):
        wire.say("ash", round_, payload)
    answer = wire.say("ash", round_, payload)
    assert isinstance(answer, dict)
    assert wire.say("ash", round_, payload) == answer


@pytest.mark.parametrize("other", [{"sharers": ["ash", "birch", "cedar"]}, {"mask": "another"}])
def test_a_ledgers_vector_is_not_sent_for_other_masks(sites, other, monkeypatch):
    """As where the session's file was lost, and its name is used again: the ledger knows better."""
    wire = Wire(sites, summing(sites, least=3, colluding=0))
    passed = wire.passed(wire.keys())

    def stored(*arguments, **options):
        return json.dumps(json.loads(publish_share(*arguments, **options)) | other)

    with monkeypatch.context() as patch:
        patch.setattr("tacit.federation.client.answer.publish_share", stored)
        assert wire.say("ash", "masked", passed["ash"]) == "SUM"
    assert "vector" in wire.say("ash", "masked", passed["ash"])
    assert len(charges(sites["ash"])) == 1


def states(sites, name):
    (file,) = (sites[name].parent / "sums").glob("*.json")
    return file, json.loads(file.read_text())


def test_secrets_go_when_they_are_used_and_an_ended_session_stays_ended(sites):
    wire = Wire(sites, summing(sites))
    keys = wire.keys()
    secrets = states(sites, "ash")[1]["secrets"]
    passed = wire.passed(keys)
    old = open_copy(states(sites, "ash")[0])
    vectors = {name: wire.say(name, "masked", passed[name]) for name in NAMES}
    assert old.read().strip(b"\0") == b"", "what a state replaces is overwritten"
    old.close()
    text = states(sites, "ash")[0].read_text()
    assert not any(secret in text for secret in secrets.values())
    signatures = wire.signatures(vectors)
    given = wire.say("ash", "unmask", signatures)
    assert set(given["seeds"]) == set(NAMES)
    _, ended = states(sites, "ash")
    assert (ended["state"], list(ended["answers"])) == ("ended", ["unmask"])
    assert wire.say("ash", "unmask", signatures) == given
    for round_, payload in (
        ("keys", {}),
        ("shares", keys),
        ("masked", passed["ash"]),
        ("agree", {"survivors": digests(vectors)}),
    ):
        assert wire.say("ash", round_, payload) == "SUM"


def open_copy(path):
    return path.open("rb")


def test_a_session_that_nobody_goes_on_with_is_ended(sites):
    wire = Wire(sites, summing(sites))
    wire.keys()
    file, _ = states(sites, "ash")
    long_ago = time.time() - session.LIFETIME - 10
    os.utime(file, (long_ago, long_ago))
    Wire(sites, wire.study, "cd" * 16).say("ash", "keys", {})
    assert json.loads(file.read_text())["state"] == "ended"
    assert wire.say("ash", "keys", {}) == "SUM"


def test_what_a_power_cut_left_half_written_is_removed(sites):
    wire = Wire(sites, summing(sites))
    wire.say("ash", "keys", {})
    part = sites["ash"].parent / "sums" / ".half.json.abc.part"
    part.write_text("a secret")
    wire.say("ash", "keys", {})
    assert not part.exists()


def test_only_so_many_sessions_may_be_under_way(sites, monkeypatch):
    monkeypatch.setattr(session, "MOST_OPEN", 3)
    study = summing(sites)
    said = [Wire(sites, study, f"{k:032x}").say("ash", "keys", {}) for k in range(4)]
    assert said[3] == "SUM"
    assert all("mask" in told for told in said[:3])


def test_a_damaged_session_is_the_sites_affair(sites):
    wire = Wire(sites, summing(sites))
    wire.say("ash", "keys", {})
    file, _ = states(sites, "ash")
    file.write_text('{"state": "masked"}')
    assert wire.say("ash", "keys", {}) == "SITE"


def test_two_who_ask_at_once_get_one_signature(sites):
    """Eight processes are told different stories at the same time: one of them is signed."""
    wire = Wire(sites, summing(sites))
    vectors = digests(wire.until_masked()[2])
    stories = [
        {"survivors": {name: text for name, text in vectors.items() if name != left_out}}
        for left_out in (*NAMES[1:], "nobody") * 2
    ][:8]
    with multiprocessing.get_context("spawn").Pool(4) as pool:
        said = pool.starmap(_say, [(sites, wire.study, story) for story in stories])
    signatures = {told["signature"] for told in said if isinstance(told, dict)}
    assert len(signatures) == 1


def _say(sites, study, story):
    return Wire(sites, study).say("ash", "agree", story)
