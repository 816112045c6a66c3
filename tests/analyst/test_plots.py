"""Plots: axes in, axes out, the right number of marks, and clear refusals.

Covers `tacit.analyst.posterior.plots`, `tacit.analyst.posterior.density`.
"""

import math

import matplotlib as mpl
import numpy as np
import pytest
from numpy.testing import assert_allclose

mpl.use("agg")
from matplotlib import pyplot as plt

import tacit
from tacit.analyst.posterior.density import densities
from tacit.analyst.posterior.laws import Draws, Mixture, Student
from tacit.analyst.posterior.pooled import Pooled
from tacit.analyst.posterior.posterior import Posterior
from tacit.errors import PosteriorError

STUDY = tacit.Study.from_toml(
    """
    name = "test"
    epsilon = 1
    delta = 1e-6
    [response]
    name = "cost $"
    range = [0, 30]
    [[features]]
    name = "age"
    range = [20, 100]
    [[features]]
    name = "sex"
    levels = ["f", "$m$"]
    """
)
POOLED = Pooled(100.0, np.eye(3), 0.1, 0.0025 * np.eye(3))
DRAWS = Draws(
    np.random.default_rng(0).normal([0.2, 0.3, 0.1], 0.1, (4, 200, 3)), np.full((4, 200), 0.05)
)
NORMAL = Student(np.array([0.2, 0.3, 0.1]), 0.01 * np.eye(3), math.inf, 0.05)
MIXTURE = Mixture(
    np.array([0.3, 0.7]),
    np.array([[0.0, 0.5, 0.1], [0.2, 0.1, 0.3]]),
    0.01 * np.stack([np.eye(3)] * 2),
    np.array([0.02, 0.1]),
)
POINT = Student(np.array([0.2, 0.3, 0.1]), None, math.inf, 0.05)


@pytest.fixture(autouse=True)
def _closed_afterwards():
    yield
    plt.close("all")


def posterior(outcome, pooled=POOLED):
    return Posterior(STUDY, "m", outcome, (), pooled=pooled)


@pytest.mark.parametrize("outcome", [DRAWS, NORMAL, MIXTURE], ids=["draws", "normal", "mixture"])
def test_forest_shows_each_interval_and_its_inner_part(outcome):
    found = posterior(outcome)
    axes = found.plot_forest()
    outer, inner = (
        [path.vertices[:, 0] for path in lines.get_paths()] for lines in axes.collections
    )
    assert_allclose(outer, found.interval(0.9, "contrast"))
    kept = np.sqrt(1 - found.privacy_share("contrast"))
    assert_allclose([np.ptp(line) for line in inner], kept * [np.ptp(line) for line in outer])
    axes.figure.canvas.draw()
    assert [text.get_text() for text in axes.get_yticklabels()] == ["age", r"sex[\$m\$]"]


def test_forest_draws_where_it_is_told_to():
    _, ax = plt.subplots()
    assert posterior(NORMAL, None).plot_forest(ax=ax, units="user", probability=0.5) is ax
    assert len(ax.collections) == 1  # nothing is known of privacy's part
    assert_allclose(
        ax.collections[0].get_paths()[1].vertices[:, 0], posterior(NORMAL).interval(0.5)[1]
    )


def test_a_point_has_dots_and_no_lines():
    axes = posterior(POINT).plot_forest()
    assert len(axes.collections[0].get_paths()) == 0
    assert len(axes.lines[-1].get_xdata()) == 2
    with pytest.raises(PosteriorError, match="gives a point"):
        posterior(POINT).plot_pairs()


def test_trace_shows_every_chain_of_a_sampler():
    grid = posterior(DRAWS).plot_trace()
    assert grid.shape == (3, 2)
    assert [len(row[1].lines) for row in grid] == [4, 4, 4]
    with pytest.raises(PosteriorError, match="computed, not sampled"):
        posterior(NORMAL).plot_trace()


@pytest.mark.parametrize("outcome", [DRAWS, NORMAL, MIXTURE], ids=["draws", "normal", "mixture"])
def test_pairs_fill_the_lower_triangle(outcome):
    _, given = plt.subplots(3, 3)
    grid = posterior(outcome).plot_pairs(axes=given)
    assert [
        [bool(panel.lines) or bool(panel.collections) for panel in row] for row in grid
    ] == np.tri(3).astype(bool).tolist()
    with pytest.raises(PosteriorError, match=r"shape \(3, 3\)"):
        posterior(outcome).plot_pairs(axes=given[:2])


def test_densities_are_those_of_the_law():
    """A normal law's curve, to the precision of the net of quantiles."""
    for (places, heights), mean, sd in zip(
        densities(posterior(NORMAL)), posterior(NORMAL).mean(), posterior(NORMAL).sd(), strict=True
    ):
        assert_allclose(heights, np.exp(-0.5 * ((places - mean) / sd) ** 2), atol=0.003)
