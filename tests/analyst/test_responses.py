"""Several responses of one release: what a study declares, and what is fitted of it.

Covers `tacit.study.responses`, `tacit.study.submodel`, `tacit.study.rules` and
`tacit.analyst.posterior.source`.
"""

import json

import numpy as np
import pytest
from studies import AGE, BMI, WARD, agreed

from tacit.analyst.collection import Collection, collect
from tacit.analyst.comparison.compare import compare
from tacit.analyst.fit import fit
from tacit.analyst.methods.method import Settings
from tacit.analyst.methods.noise_aware import fit as noise_aware
from tacit.analyst.posterior.posterior import Posterior
from tacit.analyst.posterior.source import of_columns
from tacit.analyst.prior import Prior
from tacit.analyst.streams import Accumulator
from tacit.cli.study import words
from tacit.errors import MethodError, PosteriorError, ReleaseError, StudyError
from tacit.holder.statistics import statistics_of
from tacit.release import Release
from tacit.release.log import Entry
from tacit.rows.table import table_of
from tacit.simulation import exact, simulate
from tacit.study import Study
from tacit.study.responses import all_responses
from tacit.study.submodel import submodel
from tacit.study.toml import study_toml

COST = {"name": "cost", "range": [0, 100]}
FEATURES = [AGE, WARD, COST]


def study(**fields):
    return agreed(FEATURES, responses=["days", "cost"], **fields)


def rows(n=4000, seed=0):
    rng = np.random.default_rng(seed)
    age = rng.uniform(18, 100, n)
    ward = rng.choice(["1", "2", "3"], n)
    days = 3 + 0.1 * age + 2 * (ward == "3") + rng.normal(0, 2, n)
    cost = 10 + 0.3 * age + 15 * (ward == "2") + rng.normal(0, 6, n)
    return {"age": age, "ward": ward, "cost": cost.clip(0, 100), "days": days.clip(0, 30)}


@pytest.fixture(scope="module")
def collection():
    rng = np.random.default_rng(1)
    made = study(epsilon=3.0)
    return collect(
        [simulate(made, rows(seed=j), rng, holder=f"h{j}") for j in range(2)],
        allow_simulated=True,
    )


def test_a_response_is_no_column_and_shrinks_no_row():
    made = study()
    single = agreed([AGE, WARD])
    assert made.columns == single.columns
    assert made.row_radius == single.row_radius < made.longest_row
    assert [each.name for each in all_responses(made)] == ["days", "cost"]
    assert Study.from_toml(study_toml(made)).hash == made.hash
    assert "responses" not in agreed(FEATURES).document()


@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
def test_what_two_responses_cost_is_said(relation):
    """X'X has the noise of a study of one response, and each X'y √2 times that."""
    made = study(relation=relation)
    single = agreed([AGE, WARD], relation=relation)
    assert made.mechanism().sensitivity == pytest.approx(single.mechanism().sensitivity, rel=1e-9)
    joint = made.mechanism().noise
    alone = single.mechanism().noise
    assert joint.xty == pytest.approx(2**0.5 * alone.xty, rel=1e-9)
    assert joint.yty == pytest.approx(2**0.5 * alone.yty, rel=1e-9)
    said = " ".join(words(made).split())
    assert "one release serves days, cost: X'X, and X'y and y'y of each" in said
    assert "0.707 times on X'X, 1 times on each X'y" in said


def test_a_release_holds_each_response():
    release = simulate(study(), rows(), np.random.default_rng(0), holder="h")
    assert release.moments.shape == (2, 4)
    assert release.squares.shape == (2,)
    back = Release.from_json(release.to_json())
    assert back.further == release.further
    assert back.hash == release.hash
    document = json.loads(release.to_json())
    for spoiled in ({"further": None}, {"further": document["further"] * 2}):
        with pytest.raises(ReleaseError, match="each further response"):
            Release.from_json(json.dumps(document | spoiled))
    document["further"][0]["xty"][1] = 1e7
    with pytest.raises(ReleaseError, match="'h' is implausible: an entry of xty"):
        collect([Release.from_json(json.dumps(document))], allow_simulated=True)


def test_a_missing_response_leaves_the_row_out_and_is_never_filled_in():
    made = study(missing="impute")
    table = rows(500)
    holed = dict(table, cost=np.where(np.arange(500) < 100, np.nan, table["cost"]))
    kept = {name: values[100:] for name, values in table.items()}
    with_holes = statistics_of(made, table_of(holed, made).batches())
    without = statistics_of(made, table_of(kept, made).batches())
    assert (with_holes.gram == without.gram).all()


def test_a_stream_adds_up_every_response():
    made = study(epsilon=3.0)
    rng = np.random.default_rng(3)
    releases = [
        simulate(made, rows(seed=number), rng, holder="h").in_stream("s", number)
        for number in (1, 2)
    ]
    accumulator = Accumulator(Entry(releases[0]))
    for release in releases:
        accumulator.add(Entry(release))
    summed = accumulator.summed()
    np.testing.assert_allclose(summed.moments, sum(one.moments for one in releases))
    np.testing.assert_allclose(summed.squares, sum(one.squares for one in releases))
    pooled = Collection(study=made, releases=(summed,))
    np.testing.assert_allclose(pooled.of_response("cost").moments[0], summed.moments[1])


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"responses": ["cost", "days"]}, "name the study's response first"),
        ({"responses": ["days"]}, "name the study's response first"),
        ({"responses": ["days", "cost", "cost"]}, "each once"),
        ({"responses": ["days", "ward"]}, "'ward' must be a feature with a range"),
        ({"responses": ["days", "height"]}, "'height' must be a feature"),
        ({"responses": ["days", "cost"], "release": {"average": 2}}, "exclude release.average"),
        (
            {"responses": ["days", "cost"], "visits": 3, "planned_rows": [4000]},
            "visits above 1 exclude responses",
        ),
    ],
)
def test_what_cannot_be_declared_is_refused(fields, message):
    with pytest.raises(StudyError, match=message):
        agreed(FEATURES, **fields)


def test_a_term_is_no_response():
    terms = [{"product": [name]} for name in ("age", "ward")]
    assert agreed(FEATURES, responses=["days", "cost"], terms=terms).d == 4
    terms.append({"product": ["age", "cost"]})
    with pytest.raises(StudyError, match="without typical, in no term"):
        agreed(FEATURES, responses=["days", "cost"], terms=terms)


@pytest.mark.parametrize("intercept", [True, False])
def test_of_exact_statistics_each_response_is_its_own_least_squares(intercept):
    """Rows are shrunk by their features alone, so that each is the weighted fit of one study."""
    made = study(missing="refuse", intercept=intercept, release={"response_bound": 1.0})
    table = rows()
    ward = np.array(table["ward"])
    design = np.stack([(table["age"] - 59) / 41, ward == "2", ward == "3"], axis=1).astype(float)
    if intercept:
        design = np.column_stack([np.ones(len(ward)), design])
    weights = np.minimum(1, made.row_radius / np.linalg.norm(design, axis=1))
    vague = Prior.weak(made.d)
    wide = {"covariance": 1e6 * np.eye(made.d), "by_spread": False}
    vague = type(vague)(**(vars(vague) | wide))
    for name, (centre, half) in {"days": (15, 15), "cost": (50, 50)}.items():
        kept = submodel(made, response=name)
        told = exact(made, table, name)
        outcome = noise_aware(of_columns(told, kept.places), vague, Settings())
        posterior = Posterior(made, "m", outcome, (), question=kept.study)
        scaled = (table[name] - centre) / half
        expected = np.linalg.lstsq(design * weights[:, None], scaled * weights)[0]
        np.testing.assert_allclose(posterior.mean(units="scaled"), expected, atol=1e-3)


def test_one_release_serves_both(collection, tmp_path):
    days = fit(collection)
    cost = fit(collection, response="cost")
    assert days.names() == cost.names() == ("(intercept)", "age", "ward[2]", "ward[3]")
    low, high = cost.interval(0.999).T
    assert (low <= [10, 0.3, 15, 0]).all()
    assert (high >= [10, 0.3, 15, 0]).all()
    assert "--response cost" in cost.options
    assert cost.explained().mean == pytest.approx(0.6, abs=0.15)
    cost.save(tmp_path / "cost.parquet")
    back = Posterior.load(tmp_path / "cost.parquet").submodel(without="ward")
    assert back.summary().response == "cost"
    again = fit(collection, response="cost", only=["age"])
    np.testing.assert_allclose(back.mean(), again.mean())
    with pytest.raises(PosteriorError, match="the same response"):
        compare(days, cost)
    assert compare(cost, back).answer.startswith("ward: needed with probability 1.000")


def test_another_response_is_no_term(collection):
    with pytest.raises(StudyError, match="'cost' is no term of the study"):
        fit(collection, only=["age", "cost"])
    with pytest.raises(StudyError, match="none of the study's, which has days, cost"):
        fit(collection, response="age")
    with pytest.raises(StudyError, match="which has days"):
        submodel(agreed([AGE, BMI]), response="bmi")


def test_each_response_has_its_own_family():
    """A 0/1 answer and a count beside a length of stay, from one release."""
    rng = np.random.default_rng(5)
    others = [{"name": "died", "range": [0, 1]}, {"name": "falls", "range": [0, 9]}]
    made = agreed([AGE, *others], responses=["days", "died", "falls"], epsilon=3.0)
    table = rows(20_000)
    age = (table["age"] - 59) / 41
    table["died"] = rng.random(20_000) < 1 / (1 + np.exp(-(-0.5 + age)))
    table["falls"] = rng.poisson(np.exp(0.4 * age)).clip(0, 9)
    release = simulate(made, table, rng, holder="h")
    together = collect([release], allow_simulated=True)
    for name, family, slope in (("died", "logistic", 1.0), ("falls", "poisson", 0.4)):
        low, high = fit(together, response=name, family=family).interval(0.999)[1] * 41
        assert low < slope < high
        assert high - low < 0.6
    with pytest.raises(MethodError, match="'days' is \\[0, 30\\]"):
        fit(together, family="logistic")
