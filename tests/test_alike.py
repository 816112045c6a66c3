"""Releases read by what others have told: as strict reading has them, or not at all.

Covers `tacit.release.alike`.
"""

import re

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from tacit import Study
from tacit.errors import TacitError
from tacit.release import Release
from tacit.release.alike import Alike
from tacit.release.document import Receipt
from tacit.release.signature import load_key, new_key, sign
from tacit.simulation import simulate

TOML = """
name = "s"
epsilon = 1
delta = 1e-6
relation = "{relation}"
[response]
name = "y"
range = [0, 1]
[[features]]
name = "holder"
range = [0, 1]
[release]
{release}
"""
STUDIES = {
    "replace-one": ("replace-one", ""),
    "eigenvalue": ("replace-one", "smallest_eigenvalue = true"),
    "noisy": ("add-remove", 'count = "noisy"'),
    "withheld": ("add-remove", 'count = "withheld"\nresponse_square = false'),
}
FIELDS = ("holder", "n", "yty", "smallest_eigenvalue", "created", "hash", "signature")
HEAD = Receipt(charge=7, head=f"sha256:{'a' * 64}")


@pytest.fixture(scope="module")
def key(tmp_path_factory):
    path = tmp_path_factory.mktemp("key") / "key"
    new_key(path)
    return load_key(path)


def release(kind="replace-one", seed=1, **changes):
    relation, form = STUDIES[kind]
    study = Study.from_toml(TOML.format(relation=relation, release=form))
    rng = np.random.default_rng(seed)
    rows = {"y": rng.uniform(0.2, 0.8, 40), "holder": rng.uniform(0, 1, 40)}
    one = simulate(study, rows, rng, holder=f"north {seed}")
    return one.model_copy(update=changes)


def learned(*releases):
    alike = Alike()
    for one in releases:
        text = one.to_json().encode()
        alike.learn(text, Release.from_json(text))
    return alike


def assert_same(told, text):
    strict = Release.from_json(text)
    for field in FIELDS:
        assert getattr(told, field) == getattr(strict, field), field
    for field in ("study", "epsilon", "delta", "noise", "simulated"):
        assert getattr(told.like, field) == getattr(strict, field), field
    assert_array_equal(told.gram, strict.gram)
    assert_array_equal(told.moment, strict.moment)


@pytest.mark.parametrize("kind", STUDIES)
def test_another_release_is_read_as_strictly(kind):
    text = release(kind, seed=2).to_json().encode()
    told = learned(release(kind)).read(text)
    assert told is not None
    assert_same(told, text)


def test_receipts_and_signatures_are_each_ones_own(key):
    alike = learned(release())
    paid = release(seed=2).paid_by(HEAD)
    signed = sign(paid, key)
    quoted = release(seed=3, software="tacit 9.9", holder='so "called"')
    for one in (paid, signed, quoted):
        text = one.to_json().encode()
        told = alike.read(text)
        assert told is not None
        assert_same(told, text)
    forged = signed.to_json().replace('"n": 40', '"n": 41').encode()
    assert alike.read(forged) is None


def test_others_are_left_to_strict_reading():
    alike = learned(release())
    apart = [
        release("eigenvalue"),
        release(epsilon=2.0),
        release(holder="a, b"),
        release(n=2**63),
        release(created="2026-02-30T00:00:00Z"),
        release().in_stream("s", 1),
    ]
    for one in apart:
        assert alike.read(one.to_json().encode()) is None, one
    assert learned(release().in_stream("s", 1)).read(release(seed=2).to_json().encode()) is None


def test_kinds_that_are_no_longer_needed_are_forgotten():
    ones = [release(seed=seed) for seed in range(2)]
    alike = learned(*ones)
    for number in range(40):
        study = ones[0].study.model_copy(update={"name": f"s{number}"})
        rows = {"y": [0.5] * 40, "holder": [0.5] * 40}
        one = simulate(study, rows, np.random.default_rng(1), holder="north")
        text = one.to_json().encode()
        alike.learn(text, Release.from_json(text))
        assert alike.read(text) is not None
    assert alike.read(ones[0].to_json().encode()) is None


NO_NUMBERS = ("true", "false", "1e999", "NaN", "null", '"1"', "[1.5]", "{}", "01.5")
FAULTS = [
    ('"n": 40', '"n": 40.0'),
    ('"n": 40', '"n": true'),
    ('"n": 40', '"n": -1'),
    ('"n": 40', '"n": 40, "n": 41'),
    ('"n": 40', '"n": 40, "delta": 1'),
    (r'"xty": \[', '"xty": [1.5, '),
    *((r'"xty": \[[-\d.]+', f'"xty": [{number}') for number in NO_NUMBERS),
    (r'"xtx": \[', '"xtx": [[], '),
    (r'"yty": [-\d.]+', '"yty": null'),
    (r'"yty": [-\d.]+', '"yty": 1e999'),
    (r'"holder": "[^"]+"', '"holder": 1'),
    (r'"holder": "[^"]+"', '"holder": true'),
    ('"holder": "', '"holder": "\\u0007'),
    ('"holder": "', '"holder": "\x07'),
    ('"holder": "', '"holder": {"a": "'),
    ('"signature": null', '"signature": null, "signature": null'),
    ('"signature": null', '"signature": null, "study": {}'),
    ('"signature": null', '"signature": {}'),
    ('"software": "', '"software": "\\n'),
    ("}\n", "}}\n"),
    ("}\n", "}\n{}"),
    ("}\n", ""),
    ('"relation"', '"relation": "add-remove", "relation"'),
]


@pytest.mark.parametrize("number", range(len(FAULTS)))
def test_no_fault_passes(number):
    pattern, fault = FAULTS[number]
    text = release(seed=2).to_json()
    place = list(re.finditer(pattern, text))[-1]
    faulty = (text[: place.start()] + fault + text[place.end() :]).encode()
    told = learned(release()).read(faulty)
    if told is not None:
        assert_same(told, faulty)


def test_an_asymmetric_matrix_does_not_pass():
    text = release(seed=2).to_json()
    first = re.search(r'"xtx": \[\s*\[[-\d.]+, ([-\d.]+)', text)
    changed = text[: first.start(1)] + "0.5" + text[first.end(1) :]
    assert learned(release()).read(changed.encode()) is None


def test_random_changes_are_read_as_strictly_or_not_at_all():
    rng = np.random.default_rng(5)
    text = release(seed=2).to_json().encode()
    alike = learned(release())
    letters = np.frombuffer(b'0123456789.,-+eE"[]{}: \nnulltrue\\', dtype=np.uint8)
    middle = text.index(b'\n  "holder"')
    passed = 0
    for _ in range(2000):
        place = int(rng.integers(middle, len(text)))
        letter = bytes([int(rng.choice(letters))])
        after = place + int(rng.integers(2))  # one more letter, or another one
        changed = text[:place] + letter + text[after:]
        told = alike.read(changed)
        if told is None:
            continue
        passed += 1
        try:
            assert_same(told, changed)
        except TacitError as error:  # what strict reading refuses must not pass
            raise AssertionError(changed[place - 20 : place + 20]) from error
    assert passed > 100
