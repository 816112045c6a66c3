"""Every extreme of every field of a study: what is accepted can be released, with all its noise.

Covers `tacit.privacy.mechanism`, `tacit.privacy.noise`, `tacit.study.rules`, `tacit.holder.perturb`
and `tacit.holder.publish`.

OpenDP draws noise in 64 bits and cuts off what is beyond. A study whose parts have noise of very
different sizes, all on the lattice of the smallest, used to have most entries of X'X released as
exact values plus or minus 2**63 steps.
"""

import math
from itertools import product

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats
from studies import agreed

from tacit import publish
from tacit.errors import StudyError
from tacit.holder.charge import Purpose
from tacit.holder.encode import GRID, Encoder
from tacit.holder.perturb import blank, noisy_steps, perturb
from tacit.holder.statistics import Statistics, statistics_of
from tacit.privacy.mechanism import LATTICE_BITS, lattice_for
from tacit.privacy.noise import MOST_STEPS, rehearsal, secure_noise
from tacit.rows.table import table_of
from tacit.simulation import seeded
from tacit.study import Study
from tacit.study.visits import (
    MOST_VISITED,
    MOST_VISITS,
    has_places,
    places_mechanism,
    visit_mechanism,
)

FALSE_ALARM = 1e-9
KEYS = {f"holder {k}": f"{'A' * 40}{k:03d}=" for k in range(1000)}


def numeric(count, low=-1.0, high=1.0):
    return [{"name": f"x{k}", "range": [low, high]} for k in range(count)]


def term(degree, factors, **fields):
    return {"product": [{"of": f"x{k}", "degree": degree, **fields} for k in range(factors)]}


FEATURES = {
    "one": {"features": numeric(1)},
    "three": {"features": numeric(3)},
    "levels": {"features": [{"name": "g", "levels": [f"level {k}" for k in range(40)]}]},
    "huge ranges": {"features": numeric(2, -1e150, 1e150)},
    "tiny ranges": {"features": numeric(2, 1e-140, 2e-140)},
    "narrow typical": {
        "features": [{"name": "x0", "range": [-1e4, 1e4], "typical": [-1.0, 1.0]}],
    },
    "one term": {"features": numeric(1), "terms": [term(8, 1)]},
    "six factors": {"features": numeric(6), "terms": [term(2, 6)]},
    "uncentred": {"features": numeric(6, 0.0, 1e-3), "terms": [term(8, 6, centred=False)]},
}
"""What is encoded."""
FORMS = {
    "row_radius": [None, 1e-3, 1.0, 4.0, 1e300],
    "response_bound": [None, 1.0000001e-4, 1.0],
    "smallest_eigenvalue": [False, True],
    "average": [1, 2, 64],
    "noise": ["frobenius", "triangular"],
}
"""Each form's extremes; response_weight depends on the others, and is walked for each."""
WEIGHTS = [None, 1e-3, math.sqrt(2), 1e3]
"""Response weight over row_radius / response_bound: as low and as high as it may be, and where the
weight of y'y is no longer free."""
BUDGETS = [(1e-3, 1e-15), (100.0, 0.1), (1e-3, 0.1), (100.0, 1e-15)]


def accepted(**fields):
    """The study, or None where its rules refuse it."""
    try:
        return Study.from_document(
            {"name": "s", "response": {"name": "y", "range": [0, 1]}} | fields
        )
    except StudyError:
        return None


def forms():
    """Every combination of the form's extremes, as the fields of `release`."""
    for values in product(*FORMS.values()):
        yield dict(zip(FORMS, values, strict=True))


def weighted(study, factor):
    """The fields of the same study with its response weight at an end of what is allowed."""
    if factor is None:
        return {}
    weight = factor * study.row_radius / study.response_bound
    return {"response_weight": weight * (1 + 1e-12 if factor < 1 else 1 - 1e-12)}


def studies(step):
    """Every `step`-th accepted study at the extremes, each with all weights."""
    settings = product(
        FEATURES.values(), ["replace-one", "add-remove"], [True, False], list(forms())
    )
    for place, (columns, relation, intercept, form) in enumerate(settings):
        if place % step == 0:
            epsilon, delta = BUDGETS[place // step % len(BUDGETS)]
            budget = {"epsilon": epsilon, "delta": delta}
            common = columns | {"relation": relation, "intercept": intercept}
            study = accepted(**common, **budget, release=form)
            if study is None:
                continue
            for factor, square in product(WEIGHTS, [True, False]):
                release = form | weighted(study, factor) | {"response_square": square}
                extreme = accepted(**common, **budget, release=release)
                if extreme is not None:
                    yield extreme


def sums():
    """Secure sums of the most and the fewest, with the largest and the smallest shares."""
    for holders, least, colluding in [(2, 2, 0), (2, 2, 1), (1000, 1000, 0), (1000, 1000, 999)]:
        agreement = {
            "holders": dict(list(KEYS.items())[:holders]),
            "least": least,
            "colluding": colluding,
        }
        for form in ({}, {"row_radius": 1.7, "response_bound": 1.0000001e-4}):
            yield agreed(numeric(2), secure_sum=agreement, release=form)


def check_noise(mechanism):
    """The sampler can draw the noise of every part, on a lattice that is fine enough for it."""
    for sd in mechanism.noise.published():
        steps = math.ldexp(sd, -lattice_for(sd, mechanism.lattice))
        assert 2**LATTICE_BITS <= steps <= MOST_STEPS
    assert -200 <= mechanism.lattice <= 100, "as a release may state it"


def ratio(mechanism):
    """How many steps of the common lattice the largest noise has."""
    return math.ldexp(max(mechanism.noise.published()), -mechanism.lattice)


def walk(step):
    """Check every `step`-th study at the extremes; their number, and the most noise steps."""
    most = 0.0
    checked = list(studies(step))
    for place, study in enumerate(checked):
        mechanism = study.mechanism()
        check_noise(mechanism)
        most = max(most, ratio(mechanism))
        if place % 16 == 0:
            assert study.resolved().hash == study.hash
            blank(study, Purpose("holder")).to_json()
    return len(checked), most


def test_extremes_that_are_accepted_can_be_released():
    """Some of them would need more steps of one lattice than 64 bits hold: the walk gets there."""
    checked, most = walk(17)
    assert checked > 300
    assert most > 2.0**63


@pytest.mark.slow
def test_every_extreme_that_is_accepted_can_be_released():
    checked, most = walk(1)
    assert checked > 5000
    assert most > 2.0**63


def test_every_extreme_of_a_secure_sum_can_be_drawn():
    for study in sums():
        for holders in (1, len(study.secure_sum.holders)):
            check_noise(study.summed(holders))
        noisy_steps(Statistics.zero(study), study.summed(1), rehearsal)


@pytest.mark.parametrize("visits", range(2, MOST_VISITS + 1))
@pytest.mark.parametrize("budget", BUDGETS)
def test_every_extreme_of_visits_can_be_drawn(visits, budget):
    epsilon, delta = budget
    for columns, relation in product((1, MOST_VISITED - 1), ["replace-one", "add-remove"]):
        study = accepted(
            features=numeric(columns),
            relation=relation,
            epsilon=epsilon,
            delta=delta,
            visits=visits,
            planned_rows=[9],
        )
        for visit in range(1 + has_places(study), visits + 1):
            check_noise(visit_mechanism(study, visit, study.budget()))
        if has_places(study):
            places = places_mechanism(study, study.budget())
            rehearsal(list(vars(places.noise).values()), places.lattice)


@pytest.mark.parametrize("most", [5e-324, 1e-300, 1.0, 1e9])
def test_no_weight_makes_a_row_longer_than_the_bounds(most):
    study = agreed(numeric(3), weight={"column": "w", "most": most})
    weights = [0.0, -1.0, most, 2 * most, 1e308, math.inf, -math.inf, math.nan]
    columns = {name: [1e300, -1.0] * (len(weights) // 2) for name in study.names}
    batch = pa.record_batch(columns | {"w": weights})
    (block,) = Encoder(study).blocks(batch)
    assert np.isfinite(block).all()
    assert np.linalg.norm(block[:-1], axis=0).max() <= study.row_radius * GRID
    assert np.abs(block[-1]).max() <= study.response_bound * GRID
    assert not block[:, [0, 1, 6, 7]].any(), "no weight, or none above nothing"


# The leak that there was.

SMALL_BOUND = agreed(
    [{"name": f"x{k}", "range": [0, 1]} for k in range(30)],
    release={"row_radius": 5.5, "response_bound": 1.01e-4},
)


def table(study, rows=50):
    rng = np.random.default_rng(4)
    return {name: rng.uniform(0, 1, rows) for name in study.names}


def test_a_small_response_bound_leaks_nothing(tmp_path):
    """The error of each entry of X'X is Gaussian of the stated sd; false-alarm rate 1e-9."""
    release = publish(SMALL_BOUND, table(SMALL_BOUND), holder="h", ledger=tmp_path / "ledger.db")
    exact = statistics_of(SMALL_BOUND, table_of(table(SMALL_BOUND), SMALL_BOUND).batches()).xtx()
    upper = np.triu_indices(SMALL_BOUND.d, 1)
    errors = (release.gram - exact)[upper] / release.noise.xtx_off_diagonal
    assert stats.kstest(errors, "norm").pvalue > FALSE_ALARM
    assert len(set(np.abs(errors))) == len(errors)
    assert ratio(SMALL_BOUND.mechanism()) > 2.0**62


def test_the_sampler_refuses_what_it_would_cut_off():
    assert len(secure_noise([1.0], -57)) == 1
    with pytest.raises(StudyError, match="more than the sampler can draw"):
        secure_noise([1.0], -58)
    with pytest.raises(StudyError, match="more than the sampler can draw"):
        secure_noise([math.inf], 0)
    with pytest.raises(StudyError, match="more than the sampler can draw"):
        secure_noise([math.nan], 0)


def test_numbers_on_a_coarser_lattice_are_on_the_common_one():
    """Rounded to steps 2**56 times finer than their noise; all in steps of the common lattice."""
    values = [3 << 36, 5 << 36, 7 << 36]
    sds = [1e-6, 1.0, 1e12]
    lattice = -52
    own = [lattice_for(sd, lattice) for sd in sds]
    assert own[0] == lattice < own[2] == math.floor(math.log2(1e12)) - 56
    noisy = perturb(values, sds, lattice, secure_noise)
    assert all(number % 2 ** (mine - lattice) == 0 for number, mine in zip(noisy, own, strict=True))
    quiet = perturb(values, sds, lattice, lambda group, _lattice: [0] * len(group))
    assert quiet == [value << 16 for value in values]


def test_simulated_noise_does_not_depend_on_how_parts_are_grouped():
    sds = [1e-6, 1.0, 1e12, 1e12]
    sampler = seeded(np.random.default_rng(1))
    steps = perturb([0] * 4, sds, -52, sampler)
    expected = np.random.default_rng(1).standard_normal(4) * sds
    assert np.ldexp(np.array(steps, dtype=float), -52) == pytest.approx(expected, rel=1e-9)


# What was accepted, charged, and could never be released.


def test_a_default_radius_that_is_too_small_is_refused():
    fields = FEATURES["uncentred"] | {"epsilon": 1.0, "delta": 1e-6, "intercept": False}
    with pytest.raises(StudyError, match=r"release.row_radius would be below 0.001 by default"):
        Study.from_document({"name": "s", "response": {"name": "y", "range": [0, 1]}} | fields)
    stated = accepted(**fields, release={"row_radius": 1e-3})
    assert stated.resolved().hash == stated.hash


def test_what_fails_in_making_a_release_fails_before_it_is_paid(tmp_path, monkeypatch):
    study = agreed()

    def breaks(*_arguments):
        raise StudyError("broken on purpose")

    monkeypatch.setattr("tacit.holder.perturb.noisy_steps", breaks)
    with pytest.raises(StudyError, match="broken on purpose"):
        publish(study, {name: ["1"] for name in study.names}, holder="h", ledger=tmp_path / "l.db")
    assert not (tmp_path / "l.db").exists()
