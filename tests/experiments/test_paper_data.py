"""The public data sets, from small files of their formats."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest
from numpy.testing import assert_allclose

from experiments.model.data import FILES, DataError, available, prepared, split
from experiments.run import real
from experiments.run.parts import columns_of
from experiments.settings import settings_of


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(0)
    power = rng.normal(size=(50, 5)) + np.array([0, 0, 0, 0, 400])
    np.savetxt(tmp_path / FILES["PowerPlant"], power, delimiter=",")
    road = np.column_stack(
        [np.arange(40), rng.uniform(8, 11, 40), rng.uniform(56, 58, 40), rng.uniform(-8, 130, 40)]
    )
    lines = [f"{int(row[0])},{row[1]:.7f},{row[2]:.7f},{row[3]:.12f}" for row in road]
    (tmp_path / FILES["3droad"]).write_text("\n".join(lines) + "\n")
    np.savetxt(tmp_path / "road.npy.txt", road)
    return tmp_path


def test_sets_that_are_there_are_found(folder):
    assert available(folder) == ["PowerPlant", "3droad"]


def test_a_set_is_z_scored_and_its_response_fills_the_unit_interval(folder):
    x, y = prepared(folder, "PowerPlant")
    assert_allclose(x.mean(axis=0), 0, atol=1e-12)
    assert_allclose(x.std(axis=0, ddof=1), 1)
    assert np.abs(y).max() == 1.0
    assert y.mean() == pytest.approx(0, abs=1e-12)


def test_of_3droad_the_id_is_a_feature_and_the_altitude_is_predicted(folder):
    """The paper says d = 3 of a table with an id, two coordinates and an altitude."""
    road = np.loadtxt(folder / "road.npy.txt")
    x, y = prepared(folder, "3droad")
    assert x.shape == (40, 3)
    for k in range(3):
        assert np.corrcoef(x[:, k], road[:, k])[0, 1] == pytest.approx(1)
    assert np.corrcoef(y, road[:, 3])[0, 1] == pytest.approx(1)


def test_a_set_of_the_size_of_3droad_runs(tmp_path):
    """434,874 rows of an id, two coordinates and an altitude that they tell nearly nothing of."""
    rng = np.random.default_rng(0)
    rows = 434_874
    place = rng.uniform([8.15, 56.58], [11.2, 57.75], (rows, 2))
    altitude = 20 + 2 * (place[:, 1] - 57) + 18 * rng.standard_normal(rows)
    road = np.column_stack([rng.integers(1, 2**27, rows), place, altitude])
    pyarrow.csv.write_csv(
        pa.table(dict(zip("abcd", road.T, strict=True))),
        tmp_path / FILES["3droad"],
        pyarrow.csv.WriteOptions(include_header=False),
    )
    settings = replace(
        settings_of("real", quick=True), sets=("3droad",), holders=(1,), runs=2, seed=0
    )
    rows_of = split(*prepared(tmp_path, "3droad"))
    assert rows_of.x.shape == (347_900, 3)
    columns = columns_of(real.closed("3droad", rows_of, settings))
    floor = columns["error"][columns["method"] == "non-private"][0]
    fast = columns["error"][columns["method"] == "fixed-s-fast"]
    assert_allclose(fast, floor, rtol=0.02)  # as in the paper, where all methods give .0229


def test_the_empty_end_of_air_quality_is_cut_and_gaps_are_zero(tmp_path):
    rows = ["1,2,3,4,5,6,7,8,9,10,11,12,13,,"] * 5000 + ["2,3,4,5,6,7,8,9,10,11,12,13,,,"] * 4357
    rows += [",,,,,,,,,,,,,,"] * 114
    (tmp_path / FILES["AirQuality"]).write_text("\n".join(rows) + "\n")
    x, y = prepared(tmp_path, "AirQuality")
    assert x.shape == (9357, 12)
    assert y[0] > 0 > y[-1]


def test_four_fifths_are_rounded_up_as_the_papers_row_counts_are():
    assert len(split(np.zeros((9568, 2)), np.zeros(9568)).y) == 7655
    assert len(split(np.zeros((9357, 2)), np.zeros(9357)).y) == 7486


def test_what_is_missing_or_wrong_is_said_in_one_sentence(tmp_path):
    with pytest.raises(DataError, match=r"--data: bike_sharing\.csv is not in .*fetch BikeSharing"):
        prepared(tmp_path, "BikeSharing")
    (tmp_path / FILES["BikeSharing"]).write_text("season,count\n1,2\n")
    with pytest.raises(DataError, match="without a header"):
        prepared(tmp_path, "BikeSharing")
