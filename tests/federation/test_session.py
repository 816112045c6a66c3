"""tacit.federation.secure_sum (holder, session): a holder's states, before a server that lies."""

import base64

import numpy as np
import pytest
from sites import STUDY, charges
from sums import NAMES, Wire, digests, sites, summing

from tacit.federation.client.policy import Policy
from tacit.federation.wire import Step
from tacit.study.toml import study_toml

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
