"""The public data sets, from small files of their formats."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from experiments.model.data import FILES, DataError, available, prepared, split


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
