"""A slice of `benchmarks/fuzz.py`: broken documents of every kind, and only Tacit's errors.

Covers `tacit.limits`, `tacit.records`, `tacit.release.log`.
"""

from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[1]


@pytest.fixture
def fuzz(monkeypatch):
    pytest.importorskip("flwr")
    monkeypatch.syspath_prepend(REPOSITORY / "benchmarks")
    import fuzz

    return fuzz


@pytest.fixture
def corpus(fuzz, tmp_path):
    return fuzz.Corpus(tmp_path)


def test_broken_documents_are_refused_by_our_own_sentences(fuzz, corpus):
    outcomes = {}
    for kind in fuzz.SHARES:
        for number in range(10_000_000, 10_000_150):  # others than the benchmark's
            outcome = fuzz.judge(*corpus.document(kind, number))
            outcomes.setdefault((kind, outcome), []).append(number)
    assert {outcome for _, outcome in outcomes} == {"accepted", "refused"}, outcomes
    assert {kind for kind, outcome in outcomes if outcome == "refused"} == set(fuzz.SHARES)


def test_whole_documents_are_accepted(fuzz, corpus):
    for kind, texts in corpus.texts.items():
        for text in texts:
            assert fuzz.judge(corpus.reader(kind), text) == "accepted", kind
    for met in corpus.rounds:
        step = fuzz.wire.Step("", fuzz.SESSION, met.name, met.payload)
        assert fuzz.judge(corpus._sum, (met, step)) == "accepted"


def test_the_judge_can_fail(fuzz):
    def crash(_document):
        raise KeyError("x")

    def speak(_document):
        raise fuzz.TacitError("two\nlines")

    assert fuzz.judge(crash, None) == "KeyError: 'x'"
    assert fuzz.judge(speak, None) == "refused in several lines"


def test_parts_are_kept_and_not_run_again(fuzz, tmp_path, monkeypatch):
    calls = []
    monkeypatch.setattr(fuzz, "run_part", lambda *part: calls.append(part) or {"kind": "study"})
    for _ in range(2):
        assert fuzz.run(("study", 0, 10), tmp_path) == {"kind": "study"}
    assert calls == [("study", 0, 10)]
    parts = fuzz.parts(1_000_000)
    assert sum(last - first for _, first, last in parts) == 1_000_000
