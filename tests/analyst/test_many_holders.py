"""More holders than a net is solved for, and more files than one process reads.

Covers `tacit.analyst.reading`, `tacit.cores`, `tacit.analyst.methods.noise_aware.whole`,
`tacit.analyst.methods.noise_aware.sums`, `tacit.analyst.methods.noise_aware.wide`,
`tacit.analyst.methods.noise_aware.lapack`, `tacit.analyst.methods.noise_aware.threads`.
"""

from dataclasses import replace
from functools import partial

import numpy as np
import pyarrow.parquet as pq
import pytest
from analyst.differing import simulated
from numpy.testing import assert_allclose, assert_array_equal

from tacit import Posterior, Study, collect, fit
from tacit.analyst import collection, reading
from tacit.analyst.methods import noise_aware
from tacit.analyst.methods.gram import some_of
from tacit.analyst.methods.method import Settings
from tacit.analyst.methods.noise_aware import lapack, model, outlying, profile, sums
from tacit.analyst.methods.noise_aware.facts import facts_of
from tacit.analyst.posterior import storage
from tacit.analyst.prior import Prior
from tacit.errors import SignatureError
from tacit.release.signature import load_key, new_key, sign
from tacit.simulation import simulate

STUDY = Study.from_toml('name="s"\nepsilon=1\ndelta=1e-6\n[response]\nname="y"\nrange=[0,1]')
TAU = np.array([0.1, 0.0, 0.05])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Six releases, signed."""
    place = tmp_path_factory.mktemp("releases")
    key = tmp_path_factory.mktemp("key") / "key"
    new_key(key)
    rng = np.random.default_rng(1)
    for number in range(6):
        rows = {"y": rng.uniform(0.2, 0.8, 40)}
        release = simulate(STUDY, rows, rng, holder=f"h{number}")
        sign(release, load_key(key)).save(place / f"{number}.json")
    return place


@pytest.fixture
def few_are_many(monkeypatch):
    """Three files are read by a process of their own, two at a time."""
    monkeypatch.setattr(collection, "MANY", 3)
    monkeypatch.setattr(reading, "_CHUNK", 4)
    monkeypatch.setattr(reading, "_MOST_PROCESSES", 1)


@pytest.mark.usefixtures("few_are_many")
def test_processes_read_what_one_process_reads(folder, monkeypatch):
    read = collect(folder, allow_simulated=True)
    assert {type(release) for release in read.releases} == {reading.Filed}
    posterior = fit(read)
    monkeypatch.undo()
    here = collect(folder, allow_simulated=True)
    assert [release.holder for release in here.releases] == [f"h{k}" for k in range(6)]
    for name in ("holder", "hash", "n", "epsilon", "created", "noise", "study_hash", "signature"):
        assert [getattr(one, name) for one in read.releases] == [
            getattr(one, name) for one in here.releases
        ], name
    assert_array_equal(read.evidence.grams, here.evidence.grams)
    assert_array_equal(read.evidence.squares, here.evidence.squares)
    assert posterior.contributions == fit(here).contributions


@pytest.mark.usefixtures("few_are_many")
def test_every_check_is_made_of_files_that_processes_read(folder, tmp_path):
    for path in folder.iterdir():
        (tmp_path / path.name).write_text(path.read_text(encoding="utf-8"), encoding="utf-8")
    one = tmp_path / "2.json"
    whole = one.read_text(encoding="utf-8")
    with pytest.raises(SignatureError, match="no trusted key was given for 'h0'"):
        collect(tmp_path, allow_simulated=True, trusted_keys={})
    one.write_text(whole.replace('"n": 40', '"n": 41'), encoding="utf-8")
    with pytest.raises(SignatureError, match=r"2\.json: the signature of the release of 'h2'"):
        collect(tmp_path, allow_simulated=True)
    wrong = simulate(STUDY, {"y": [0.5] * 40}, np.random.default_rng(3), holder="h2")
    wrong.model_copy(update={"yty": 1e9}).save(one)
    left = collect(tmp_path, allow_simulated=True, without_implausible=True)
    assert left.left_out[0].startswith("h2: yty")
    assert len(left.releases) == 5


@pytest.mark.usefixtures("few_are_many")
def test_files_of_a_process_that_ended_are_read_here(folder, monkeypatch):
    monkeypatch.setattr(reading, "_COMMAND", "raise SystemExit(3)")
    assert len(collect(folder, allow_simulated=True).releases) == 6


def some(most):
    """How many holders tell of τ."""
    return partial(some_of, most=most)


def test_some_tell_of_the_spread_and_all_of_the_average(monkeypatch):
    theta, own, evidence = simulated(
        np.random.default_rng(5), TAU, holders=400, rows=200, noise=5.0
    )
    prior = Prior.weak(3)
    exact = noise_aware.fit(evidence, prior, Settings())
    monkeypatch.setattr(noise_aware, "some_of", some(200))
    quick = noise_aware.fit(evidence, prior, Settings())
    sd = np.sqrt(np.diag(exact.covariance()))
    assert_allclose((quick.mean() - exact.mean()) / sd, 0.0, atol=0.1)
    assert_allclose(np.sqrt(np.diag(quick.covariance())), sd, rtol=0.12)
    assert np.all(np.abs(quick.mean() - theta) < 4 * sd)
    between = quick.differing
    assert between.locations.shape == own.shape
    assert_allclose(quick.weights @ between.spreads, TAU, atol=0.02)
    width = np.sqrt(np.diagonal(between.covariances, axis1=1, axis2=2))
    inside = np.abs(between.locations - own) < 1.645 * width
    assert np.all(inside[:, [0, 2]].mean(axis=0) > 0.85)  # of 400: 2.5 sds below 0.9


def test_one_wrong_holder_among_all_is_found_though_it_told_nothing_of_the_spread(monkeypatch):
    _, _, evidence = simulated(np.random.default_rng(6), TAU, holders=300, rows=200, noise=5.0)
    monkeypatch.setattr(noise_aware, "some_of", some(100))
    chosen = some_of(replace(evidence, moments=np.arange(900.0).reshape(300, 3)), 100).moments
    wrong = next(j for j in range(300) if 3.0 * j not in chosen[:, 0])
    honest = noise_aware.fit(evidence, Prior.weak(3), Settings())
    moments = evidence.moments.copy()
    moments[wrong] += 400.0 * evidence.grams[wrong, 2] / 50.0
    poisoned = noise_aware.fit(replace(evidence, moments=moments), Prior.weak(3), Settings())
    assert honest.differing.outlying == ()
    assert poisoned.differing.outlying == (wrong,)
    sd = np.sqrt(np.diag(honest.covariance()))
    assert_allclose((poisoned.mean() - honest.mean()) / sd, 0.0, atol=0.3)


def test_many_columns_give_the_same_by_their_shapes(monkeypatch):
    _, _, evidence = simulated(np.random.default_rng(8), TAU, holders=5, rows=200, noise=5.0)
    evidence = replace(evidence, squares=np.full(5, 40.0), square_sd=np.full(5, 2.0))
    facts = facts_of(evidence, Prior.weak(3))
    one = model.Model(facts, 1.0, spread=TAU**2)
    few = one.solve(0.06)
    own_of_few = model.own_coefficients(few, one.mean)
    left_of_few = one.residuals(few.node, evidence)
    told_by_few = profile.Profile.of(one, few)
    for module in (model, profile, sums):
        monkeypatch.setattr(module, "WIDE", 3)
    other = model.Model(facts, 1.0, spread=TAU**2)
    many = other.solve(0.06)
    assert isinstance(many.sums.white, list)  # worked on one by one
    assert many.node.log_weight == pytest.approx(few.node.log_weight)
    assert_allclose(many.node.location, few.node.location, rtol=1e-9)
    assert_allclose(many.node.covariance, few.node.covariance, rtol=1e-9)
    for ours, theirs in zip(model.own_coefficients(many, one.mean), own_of_few, strict=True):
        assert_allclose(ours, theirs, rtol=1e-9, atol=1e-12)
    assert_allclose(model.own_means(many, one.mean), own_of_few[0], rtol=1e-9)
    for ours, theirs in zip(other.residuals(many.node, evidence), left_of_few, strict=True):
        assert_allclose(ours, theirs, rtol=1e-9)
    told = profile.Profile.of(other, many)
    tau = np.array([0.0, 0.05, 0.2])
    assert_allclose(told.likelihood(1, tau), told_by_few.likelihood(1, tau), rtol=1e-9)
    precision = one.prior_precision()
    chances = [
        outlying.chance_of(each.sums.normal, each.sums.normal_of(2), precision, 5)
        for each in (few, many)
    ]
    assert chances[1] == pytest.approx(chances[0], rel=1e-9)


def test_errors_other_than_the_rows_own_are_explained_the_same(monkeypatch):
    """Of a family, whose Cov(z | X) is not S̄; and of holders alike, who are not solved for."""
    _, _, evidence = simulated(np.random.default_rng(8), TAU, holders=5, rows=200, noise=5.0)
    evidence = replace(evidence, squares=np.full(5, 40.0), square_sd=np.full(5, 2.0))
    facts = facts_of(evidence, Prior.weak(3))
    facts = replace(facts, errors=1.5 * facts.sampling + 0.1 * np.eye(3))
    laws = []
    for least in (model.WIDE, 3):
        monkeypatch.setattr(model, "WIDE", least)
        for spread in (TAU**2, np.zeros(3)):
            one = model.Model(facts, 1.0, spread=spread)
            laws.append(one.residuals(one.solve(0.06).node, evidence))
    assert_allclose(laws[2:], laws[:2], rtol=1e-9)


def test_a_root_of_many_columns_is_triangular_though_nothing_is_unknown_of_one(monkeypatch):
    monkeypatch.setattr(model, "WIDE", 3)
    half = np.array([[1.0, 0.0], [2.0, 1.0], [0.5, -1.0]])
    root = model._square_root(half @ half.T)  # of rank two
    assert_allclose(np.triu(root, 1), 0.0, atol=1e-12)
    assert_allclose(root @ root.T, half @ half.T, atol=1e-12)


def test_a_model_is_solved_again_only_where_something_changed():
    _, _, evidence = simulated(np.random.default_rng(8), TAU, holders=5, rows=200, noise=5.0)
    one = model.Model(facts_of(evidence, Prior.weak(3)), 1.0, spread=TAU**2)
    first = one.solve(0.06)
    assert one.solve(0.06) is first
    assert one.solve(0.07).node.log_weight != first.node.log_weight
    one.spread = TAU**2 / 4
    assert one.solve(0.06).node.log_weight != first.node.log_weight
    one.spread = TAU**2
    one.second = 2 * one.second
    assert one.solve(0.06).node.log_weight != first.node.log_weight


def test_a_covariance_that_is_none_is_refused():
    with pytest.raises(np.linalg.LinAlgError, match="not positive definite"):
        lapack.root_of(np.asfortranarray(np.diag([1.0, -1.0])))


def test_moves_of_a_spread_are_the_same_taken_off_one_by_one_or_together(monkeypatch):
    _, _, evidence = simulated(np.random.default_rng(9), TAU, holders=4, rows=200, noise=5.0)
    one = model.Model(facts_of(evidence, Prior.weak(3)), 1.0, spread=TAU**2)
    solution = one.solve(0.06)
    likelihoods = []
    for most in (1, 2, 32):
        monkeypatch.setattr(profile, "MOST_MOVES", most)
        moved = profile.Profile.of(one, solution)
        for k, spread in ((0, 0.02), (2, 0.001), (1, 0.003), (0, 0.0)):
            moved.move(k, spread)
        likelihoods.append(moved.likelihood(1, np.array([0.0, 0.05, 0.2])))
    assert_allclose(likelihoods[1], likelihoods[0], rtol=1e-9)
    assert_allclose(likelihoods[2], likelihoods[0], rtol=1e-9)


def test_who_tells_of_all_is_chosen_by_size_alone():
    rng = np.random.default_rng(7)
    sizes = rng.integers(10, 300, size=90)
    _, _, evidence = simulated(rng, TAU, holders=90, rows=sizes, noise=5.0)
    chosen = some_of(evidence, 30)
    assert chosen.holders == 30
    largest = np.sort(sizes)[-15:]
    assert np.isin(largest, chosen.counts).all()
    assert chosen.counts.min() == sizes.min()
    assert some_of(evidence, 90) is evidence


@pytest.mark.parametrize("holders", ["differ", "common"])
def test_matrices_that_are_too_many_for_facts_come_back_from_the_table(
    folder, tmp_path, monkeypatch, holders
):
    monkeypatch.setattr(storage, "MOST_IN_FACTS", 0)
    posterior = fit(collect(folder, allow_simulated=True), holders=holders)
    posterior.save(tmp_path / "posterior.parquet")
    loaded = Posterior.load(tmp_path / "posterior.parquet")
    assert "triangle" in pq.read_schema(tmp_path / "posterior.parquet").names
    assert_array_equal(loaded.outcome.locations, posterior.outcome.locations)
    assert_array_equal(loaded.outcome.covariances, posterior.outcome.covariances)
    assert str(loaded.summary()) == str(posterior.summary())
    if holders == "differ":
        assert_array_equal(
            loaded.outcome.differing.covariances, posterior.outcome.differing.covariances
        )
