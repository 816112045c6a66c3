"""Releases that cannot be what they say, and honest ones.

Covers `tacit.analyst.plausibility`.
"""

import json

import numpy as np
import pytest

import tacit
from tacit.analyst import plausibility
from tacit.analyst.follow import Follower
from tacit.analyst.plausibility import check_plausible, doubt_of, reach_of
from tacit.cli import main
from tacit.errors import ReleaseError, TacitError
from tacit.release.log import Entry
from tacit.simulation import simulate
from tacit.study import Study

FIELDS = 'name = "s"\nepsilon = {epsilon}\ndelta = 1e-6\n{fields}'
COLUMNS = """
[response]
name = "y"
range = [0, 1]
[[features]]
name = "a"
range = [0, 1]
[[features]]
name = "b"
range = [0, 1]
"""
FORMS = {
    "default": "",
    "triangular": '[release]\nnoise = "triangular"',
    "averaged": "[release]\naverage = 4",
    "whole rows": 'missing = "refuse"\n[release]\nrow_radius = 9.0',
    "eigenvalue": "[release]\nsmallest_eigenvalue = true",
    "no intercept": "intercept = false",
    "noisy count": 'relation = "add-remove"',
    "withheld count": 'relation = "add-remove"\n[release]\ncount = "withheld"',
}
TABLES = {
    "spread": lambda rng, n: rng.uniform(0, 1, (n, 3)),
    "corner": lambda _rng, n: np.ones((n, 3)),
    "corners": lambda rng, n: rng.integers(0, 2, (n, 3)).astype(float),
}


def study_of(form="default", epsilon=1.0):
    return Study.from_toml(FIELDS.format(epsilon=epsilon, fields=FORMS[form]) + COLUMNS)


def release_of(form="default", *, seed=0, n=500, table="spread", epsilon=1.0, holder="north"):
    rng = np.random.default_rng(seed)
    rows = TABLES[table](rng, n)
    return simulate(study_of(form, epsilon), rows, rng, holder=holder)


def changed(release, **fields):
    """A valid document with other numbers."""
    own = {name: getattr(release, name) for name in type(release).model_fields}
    return type(release)(**(own | fields))


def with_gram(release, change):
    gram = release.gram.copy()
    change(gram)
    return changed(release, xtx=tuple(map(tuple, gram.tolist())))


# Honest releases.


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("epsilon", [0.05, 10.0])
def test_honest_releases_pass(form, epsilon):
    """72 releases at the corners of what rows can be; a false alarm has probability 7.2e-8."""
    for seed, (table, n) in enumerate((t, n) for t in TABLES for n in (0, 1, 200)):
        release = release_of(form, seed=seed, n=n, table=table, epsilon=epsilon)
        assert doubt_of(release) == ""


def test_the_bounds_are_near(monkeypatch):
    """Were one release in two allowed to alarm, some without rows would: bounds are near."""
    monkeypatch.setattr(plausibility, "FALSE_ALARM", 0.5)
    doubts = [doubt_of(release_of(seed=seed, n=0)) for seed in range(200)]
    assert 1 <= sum(map(bool, doubts)) <= 100


def test_the_reach_keeps_the_rate_of_false_alarms():
    """The union bound over so many sub-Gaussian rules."""
    for rules in (20, 1000, 300_000):
        assert rules * np.exp(-(reach_of(rules) ** 2) / 2) == pytest.approx(
            plausibility.FALSE_ALARM
        )


@pytest.mark.parametrize("shape", ["frobenius", "triangular"])
def test_noise_alone_stays_within_the_edge_for_eigenvalues(shape):
    """2√d·σ_o bounds the mean of the noise's largest eigenvalue: 200 draws of 30 by 30."""
    rng = np.random.default_rng(3)
    d = 30
    off_sd = 1 / np.sqrt(2) if shape == "frobenius" else 1.0
    largest = []
    for _ in range(200):
        upper = np.triu(rng.standard_normal((d, d)) * off_sd, 1)
        noise = upper + upper.T + np.diag(rng.standard_normal(d))
        largest.append(np.linalg.eigvalsh(noise)[-1])
    assert np.mean(largest) <= 2 * np.sqrt(d) * off_sd
    assert np.mean(largest) >= 0.8 * 2 * np.sqrt(d) * off_sd


# Poisoned ones.


def set_entry(i, k, value):
    def change(gram):
        gram[i, k] = value
        gram[k, i] = value

    return change


def negate(gram):
    gram *= -1


def tilt(gram):
    """Entries that are possible each by itself, of a matrix with a clearly negative eigenvalue."""
    gram[1, 2] = 200.0
    gram[2, 1] = 200.0
    gram[1, 1] = 20.0
    gram[2, 2] = 20.0


def lift(gram):
    """Rows that are long enough in all, but for an intercept above 1."""
    gram[...] = np.diag([580.0, 20.0, 20.0])


POISONED = {
    "large entry": (lambda r: with_gram(r, set_entry(0, 0, 1e7)), "a diagonal entry of xtx"),
    "huge entry": (lambda r: with_gram(r, set_entry(1, 1, 1e300)), "a diagonal entry of xtx"),
    "huge off the diagonal": (lambda r: with_gram(r, set_entry(0, 1, -1e200)), "an entry of xtx"),
    "negative definite": (lambda r: with_gram(r, negate), "a diagonal entry of xtx"),
    "indefinite": (lambda r: with_gram(r, tilt), "an eigenvalue of xtx"),
    "intercept": (lambda r: with_gram(r, lift), "the intercept's entry"),
    "large moment": (lambda r: changed(r, xty=(1e4, 0.0, 0.0)), "an entry of xty"),
    "unexplained moment": (lambda r: changed(r, xty=(0.0, 400.0, 0.0), yty=80.0), "over what"),
    "negative square": (lambda r: changed(r, yty=-1e9), "yty"),
    "large square": (lambda r: changed(r, yty=1e9), "yty"),
    "no rows": (lambda r: changed(r, n=0), "a diagonal entry of xtx"),
    "too many rows": (lambda r: changed(r, n=2**62), "n is 4.612e+18"),
}


@pytest.mark.parametrize("poison", POISONED)
def test_a_poisoned_release_is_refused_by_name(poison):
    spoil, said = POISONED[poison]
    good = release_of(seed=1, holder="south")
    bad = spoil(release_of())
    with pytest.raises(ReleaseError, match="'north' is implausible") as raised:
        tacit.collect([good, bad], allow_simulated=True)
    assert said in str(raised.value)
    assert "without_implausible=True" in str(raised.value)


@pytest.mark.parametrize("poison", POISONED)
def test_it_is_fitted_without_by_choice(poison):
    spoil, said = POISONED[poison]
    good = release_of(seed=1, holder="south")
    collection = tacit.collect(
        [good, spoil(release_of())], allow_simulated=True, without_implausible=True
    )
    assert [release.holder for release in collection.releases] == ["south"]
    assert len(collection.left_out) == 1
    assert collection.left_out[0].startswith("north: ")
    assert said in collection.left_out[0]
    alone = tacit.fit(tacit.collect([good], allow_simulated=True))
    np.testing.assert_array_equal(tacit.fit(collection).mean(), alone.mean())


def test_none_is_left_to_fit():
    bad = changed(release_of(), yty=-1e9)
    with pytest.raises(ReleaseError, match="at least one release"):
        tacit.collect([bad], allow_simulated=True, without_implausible=True)


def test_whole_rows_have_the_intercept_that_n_says():
    release = release_of("whole rows", epsilon=10.0)
    assert doubt_of(with_gram(release, set_entry(0, 0, 300.0))).startswith("the intercept's entry")


def test_a_smallest_eigenvalue_that_xtx_contradicts():
    release = release_of("eigenvalue", epsilon=10.0)
    assert "smallest_eigenvalue" in doubt_of(changed(release, smallest_eigenvalue=400.0))


def test_a_withheld_count_still_bounds_what_overflows():
    release = release_of("withheld count")
    assert doubt_of(with_gram(release, set_entry(1, 1, 1e5))) == ""
    assert doubt_of(with_gram(release, set_entry(1, 1, 1e30))) != ""


# Wherever releases come in.


def test_the_command_names_it_and_leaves_it_out_when_told(tmp_path, monkeypatch, capsys):
    release_of(seed=1, holder="south").save(tmp_path / "south.json")
    changed(release_of(), yty=-1e9).save(tmp_path / "north.json")
    monkeypatch.chdir(tmp_path)

    def fit(*options):
        arguments = ["fit", "north.json", "south.json", "--allow-simulated", "--out", "p.parquet"]
        monkeypatch.setattr("sys.argv", ["tacit", *arguments, *options])
        with pytest.raises(SystemExit) as ended:
            main()
        said = capsys.readouterr()
        return ended.value.code, said.out, said.err

    code, _, err = fit()
    assert code == 2
    assert "'north' is implausible" in err
    code, out, _ = fit("--without-implausible")
    assert code == 0
    assert "left out, as implausible: north: yty" in out
    _, out, _ = fit("--without-implausible", "--json")
    assert json.loads(out)["left_out"][0].startswith("north: yty")


def test_a_poisoned_batch_of_a_stream_is_refused(tmp_path):
    release = release_of()
    batches = [release, changed(release_of(seed=2), yty=-1e9)]
    log = tmp_path / "north.log"
    lines = [
        Entry(batch.in_stream("abc", number)).to_line()
        for number, batch in enumerate(batches, start=1)
    ]
    log.write_text("".join(lines), encoding="utf-8")
    with pytest.raises(ReleaseError, match="implausible"):
        tacit.collect(log, allow_simulated=True)
    with pytest.raises(ReleaseError, match="implausible"):
        Follower([log], allow_simulated=True).update()
    collection = tacit.collect(log, allow_simulated=True, without_implausible=True)
    assert collection.releases[0].batches == 1


# What passes can be fitted.


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("method", ["noise-aware", "exact-fixed-s", "fixed-s-fast"])
def test_what_is_plausible_never_crashes(form, method):
    """Random statistics within the bounds, from no rows to 10¹²: finite numbers, or a sentence."""
    rng = np.random.default_rng(11)
    fitted = 0
    for seed in range(12):
        release = release_of(form, seed=seed, n=3, epsilon=10 ** rng.uniform(-3, 2))
        random = randomised(release, rng)
        if doubt_of(random):
            continue
        try:
            posterior = tacit.fit(tacit.collect(random, allow_simulated=True), method)
        except TacitError:
            continue
        assert np.isfinite(posterior.mean()).all()
        assert np.isfinite(posterior.interval()).all()
        fitted += 1
    assert fitted >= 4


def randomised(release, rng):
    """Another release of the same budget, whose statistics are anything that rows could give."""
    study = release.study
    noise = release.noise
    d = study.d
    n = int(10 ** rng.uniform(0, 12)) * int(rng.integers(0, 5) > 0)
    root = rng.standard_normal((d, int(rng.integers(1, d + 1))))
    gram = root @ root.T
    gram *= n * study.row_radius**2 / max(float(np.trace(gram)), 1e-9)
    error = rng.standard_normal((d, d)) * noise.xtx_off_diagonal
    gram += (error + error.T) / 2
    if study.intercept:
        gram[0, 0] = min(gram[0, 0], n)
    fields = {
        "xtx": tuple(map(tuple, gram.tolist())),
        "xty": tuple((rng.standard_normal(d) * noise.xty).tolist()),
    }
    if release.yty is not None:
        fields["yty"] = n * study.response_bound**2 * float(rng.uniform(0, 1))
    if release.n is not None:
        fields["n"] = n if noise.count is None else float(n)
    return changed(release, **fields)


# Several visits: what a holder said before is looked at too.


def visited_release(**fields):
    study = Study.from_document(
        study_of().document() | {"planned_rows": [400], "visits": 4, "release": {}}
    )
    rng = np.random.default_rng(5)
    release = simulate(study, rng.uniform(0, 1, (400, 3)), rng, holder="north")
    return release.model_copy(update={"visit": release.visit.model_copy(update=fields)})


def poisoned(part, value):
    first, *others = visited_release().visit.earlier
    return visited_release(earlier=(first.model_copy(update={part: value}), *others))


def test_an_honest_release_of_several_visits_passes():
    assert doubt_of(visited_release()) == ""


@pytest.mark.parametrize(
    ("part", "value", "rule"),
    [
        ("yty", 1e9, "yty"),
        ("xty", (1e300, 0.0, 0.0), "an entry of xty"),
        ("n", 2**50, "n is"),
        ("xtx", ((1e9, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)), "a diagonal entry of xtx"),
    ],
)
def test_a_poisoned_earlier_answer_is_named(part, value, rule):
    assert doubt_of(poisoned(part, value)).startswith(rule)


@pytest.mark.parametrize(
    ("part", "rule"),
    [("totals", "an entry of totals"), ("squares", "an entry of squares"), ("count", "count")],
)
def test_poisoned_places_are_named(part, rule):
    honest = visited_release().visit.places
    value = 1e300 if part == "count" else (1e9, *getattr(honest, part)[1:])
    release = visited_release(places=honest.model_copy(update={part: value}))
    assert doubt_of(release).startswith(rule)
    with pytest.raises(ReleaseError, match="the release of 'north' is implausible"):
        check_plausible([release])
