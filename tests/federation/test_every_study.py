"""Whatever files can do, a federation can: persons, weights, responses, families, holders apart.

Each study is run over three sites, and the posterior compared with that of the files they gave.

Covers `tacit.federation.server.app`, `tacit.federation.client.answer`.
"""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sites import STUDY, changed, charges, make_site, table

from tacit.analyst.fit import fit
from tacit.errors import FederationError
from tacit.federation.client.app import app
from tacit.federation.local import LocalGrid, Node
from tacit.federation.server.app import Order, federate
from tacit.release import Release
from tacit.study.toml import study_toml

HOLDERS = ("north", "south", "east")
ROWS = 600


def rows(seed):
    """A table with persons of several rows, weights, and two more responses."""
    rng = np.random.default_rng(seed)
    base = table(rows=ROWS, seed=seed)
    days = base["days"].to_numpy()
    columns = {
        "patient": pa.array([f"p{row // 2}" for row in range(ROWS)]),
        "share": rng.uniform(0.5, 2.0, ROWS),
        "cost": np.clip(100 * days + rng.normal(0, 50, ROWS), 0, 4000),
        "again": (rng.random(ROWS) < 1 / (1 + np.exp(4 - 0.4 * days))).astype(float),
    }
    return pa.table({name: base[name] for name in base.column_names} | columns)


FEATURES = STUDY.model_dump(mode="json", exclude_none=True)["features"]
COST = {"name": "cost", "range": [0, 4000]}
STUDIES = {
    "persons": ({"person": "patient", "missing_person": "alone"}, {}),
    "weights": ({"weight": {"column": "share", "most": 2.0}}, {}),
    "responses": (
        {"features": [*FEATURES, COST], "responses": ["days", "cost"]},
        {"response": "cost"},
    ),
    "family": ({"response": {"name": "again", "range": [0, 1]}}, {"family": "logistic"}),
    "differing": ({}, {"holders": "differ"}),
    "alike": ({}, {"holders": "common"}),
}


@pytest.fixture
def grid(tmp_path):
    nodes = {}
    for k, holder in enumerate(HOLDERS):
        path = make_site(tmp_path / holder, holder, studies=["*"])
        pq.write_table(rows(k), path.with_name("rows.parquet"))
        nodes[k] = Node(app, {"policy": str(path)})
    return LocalGrid(nodes)


@pytest.mark.parametrize("name", STUDIES)
def test_a_federation_gives_what_the_files_give(grid, tmp_path, name):
    fields, options = STUDIES[name]
    study = changed(**fields)
    said = {"holders-are" if key == "holders" else key: word for key, word in options.items()}
    (tmp_path / "study.toml").write_text(study_toml(study))
    config = {"study": "study.toml", "out": str(tmp_path / "out"), "least-holders": 3}
    order = Order.read(config | {"deadline": 20.0, "poll": 0.0} | said, tmp_path)
    posterior = federate(grid, order)
    files = [Release.load(path) for path in sorted((tmp_path / "out/releases").iterdir())]
    assert {release.holder for release in files} == set(HOLDERS)
    by_hand = fit(files, **options)
    assert posterior.names() == by_hand.names()
    np.testing.assert_allclose(posterior.mean(), by_hand.mean())
    assert [len(charges(tmp_path / holder / "holder.toml")) for holder in HOLDERS] == [1, 1, 1]


@pytest.mark.parametrize("word", [{"family": "cauchy"}, {"response": "x"}, {"holders-are": "x"}])
def test_what_could_not_be_fitted_is_refused_before_anybody_is_asked(tmp_path, word):
    (tmp_path / "study.toml").write_text(study_toml(STUDY))
    config = {"study": "study.toml", "out": str(tmp_path), "least-holders": 1, "deadline": 1.0}
    with pytest.raises(FederationError, match=f"{next(iter(word))} in .* must be one of"):
        Order.read(config | word, tmp_path)
