"""What somebody meets first: short forms, notebooks, data frames, ArviZ, paths and names.

Covers analyst/fit.py, analyst/posterior/{arviz,frames,text_table}.py and
analyst/report/notebook.py.
"""

import builtins
import re
import sys
from importlib.util import find_spec

import numpy as np
import pytest

import tacit
from tacit.analyst.methods import METHODS, PAPER_NAMES, method_named
from tacit.analyst.posterior import arviz
from tacit.analyst.posterior.text_table import text_table
from tacit.errors import MethodError, PosteriorError, PriorError, ReleaseError, TacitError
from tacit.simulation import simulate
from tacit.study import Study

EVIL = '<script>alert("x")</script>'
STUDY = Study.from_toml(f"""
name = '{EVIL}'
epsilon = 2
delta = 1e-6
[response]
name = "days"
range = [0, 30]
[[features]]
name = "age"
range = [20, 100]
[[features]]
name = "sex"
levels = ["f", '{EVIL}']
""")


def release_of(holder, seed, n=400):
    rng = np.random.default_rng(seed)
    age = rng.uniform(20, 100, n)
    sex = rng.choice(["f", EVIL], n)
    days = np.clip(0.2 * age + rng.normal(0, 3, n), 0, 30)
    return simulate(STUDY, {"age": age, "sex": sex, "days": days}, rng, holder=holder)


@pytest.fixture(scope="module")
def releases():
    return [release_of("north", 0), release_of(EVIL, 1)]


@pytest.fixture(scope="module")
def collection(releases):
    return tacit.collect(releases, allow_simulated=True)


@pytest.fixture(scope="module")
def posterior(collection):
    return tacit.fit(collection)


@pytest.fixture(scope="module")
def sampled(collection):
    settings = tacit.Settings(chains=2, draws=100, warmup=100)
    return tacit.fit(collection, "fixed-s", settings=settings)


# Short forms.


def test_the_short_forms_are_short(collection, posterior):
    assert len(repr(collection)) < 200
    assert "north" in repr(collection)
    assert len(repr(posterior)) < 200
    assert "noise-aware" in repr(posterior)
    assert "800 rows" in repr(posterior)
    assert repr(posterior.summary()) == str(posterior.summary())


def test_a_collection_of_many_names_a_few():
    many = tacit.Collection(STUDY, tuple(release_of(f"h{k}", k, n=5) for k in range(30)))
    assert "30 releases" in repr(many)
    assert len(repr(many)) < 200


# Notebooks.


@pytest.fixture(params=["collection", "posterior", "summary", "predictions", "point"])
def shown(request, collection, posterior):
    if request.param == "collection":
        return collection
    if request.param == "summary":
        return posterior.summary()
    if request.param == "predictions":
        return posterior.predict({"age": [50.0, None], "sex": ["f", EVIL]})
    if request.param == "point":
        return tacit.fit(collection, "fixed-s-fast")
    return posterior


def test_notebooks_show_tables_without_script(shown):
    text = shown._repr_html_()
    assert text.startswith('<div class="tacit"><style>')
    assert "<table>" in text
    assert "<script" not in text
    assert not re.search(r"\son\w+=|javascript:|https?:|@import|url\(", text)
    assert text.count("<div") == text.count("</div>")


def test_names_are_escaped(collection):
    assert "&lt;script&gt;" in collection._repr_html_()


def test_a_posterior_is_drawn(posterior, collection):
    assert posterior._repr_html_().count("<svg") == 1
    assert posterior._repr_html_().count('class="interval') == 4  # with and without privacy noise
    assert "<svg" not in collection._repr_html_()


def test_the_style_reaches_nothing_else(posterior):
    style = re.search(r"<style>(.*?)</style>", posterior._repr_html_(), re.DOTALL)[1]
    selectors = [part for rule in style.split("}")[:-1] for part in rule.split("{")[0].split(",")]
    assert len(selectors) > 10
    assert all(selector.strip().startswith(".tacit") for selector in selectors)


def test_many_releases_are_counted():
    many = tacit.Collection(STUDY, tuple(release_of(f"h{k}", k, n=5) for k in range(30)))
    text = many._repr_html_()
    assert text.count("<tr>") == 13
    assert "of 30 releases" in text


# Data frames.


def test_a_summary_is_a_data_frame(posterior, sampled):
    frame = posterior.summary().to_pandas()
    assert list(frame.columns) == ["mean", "sd", "low", "high", "positive", "standardised"]
    assert list(frame.index) == list(posterior.names())
    np.testing.assert_allclose(frame["mean"], posterior.mean())
    assert frame.attrs["method"] == "noise-aware"
    assert "rhat" in sampled.summary().to_pandas().columns


def test_predictions_are_arrow_and_pandas(posterior):
    import polars as pl

    predictions = posterior.predict({"age": [50.0, 60.0], "sex": ["f", "f"]})
    assert len(predictions) == 2
    assert "Predictions of 2 rows" in repr(predictions)
    assert predictions.to_pandas()["mean"].tolist() == predictions["mean"].to_pylist()
    assert pl.DataFrame(predictions)["mean"].to_list() == predictions["mean"].to_pylist()


def test_without_pandas_a_sentence_says_so(posterior, monkeypatch):
    predictions = posterior.predict({"age": [50.0], "sex": ["f"]})
    imported = builtins.__import__

    def refuse(name, *arguments, **options):
        if name.split(".")[0] == "pandas":
            raise ModuleNotFoundError(name)
        return imported(name, *arguments, **options)

    monkeypatch.setattr(builtins, "__import__", refuse)
    for ask in (predictions.to_pandas, posterior.summary().to_pandas):
        with pytest.raises(PosteriorError, match="pip install pandas"):
            ask()


# Draws.


def test_draws_need_no_generator(posterior):
    draws = posterior.sample(1000)
    assert draws.shape == (1000, 3)
    assert not np.array_equal(draws, posterior.sample(1000))
    np.testing.assert_array_equal(
        posterior.sample(5, np.random.default_rng(1)), posterior.sample(5, np.random.default_rng(1))
    )


def test_a_computed_posterior_has_draws(posterior, sampled):
    """4,000 independent draws: means to five standard errors each, false alarm below 2e-6."""
    draws = posterior.draws()
    assert draws.shape == (4, 1000, 3)
    error = np.abs(draws.mean(axis=(0, 1)) - posterior.mean()) / posterior.sd()
    assert (error < 5 / np.sqrt(4000)).all()
    np.testing.assert_array_equal(draws, posterior.draws())
    assert sampled.draws().shape == (2, 100, 3)


def test_a_point_has_no_draws(collection):
    point = tacit.fit(collection, "fixed-s-fast")
    point = tacit.Posterior(
        study=STUDY,
        method="ada-ssp",
        outcome=type(point.outcome)(point.outcome.location, None, np.inf, 0.1),
        contributions=(),
    )
    for ask in (point.draws, lambda: point.sample(10), point.to_arviz):
        with pytest.raises(PosteriorError, match="point estimate"):
            ask()


# What a fit takes.


def test_a_fit_takes_paths_releases_and_collections(tmp_path, releases, posterior, monkeypatch):
    paths = []
    for k, release in enumerate(releases):
        honest = release.model_copy(update={"simulated": False})
        honest.save(tmp_path / f"{k}.json")
        paths.append(str(tmp_path / f"{k}.json"))
    monkeypatch.chdir(tmp_path)
    for given in (paths, tmp_path, ["0.json", "1.json"], (tmp_path / "0.json", paths[1])):
        np.testing.assert_array_equal(tacit.fit(given).mean(), posterior.mean())
    assert tacit.fit("0.json").contributions[0].holder == "north"


@pytest.mark.parametrize(
    ("arguments", "error", "said"),
    [
        ({"releases": 3}, ReleaseError, "got int"),
        ({"releases": None}, ReleaseError, "got NoneType"),
        ({"releases": [3]}, ReleaseError, "got int"),
        ({"releases": STUDY}, ReleaseError, "got tuple"),
        ({"releases": []}, ReleaseError, "at least one release"),
        ({"releases": "nowhere.json"}, ReleaseError, "nowhere.json"),
        ({"method": "bayes"}, MethodError, "noise-aware"),
        ({"method": ["noise-aware"]}, MethodError, "method must be one of"),
        ({"prior": 3}, PriorError, "got int"),
        ({"prior": "strong"}, PriorError, "weak"),
        ({"settings": {"draws": 3}}, MethodError, "got dict"),
        (
            {"method": "normal-x", "settings": tacit.Settings(sampler="nuts")},
            MethodError,
            "sampler must be one of gradient, metropolis, pseudo-marginal",
        ),
    ],
)
def test_a_wrong_argument_gets_a_sentence(collection, arguments, error, said):
    with pytest.raises(error, match=re.escape(said)) as raised:
        tacit.fit(**({"releases": collection} | arguments))
    assert isinstance(raised.value, TacitError)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(("paper", "ours"), PAPER_NAMES.items())
def test_the_papers_names_are_ours_too(paper, ours):
    assert method_named(paper).name == ours


def test_a_fit_by_the_papers_name_says_which_method_it_was(collection):
    assert tacit.fit(collection, "Bayes-fixedS-fast").method == "fixed-s-fast"


@pytest.mark.parametrize("name", METHODS)
def test_a_method_knows_its_name_and_whether_it_computes(name):
    method = method_named(name)
    assert method.name == name
    assert method.computed == (name not in {"normal-x", "fixed-s", "bernstein-sheldon"})
    assert bool(method.samplers) == (name == "normal-x")


def test_a_text_table_lines_up():
    lines = text_table([["", "mean"], ["age", "1.5"], ["a longer name", "-10"]]).splitlines()
    assert lines == ["               mean", "age             1.5", "a longer name   -10"]


# ArviZ: what the installed one takes.


def test_the_installed_arviz_summarises_and_draws(posterior, sampled):
    pytest.importorskip("matplotlib").use("Agg")
    data = posterior.to_arviz()  # first, as ArviZ warns of its future when it is imported
    az = pytest.importorskip("arviz")
    table = az.summary(data)
    assert len(table) == 4
    means = table["mean"].astype(float).to_numpy()
    np.testing.assert_allclose(means[:3], posterior.mean(), atol=5 * posterior.sd().max())
    assert az.plot_forest(data) is not None
    assert len(az.summary(sampled.to_arviz())) == 4


@pytest.mark.skipif(find_spec("arviz_base") is None, reason="needs arviz-base")
def test_arviz_from_version_one_on_takes_a_tree(posterior, monkeypatch):
    monkeypatch.setattr(arviz, "_takes_inference_data", lambda: False)
    tree = posterior.to_arviz()
    assert type(tree).__name__ == "DataTree"
    assert tree["posterior"]["coefficient"].shape == (4, 1000, 3)
    stats = pytest.importorskip("arviz_stats")
    assert len(stats.summary(tree)) == 4


@pytest.mark.parametrize(("version", "old"), [("0.23.4", True), ("1.0.0", False), (None, False)])
def test_the_version_of_arviz_decides(monkeypatch, version, old):
    def stated(_name):
        if version is None:
            raise arviz.PackageNotFoundError
        return version

    monkeypatch.setattr(arviz, "version", stated)
    assert arviz._takes_inference_data() is old


def test_without_arviz_a_sentence_says_so(posterior, monkeypatch):
    monkeypatch.setattr(arviz, "_takes_inference_data", lambda: False)
    monkeypatch.setitem(sys.modules, "arviz_base", None)
    with pytest.raises(PosteriorError, match=re.escape("tacit-dp[arviz]")):
        posterior.to_arviz()
