"""The front door in Python: what `tacit` offers, how it shows itself, and the schemas of its files.

Covers `tacit`, `tacit.html`, `tacit.analyst.posterior.facts`.
"""

import json
import re
from pathlib import Path

import jsonschema
import numpy as np
import pyarrow.parquet as pq
import pytest

import tacit
from tacit.analyst.posterior.facts import PosteriorFacts
from tacit.demo.hospitals import STUDY
from tacit.html import facts_table
from tacit.simulation import simulate

REPOSITORY = Path(__file__).parents[1]
HOSPITALS = tacit.Study.from_toml(STUDY)


def small_study(**fields):
    features = [{"name": "<i>x</i>", "range": [0, 1]}]
    document = {"name": "a<b", "response": {"name": "y", "range": [0, 1]}, "features": features}
    return tacit.Study.from_document(document | {"epsilon": 1.0, "delta": 1e-6} | fields)


def release_of(study, holder="north"):
    rows = np.random.default_rng(0).uniform(size=(200, 2))
    return simulate(study, rows, np.random.default_rng(0), holder=holder)


# What there is.


def test_the_page_of_the_interface_names_what_there_is():
    page = (REPOSITORY / "docs" / "api.md").read_text(encoding="utf-8")
    offers, _, _ = page.partition("## What results are made of")
    named = re.findall(r"^::: (tacit\.[\w.]+)$", offers, re.MULTILINE)
    offered = {f"{home}.{name}" for name, home in tacit._HOMES.items()}
    assert offered == set(named) - {"tacit.errors"}
    assert len(named) == len(set(named))


def test_the_version_is_that_of_the_distribution():
    project = (REPOSITORY / "pyproject.toml").read_text(encoding="utf-8")
    assert f'\nversion = "{tacit.__version__}"\n' in project


# How it shows itself.


def test_a_study_is_short_on_a_line_and_a_table_in_a_notebook():
    assert repr(HOSPITALS) == str(HOSPITALS)
    assert repr(HOSPITALS).startswith(
        "Study('length-of-stay': days by 5 columns, epsilon = 1 at delta = 1e-06, sha256:"
    )
    assert len(repr(HOSPITALS)) < 120
    table = HOSPITALS._repr_html_()
    assert "admission[emergency]" in table
    assert HOSPITALS.hash in table


def test_a_release_is_short_on_a_line_and_a_table_in_a_notebook():
    release = release_of(small_study())
    assert repr(release) == str(release)
    assert repr(release).startswith("Release('north' for study 'a<b': epsilon = 1 at delta = 1e-06")
    assert len(repr(release)) < 120
    assert '<td style="text-align: left">200</td>' in release._repr_html_()
    assert "it protects nobody" in release._repr_html_()


def test_names_of_others_are_escaped_in_a_notebook():
    study = small_study()
    for shown in (study, release_of(study, holder="<script>")):
        assert "<script>" not in shown._repr_html_()
        assert "<i>" not in shown._repr_html_()
        assert "a&lt;b" in shown._repr_html_()
    assert "<b>x</b>" not in facts_table("t", {"<b>x</b>": "<b>x</b>"})


# Schemas.


def schema(name):
    path = REPOSITORY / "docs" / "schemas" / f"{name}.json"
    return json.loads(path.read_text(encoding="utf-8"))


def test_the_schemas_are_those_of_the_code(monkeypatch):
    monkeypatch.syspath_prepend(REPOSITORY / "docs")
    import schemas

    for path, text in schemas.texts().items():
        assert path.read_text(encoding="utf-8") == text, "run `python docs/schemas.py`"


FORMULA = tacit.Study.from_formula(
    "y ~ x * z + log(x)",
    {"y": (0, 1), "x": (1, 2), "z": ["a", "b"]},
    epsilon=1.0,
    delta=1e-6,
)


@pytest.mark.parametrize("study", [HOSPITALS, small_study(), FORMULA], ids=lambda s: s.name)
def test_documents_obey_their_schemas(study):
    jsonschema.validate(study.document(), schema("study"))
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(study.document() | {"extra": 1}, schema("study"))


def test_releases_obey_their_schemas():
    document = json.loads(release_of(small_study()).to_json())
    jsonschema.validate(document, schema("release"))
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(document | {"xtx": "none"}, schema("release"))


@pytest.mark.parametrize("method", ["noise-aware", "fixed-s-fast", "fixed-s"])
def test_posteriors_obey_their_schema(method, tmp_path):
    collection = tacit.collect([release_of(small_study())], allow_simulated=True)
    settings = tacit.Settings(chains=2, draws=20, warmup=20, noise_variance=0.1)
    tacit.fit(collection, method, settings=settings).save(tmp_path / "posterior.parquet")
    metadata = pq.read_metadata(tmp_path / "posterior.parquet").metadata
    facts = json.loads(metadata[b"tacit-posterior"])
    jsonschema.validate(facts, schema("posterior"))
    PosteriorFacts.model_validate(facts)
    with pytest.raises(ValueError, match="exactly one law"):
        PosteriorFacts.model_validate(
            facts | {"closed_form": None, "mixture": None, "chains": None}
        )
