"""How far rows and residuals reach in visits, what a bound leaves of them, and the first question.

Covers `tacit.visits.reach`, `tacit.visits.cut`, `tacit.visits.first` and `tacit.visits.pool`.
"""

import numpy as np
import pytest
from analyst.visiting import SLOPES, rows, study

from tacit.simulation import simulate
from tacit.visits.cut import cut_of, law_of, whole_sd
from tacit.visits.first import first_question, spread_of
from tacit.visits.known import Known
from tacit.visits.pool import Pool
from tacit.visits.reach import (
    LEAST_SHARE,
    PROBE,
    REACH,
    REACH_POWER,
    REACHES,
    SLOPES_FROM,
    hidden,
    longest_mapped,
    noise_share,
    probed,
    residual_reach,
    row_reach,
    slope_size,
    tail_reach,
)

RNG = np.random.default_rng(7)
"""Of noise on which nothing rests."""


def test_the_first_question_of_two_visits_is_the_studys_own_form():
    agreed = study(1000, 1, 2)
    question = first_question(agreed, [])
    assert (question.radius, question.bound) == (agreed.row_radius, agreed.response_bound)
    assert np.array_equal(question.matrix, np.eye(agreed.d))


@pytest.mark.parametrize("reach", [0.5, 1.0, 2.0, 4.0])
def test_what_a_bound_leaves_of_normal_residuals(reach):
    rng = np.random.default_rng(7)
    residuals = rng.normal(0, 0.3, 200_000)
    bound = 0.3 * reach
    cut = np.clip(residuals, -bound, bound)
    told = cut_of(0.3, bound)
    assert told.square == pytest.approx(np.mean(cut**2), rel=0.01)
    assert told.rate == pytest.approx(max(np.mean(np.abs(residuals) < bound), 0.4), abs=0.01)
    assert told.mean == 0.0
    if reach >= 1:
        assert whole_sd(float(np.mean(cut**2)), bound) == pytest.approx(0.3, rel=0.03)


def test_more_rows_let_longer_rows_and_larger_residuals_through():
    sizes = (10, 3000, 100_000, 10**7)
    residuals = [residual_reach(study(n), 3) for n in sizes]
    lengths = [row_reach(study(n)) for n in sizes]
    assert residuals == sorted(residuals)
    assert lengths == sorted(lengths)
    assert (residuals[0], residuals[-1]) == REACHES
    assert hidden(study(400, 4), 1.0) == pytest.approx(2 * hidden(study(400), 1.0))


def test_bounds_grow_without_end_where_noise_is_less_than_rows_leave_unsure():
    """4 sds are the most that h alone gives."""
    studies = [study(2000, epsilon=epsilon) for epsilon in (0.1, 1.0, 3.0, 10.0, 30.0, 100.0)]
    residuals = [residual_reach(each, 5) for each in studies]
    lengths = [row_reach(each) for each in studies]
    assert residuals == sorted(residuals)
    assert lengths == sorted(lengths)
    more = [residual_reach(study(n, epsilon=100.0), 5) for n in (300, 3000, 10**5, 10**7, 10**9)]
    assert more == sorted(more)
    assert more[-1] > 4 * REACHES[1]


@pytest.mark.parametrize(("n", "epsilon"), [(100, 1.0), (500, 3.0), (3000, 3.0), (50_000, 1.0)])
def test_bounds_are_as_h_has_them_where_noise_decides(n, epsilon):
    agreed = study(n, visits=10, epsilon=epsilon)
    assert noise_share(agreed) > LEAST_SHARE
    share = (1 - 1 / 14) / 9
    usual = REACH * hidden(agreed, share) ** REACH_POWER
    assert residual_reach(agreed, 10) == pytest.approx(np.clip(usual, *REACHES))


def test_noise_is_the_share_of_a_sampling_error_that_the_plan_says():
    """Of corrections in a map that makes directions equally long, with one row for another."""
    agreed = study(20_000, visits=10, epsilon=3.0)
    release = simulate(agreed, rows(np.random.default_rng(3), 20_000), RNG, holder="north")
    last = release.answers[-1]
    pool = Pool.of(last)
    sd = last.question.bound / residual_reach(agreed, 10)
    share = pool.moment_sd / sd / np.sqrt(9 * pool.rows)
    assert share == pytest.approx(1.6 * noise_share(agreed), rel=0.1)


def test_one_correction_has_a_wider_bound_where_noise_leaves_room():
    roomy = study(2000, visits=10, epsilon=10.0)
    assert probed(roomy) == 3
    assert residual_reach(roomy, 3) == pytest.approx(PROBE * residual_reach(roomy, 4))
    assert probed(study(2000, visits=10, epsilon=0.5)) == 0
    assert probed(study(2000, visits=4, epsilon=10.0)) == 0
    assert tail_reach(study(2000, visits=4, epsilon=10.0), 2.0) == 1
    reaches = [tail_reach(roomy, tail) for tail in (0.0, 0.1, 1.0, 3.0, 100.0)]
    assert reaches == sorted(reaches)
    assert (reaches[0], reaches[-1]) == (1, PROBE)
    assert reaches[2] > 1.2


@pytest.mark.parametrize(("far", "least", "most"), [(0.04, 0.5, 1.05), (1.0, 2.0, 4.0)])
def test_bounds_grow_where_a_wider_one_shows_a_tail(far, least, most):
    """One residual in fifty has another sd: where that is larger, it has most of the variance."""
    rng = np.random.default_rng(4)
    table = rows(rng, 4000)
    sds = np.where(rng.random(len(table)) < 0.02, far, 0.04)
    table[:, -1] = 0.1 + table[:, :-1] @ SLOPES + sds * rng.normal(size=len(table))
    agreed = study(4000, visits=10, epsilon=10.0)
    release = simulate(agreed, table, np.random.default_rng(5), holder="north")
    bounds = [answer.question.bound for answer in release.answers]
    assert bounds[1] > 2 * bounds[2]
    assert least < bounds[-1] / bounds[2] < most


def test_what_noise_hides_of_rows_stays_what_is_usual():
    usual = Known(gram=np.eye(2), variance=np.full((2, 2), 0.1), axes=np.eye(2))
    told = np.array([[2.0, 0.5], [0.5, 1.0]])
    for sd, expected in ((1e-3, told), (1e5, np.eye(2))):
        pool = Pool(
            rows=100.0,
            gram=100 * 0.8 * told,
            moment=np.zeros(2),
            square=1.0,
            gram_sd=sd,
            moment_sd=1.0,
            square_sd=1.0,
            bound=1.0,
        )
        assert np.allclose(usual.told(pool, 0.8).gram, expected, atol=1e-3)


@pytest.mark.parametrize("shift", [0.0, 0.3, -0.6])
def test_where_residuals_lie_is_read_off_what_a_bound_left_of_them(shift):
    residuals = np.random.default_rng(8).normal(shift, 0.3, 200_000)
    cut = np.clip(residuals, -0.5, 0.5)
    law = law_of(float(cut.mean()), float(np.mean(cut**2)), 0.5)
    assert law.shift == pytest.approx(shift, abs=0.01)
    assert law.sd == pytest.approx(0.3, rel=0.03)
    assert cut_of(0.3, 0.5, shift).mean == pytest.approx(cut.mean(), abs=0.01)


def test_columns_are_smaller_where_noise_hides_slopes():
    agreed = study(40)
    size = slope_size(agreed)
    assert size == pytest.approx(SLOPES_FROM / hidden(agreed, 1.0))
    assert size < 1
    assert slope_size(study(4000)) == 1
    assert slope_size(study(40, intercept=False)) == 1
    places = simulate(agreed, rows(np.random.default_rng(1), 40), RNG, holder="north").visit.places
    spread = spread_of(agreed, [places])
    matrix = first_question(agreed, [places]).matrix
    assert np.diag(matrix)[1:] == pytest.approx(size / spread.sds[:-1])
    assert matrix[0, 1:] == pytest.approx(-size * spread.means[:-1] / spread.sds[:-1])
    assert matrix[0, 0] == 1


def test_no_row_is_longer_than_its_ranges_let_it_be():
    agreed = study(4000)
    matrix = np.random.default_rng(2).normal(size=(agreed.d, agreed.d))
    signs = np.array(np.meshgrid(*[[-1.0, 1.0]] * len(SLOPES))).reshape(len(SLOPES), -1).T
    corners = np.column_stack([np.ones(len(signs)), signs])
    longest = np.linalg.norm(corners @ matrix, axis=1).max()
    assert longest <= longest_mapped(agreed, matrix) <= 2 * longest


def test_few_rows_are_as_many_as_planned():
    """A number of rows whose noise is larger than itself is read against the plan."""
    agreed = study(40, epsilon=0.1)
    places = simulate(agreed, rows(np.random.default_rng(1), 40), RNG, holder="north").visit.places
    means = []
    for count in (-400.0, 0.0, 400.0):
        told = places.model_copy(update={"count": count, "totals": (20.0,) * len(places.totals)})
        means.append(spread_of(agreed, [told]).means[0])
    assert means == pytest.approx([means[1]] * 3, rel=0.2)
