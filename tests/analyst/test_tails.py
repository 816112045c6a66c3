"""What bounds of different size show of the tails of residuals.

Covers `tacit.analyst.tails`.
"""

import math

import numpy as np
import pytest

from tacit import Study
from tacit.analyst import tails, visited
from tacit.analyst.collection import collect
from tacit.analyst.tails import Reading, excess_of, longer_of
from tacit.simulation import simulate

BOUNDS = (3.0, 1.8, 1.2, 1.1, 1.1)
MANY = 400_000


def drawn(length):
    """Residuals of variance 1 whose tail has this length."""
    rng = np.random.default_rng(3)
    sizes = np.exp(length * rng.normal(size=MANY) - length**2)
    return sizes * rng.normal(size=MANY)


def readings(residuals, noise=1e-3, apart=0.0, bounds=BOUNDS):
    """What visits read of residuals with these bounds; the first two from another line."""
    rng = np.random.default_rng(4)
    away = math.sqrt(apart) * rng.normal(size=len(residuals))
    return [
        Reading(
            bound=bound,
            square=float(np.mean(np.clip(residuals + (k < 2) * away, -bound, bound) ** 2)),
            noise=noise,
            apart=apart * (k < 2),
            apart_sd=0.02 * apart * (k < 2),
            doubt=0.003 if k else 0.03,
        )
        for k, bound in enumerate(bounds)
    ]


def beyond(residuals, bound):
    """What a bound takes off residuals beyond normal ones of which it leaves as much."""
    left = np.mean(np.minimum(np.abs(residuals), bound) ** 2)
    sds = np.linspace(0.3, 1.5, 1201)
    normal = np.random.default_rng(5).normal(size=20_000)
    lefts = [np.mean(np.minimum(np.abs(sd * normal), bound) ** 2) for sd in sds]
    sd = sds[np.argmin(np.abs(np.array(lefts) - left))]
    taken = np.mean(np.maximum(np.abs(residuals) - bound, 0) ** 2)
    return (taken - np.mean(np.maximum(np.abs(sd * normal) - bound, 0) ** 2)) / sd**2


@pytest.mark.parametrize("apart", [0.0, 0.5])
@pytest.mark.parametrize("length", [0.4, 0.6])
def test_a_long_tail_is_found(length, apart):
    """Within a third: a tail's end lies beyond the widest bound."""
    residuals = drawn(length)
    told = math.sqrt(excess_of(readings(residuals, apart=apart)))
    assert told == pytest.approx(beyond(residuals, BOUNDS[-1]), rel=1 / 3)


@pytest.mark.parametrize("length", [0.0, 0.4, 0.6])
def test_the_variance_of_residuals_is_told_with_their_tails(length):
    """Over that of the normal ones that readings suit best: the law of drawn ones is the right one.

    A tenth is what a tail's end beyond the widest bound leaves open.
    """
    residuals = drawn(length)
    told = readings(residuals)
    normal = tails._lengths(told).variance[0]
    true = math.log(residuals.var() / normal)
    assert longer_of(told, normal).mean == pytest.approx(true, abs=0.02 + 0.1 * true)
    assert (true > 0.1) == (length > 0)
    assert longer_of(told, residuals.var()).mean < 0.02  # which visits had told


@pytest.mark.parametrize("apart", [0.0, 0.5])
def test_normal_residuals_show_none(apart):
    assert math.sqrt(excess_of(readings(drawn(0.0), apart=apart))) < 0.03


def test_another_line_is_no_tail():
    """Residuals from it that are a tenth larger than a normal law makes them, or as they are said
    to be unsure: neither is taken for a tail."""
    off = [each._replace(apart=each.apart / 1.1) for each in readings(drawn(0.0), apart=0.5)]
    assert math.sqrt(excess_of(off)) < 0.03
    unsure = [
        each._replace(apart=0.7 * each.apart, apart_sd=0.3 * each.apart)
        for each in readings(drawn(0.0), apart=0.5)
    ]
    assert math.sqrt(excess_of(unsure)) < 0.03


def test_the_unit_does_not_matter():
    residuals = drawn(0.5)
    small = [
        reading._replace(
            bound=reading.bound / 100,
            square=reading.square / 1e4,
            noise=reading.noise / 1e4,
            apart=reading.apart / 1e4,
            apart_sd=reading.apart_sd / 1e4,
        )
        for reading in readings(residuals, apart=0.5)
    ]
    assert excess_of(small) == pytest.approx(excess_of(readings(residuals, apart=0.5)), rel=1e-6)


def test_what_is_hidden_is_what_is_usual():
    """Noise of ten times what is read, or bounds that are all alike: a tail as short as usual."""
    usual = math.sqrt(excess_of(readings(drawn(0.0), noise=10.0)))
    assert 0.01 < usual < 0.08
    assert math.sqrt(excess_of(readings(drawn(0.6), noise=10.0))) == pytest.approx(usual, rel=0.3)
    alike = readings(drawn(0.6), bounds=[1.1] * 5)
    assert math.sqrt(excess_of(alike)) < 0.08


def weight_of_long_ones(readings, least):
    """Of tails of at least this length: the integral over log σ², and not its highest point."""
    read = np.array([reading.square for reading in readings])
    lengths = tails.LENGTHS
    scores = []
    for variance in np.exp(np.linspace(-6.0, 6.0, 601)):
        fitted = tails._fitted(np.full(len(lengths), variance), readings)
        misses = (read - fitted.square) ** 2 / fitted.variance + np.log(fitted.variance)
        scores.append(-misses.sum(axis=1) / 2 - lengths / tails.USUAL)
    weights = np.gradient(lengths) * np.exp(np.array(scores) - np.max(scores)).sum(axis=0)
    return weights[lengths >= least].sum() / weights.sum()


@pytest.mark.parametrize("least", [0.3, 0.4])
def test_lengths_weigh_as_much_as_all_variances_with_them(monkeypatch, least):
    """A length counts by its best variance, how well that is told, and how sure it is of its
    readings: without the last the weight is off by 0.009, without the second by 0.02."""
    told = readings(drawn(0.7), noise=0.03, apart=0.5)
    monkeypatch.setattr(tails, "_beyond", lambda *_: 1.0 * (least <= tails.LENGTHS))
    assert excess_of(told) == pytest.approx(weight_of_long_ones(told, least), abs=0.005)


def study(rows, epsilon=3.0):
    return Study.from_document(
        {
            "name": "tails",
            "epsilon": epsilon,
            "delta": 1e-6,
            "response": {"name": "y", "range": [-3.0, 3.0]},
            "features": [{"name": name, "range": [-1.0, 1.0]} for name in ("a", "b")],
            "planned_rows": [rows],
        }
    )


@pytest.mark.parametrize("length", [0.0, 0.7])
def test_releases_tell_of_tails(monkeypatch, length):
    """Of 40,000 rows at ε = 3, within a factor of two; without a tail next to none is told.

    The first answer, with other columns, is read with more doubt.
    """
    seen = []

    def remembered(readings):
        seen.append(readings)
        return excess_of(readings)

    monkeypatch.setattr(visited, "excess_of", remembered)
    rng = np.random.default_rng(6)
    x = rng.uniform(-1, 1, (40_000, 2))
    residuals = 0.2 * drawn(length)[:40_000]
    y = x @ [0.5, -0.3] + residuals
    release = simulate(study(40_000), np.column_stack([x, y]), rng, holder="north")
    assert collect([release], allow_simulated=True).evidence.frame is not None
    told = math.sqrt(excess_of(seen[-1]))
    sd = residuals.std()
    true = beyond(residuals / sd, 3 * seen[-1][-1].bound / sd)  # the response's half range is 3
    assert told < 0.001 if length == 0 else true / 2 < told < 2 * true
    assert [reading.doubt for reading in seen[-1]] == [pytest.approx(0.03, abs=0.01)] + [0.003] * 8
    bounds = [reading.bound for reading in seen[-1]]
    assert max(bounds) > 1.5 * bounds[-1]


def test_a_first_answer_that_is_cut_short_is_read_with_doubt(monkeypatch):
    """Its bound lies in the middle of residuals: what it leaves tells where they lie, no tail."""
    seen = []
    monkeypatch.setattr(visited, "excess_of", lambda readings: seen.append(readings) or 0.0)
    rng = np.random.default_rng(8)
    x = rng.uniform(-1, 1, (600, 2))
    y = np.clip(np.round(x @ [2.0, -1.0] + 1.5 * rng.normal(size=600)), -3, 3)
    release = simulate(study(600, epsilon=0.3), np.column_stack([x, y]), rng, holder="north")
    assert collect([release], allow_simulated=True).evidence.frame is not None
    first = seen[-1][0]
    share = first.square / first.bound**2
    assert share > 0.3
    assert first.doubt == pytest.approx(0.03 + 0.3 * share**2)
