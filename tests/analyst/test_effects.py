"""Effects: contrasts, slopes and marginal means that a user names.

Covers `tacit.analyst.posterior.question`, `tacit.analyst.posterior.effects` and
`tacit.cli.effect`.
"""

import json

import numpy as np
import pytest
from test_reading import of_exact

from tacit.analyst.collection import collect
from tacit.analyst.comparison.compare import select_terms
from tacit.analyst.fit import fit
from tacit.analyst.posterior.posterior import Posterior
from tacit.analyst.posterior.reading import spread_of
from tacit.errors import PosteriorError
from tacit.simulation import simulate
from tacit.study import Study

COLUMNS = {"age": (18, 100), "sex": ["f", "m", "x-y"], "bmi": (15, 50), "days": (0, 60)}
FORMULA = "days ~ age * sex + poly(bmi, 2)"
WHOLE = {"missing": "refuse", "release": {"row_radius": 50.0}}


def rows(n=5000, seed=0):
    rng = np.random.default_rng(seed)
    age = rng.uniform(20, 95, n)
    sex = rng.choice(["f", "m", "x-y"], n, p=[0.5, 0.4, 0.1])
    bmi = rng.normal(27, 5, n).clip(15, 50)
    days = 5 + 0.2 * age + (3 + 0.05 * age) * (sex == "m") + 0.4 * (bmi - 27)
    return {"age": age, "sex": sex, "bmi": bmi, "days": (days + rng.normal(0, 4, n)).clip(0, 60)}


def study(formula=FORMULA, **fields):
    return Study.from_formula(formula, COLUMNS, epsilon=3.0, delta=1e-6, **fields)


def least_squares(table):
    """A function from columns to the fitted response of exact least squares."""

    def design(age, sex, bmi):
        male = sex == "m"
        other = sex == "x-y"
        one = np.ones(len(age))
        columns = [one, age, male, other, bmi, bmi**2, age * male, age * other]
        return np.stack(columns, axis=1).astype(float)

    fitted = np.linalg.lstsq(design(table["age"], table["sex"], table["bmi"]), table["days"])[0]

    def respond(**changed):
        case = {name: table[name] for name in ("age", "sex", "bmi")}
        n = len(table["age"])
        case |= {name: np.full(n, value) for name, value in changed.items()}
        return float(np.mean(design(**case) @ fitted))

    return respond


@pytest.fixture(scope="module")
def told():
    table = rows()
    return of_exact(study(**WHOLE), table), least_squares(table)


@pytest.fixture(scope="module")
def noisy():
    rng = np.random.default_rng(1)
    releases = [simulate(study(), rows(seed=j), rng, holder=f"h{j}") for j in range(2)]
    return fit(collect(releases, allow_simulated=True))


def test_of_exact_statistics_they_are_averages_over_rows(told):
    posterior, respond = told
    expected = {
        "age: 70 - 40": respond(age=70.0) - respond(age=40.0),
        "age * 10": respond(age=60.0) - respond(age=50.0),
        "sex: m - f": respond(sex="m") - respond(sex="f"),
        "sex: x-y - m": respond(sex="x-y") - respond(sex="m"),
        "sex[m] * 2": 2 * (respond(sex="m") - respond(sex="f")),
        "sex[m] * 1 at age = 60": respond(sex="m", age=60.0) - respond(sex="f", age=60.0),
        "sex: x-y": respond(sex="x-y"),
        "bmi: 30 - 25": respond(bmi=30.0) - respond(bmi=25.0),
        "mean": respond(),
        "mean at age = 60, sex = m": respond(age=60.0, sex="m"),
        "mean at age = 60, sex = m, bmi = 2.5e1": respond(age=60.0, sex="m", bmi=25.0),
    }
    answers = posterior.effects(*expected)
    got = {row.question: row.mean for row in answers.rows}
    assert list(got) == list(expected)
    for question, value in expected.items():
        assert got[question] == pytest.approx(value, abs=0.02), question
    exactly = posterior.effects("sex[m] * 1 at age = 60").rows[0].mean
    assert exactly == pytest.approx(expected["sex[m] * 1 at age = 60"], abs=1e-4)


def test_where_all_is_fixed_it_is_a_sum_of_coefficients(noisy):
    fixed = noisy.effects("sex[m] * 1 at age = 60").rows[0]
    draws = noisy.sample(50_000, np.random.default_rng(3))
    names = noisy.names()
    by_hand = draws[:, names.index("sex[m]")] + 60 * draws[:, names.index("age:sex[m]")]
    assert fixed.mean == pytest.approx(by_hand.mean(), abs=0.02)
    assert fixed.sd == pytest.approx(by_hand.std(), rel=0.02)
    assert [fixed.low, fixed.high] == pytest.approx(np.quantile(by_hand, [0.05, 0.95]), abs=0.03)


def test_an_uncertain_average_widens_the_interval(noisy):
    """The mean response is known no better than the mean row: sd(y)/√n at the very least."""
    table = [rows(seed=j)["days"] for j in range(2)]
    least = np.concatenate(table).std() / np.sqrt(10_000)
    assert noisy.effects("mean").rows[0].sd > least


def test_a_mean_response_counts_the_noise_of_the_mean_row_once():
    """It is known as well as Σy/n is, within 5 %: counted apart, the noise would add more."""
    rng = np.random.default_rng(4)
    columns = {f"x{k}": (-1.0, 1.0) for k in range(6)} | {"y": (-4.0, 4.0)}
    formula = "y ~ " + " + ".join(f"x{k}" for k in range(6))
    agreed = Study.from_formula(formula, columns, epsilon=1.0, delta=1e-6)
    table = {f"x{k}": rng.uniform(-1, 1, 4000) for k in range(6)}
    table["y"] = sum(table.values()) + rng.normal(0, 0.3, 4000)
    released = simulate(agreed, table, rng, holder="a")
    posterior = fit(collect([released], allow_simulated=True))
    evidence = posterior.source.evidence
    weight = posterior.pooled.gram[0, 0]
    spread = spread_of(posterior.pooled, intercept=True)
    theta = posterior.outcome.mean()
    residual = posterior.pooled.noise_variance / weight
    noise = evidence.moment_sd[0] ** 2 / weight**2
    direct = 4 * np.sqrt(noise + residual + theta @ spread @ theta / weight)
    [told] = posterior.effects("mean").rows
    assert told.sd == pytest.approx(direct, rel=0.05)


def test_a_contrast_of_one_plain_feature_is_its_slope(noisy):
    plain = noisy.submodel(only="age,sex")
    slope = plain.effects("age * 1", probability=0.8).rows[0]
    k = plain.names().index("age")
    assert slope.mean == pytest.approx(plain.mean()[k])
    assert [slope.low, slope.high] == pytest.approx(plain.interval(0.8)[k])
    assert slope.positive == pytest.approx(plain.positive()[k])


def test_words_say_what_is_taken_for_granted(noisy):
    both = noisy.effects("sex: m - f")
    assert [text.split()[0] for text in both.assumptions] == ["A", "What"]
    assert noisy.effects("mean at age = 60, sex = m, bmi = 25").assumptions == ()
    assert "sex: m - f" in str(both)
    assert both.to_pandas().index.tolist() == ["sex: m - f"]


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ("bmi * 3", "not enter along a straight line: name two values"),
        ("height: 1 - 2", "no feature of the model, which has age, sex, bmi"),
        ("age: 200 - 30", "within its range, 18 to 100; got '200'"),
        ("sex * 1", "has levels: name one"),
        ("sex[z] * 1", "no level of 'sex', which has f, m, x-y"),
        ("sex: m - q", "a level, or two with a minus between: f, m, x-y"),
        ("days", "a question reads as"),
        ("mean at age", "after `at` come conditions"),
        ("age: 70 - 40 at age = 30", "'age' is there twice"),
        ("mean at age = 30, age = 40", "'age' is there twice"),
        ("mean at age = nan", "got 'nan'"),
        ("age: 40 - 40.0", "'age' is compared with itself: name two values that differ"),
        ("sex[f] * 1", "'sex' is compared with itself"),
        ("age * 0", "an amount of 'age' is not 0"),
        ("age * 1e400", "within ±1e.100; got '1e400'"),
        ("sex[m] * 1e-400", "an amount of 'sex' is not 0"),
    ],
)
def test_what_is_no_question_is_refused(noisy, question, words):
    with pytest.raises(PosteriorError, match=words):
        noisy.effects(question)
    with pytest.raises(PosteriorError, match="at least one question"):
        noisy.effects()
    with pytest.raises(PosteriorError, match="between 0 and 1"):
        noisy.effects("mean", probability=1.5)


def test_without_averages_every_feature_must_be_fixed():
    columns = {"age": (18, 100), "sex": ["f", "m"], "days": (0, 60)}
    made = Study.from_formula("days ~ 0 + age:sex", columns, epsilon=3.0, delta=1e-6)
    table = {name: rows(500)[name] for name in ("age", "sex", "days")}
    table["sex"] = np.where(table["sex"] == "m", "m", "f")
    released = simulate(made, table, np.random.default_rng(0), holder="a")
    posterior = fit(collect([released], allow_simulated=True))
    with pytest.raises(PosteriorError, match="fix"):
        posterior.effects("age: 60 - 40")
    assert posterior.effects("age: 60 - 40 at sex = m").rows[0].sd > 0


def test_the_command_answers_and_gives_json(tacit, noisy, house):
    noisy.save(house / "p.parquet")
    code, out, _ = tacit("effect", "p.parquet", "age: 70 - 40", "sex: m", "--interval", "0.5")
    assert code == 0
    assert "age: 70 - 40" in out
    code, out, _ = tacit("effect", "p.parquet", "sex: m", "--json")
    again = Posterior.load(house / "p.parquet").effects("sex: m").to_dict()
    assert json.loads(out) == again
    code, _, error = tacit("effect", "p.parquet", "nonsense")
    assert code == 2
    assert "a question reads as" in error


def test_of_a_family_they_are_on_its_own_scale():
    rng = np.random.default_rng(4)
    n = 20_000
    age = rng.uniform(20, 95, n)
    sex = rng.choice(["f", "m"], n)
    odds = -1 + 0.02 * (age - 60) + 0.5 * (sex == "m")
    died = (rng.random(n) < 1 / (1 + np.exp(-odds))).astype(float)
    columns = {"age": (18, 100), "sex": ["f", "m"], "died": (0, 1)}
    made = Study.from_formula("died ~ age + sex", columns, epsilon=10.0, delta=1e-6)
    table = {"age": age, "sex": sex, "died": died}
    released = simulate(made, table, np.random.default_rng(5), holder="a")
    posterior = fit(collect([released], allow_simulated=True), family="logistic")
    slope, level, mean = posterior.effects("age * 10", "sex: m - f", "mean").rows
    names = posterior.names()
    assert slope.mean == pytest.approx(10 * posterior.mean()[names.index("age")])
    assert level.mean == pytest.approx(posterior.mean()[names.index("sex[m]")])
    assert level.mean == pytest.approx(0.5, abs=0.2)
    assert mean.mean == pytest.approx(odds.mean(), abs=0.3)
    assert posterior.explained() is None
    with pytest.raises(PosteriorError, match="compared as straight lines"):
        select_terms(posterior)
