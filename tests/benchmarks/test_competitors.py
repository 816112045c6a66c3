"""The league's competitors: noise as their files argue, neighbours within bounds, least squares.

Covers `benchmarks/competitors`. Where chance decides, the seed is fixed and the bound stated.
"""

import math

import numpy as np
import pytest
from scipy.special import ndtr, ndtri
from scipy.stats import laplace

from benchmarks.competitors import (
    adassp,
    binagg,
    boosted_adassp,
    gradient_descent,
    iterative_hessian_mixing,
    tukey_em,
)
from benchmarks.competitors.holders import Budget, Holders, cut
from tacit.privacy.gaussian import delta_at

BUDGET = Budget(1.0, 1e-6)
GENEROUS = Budget(1e4, 1e-6)
SLOPES = np.array([0.1, 0.3, -0.2, 0.15])


class Spy(np.random.Generator):
    """A generator that remembers the standard deviations it was asked for."""

    def __init__(self, seed):
        super().__init__(np.random.PCG64(seed))
        self.asked = []

    def normal(self, loc=0.0, scale=1.0, size=None):
        self.asked.append(scale)
        return super().normal(loc, scale, size)


def rows(count, seed=0):
    rng = np.random.default_rng(seed)
    design = np.column_stack([np.ones(count), rng.uniform(-1, 1, (count, 3))])
    y = design @ SLOPES + rng.normal(0, 0.05, count)
    return design, np.clip(y, -1, 1)


def held(count=20_000, holders=1, *, secure_sum=False):
    design, y = rows(count)
    parts = np.array_split(np.arange(count), holders)
    designs = tuple(design[part] for part in parts)
    return Holders(designs, tuple(y[part] for part in parts), secure_sum)


def least_squares(holders):
    return np.linalg.solve(holders.gram, holders.moment)


def neighbours(rng, radius, count=1000):
    """Pairs of rows at most `radius` long with responses of at most 1, many of them extreme."""
    for _ in range(count):
        x, v = rng.standard_normal((2, 4))
        v = rng.choice([v, -x, v - x * (v @ x) / (x @ x)])
        ends = rng.choice([-1.0, 1.0], 2) * rng.choice([1.0, rng.uniform()], 2)
        lengths = radius * rng.choice([1.0, rng.uniform()], 2)
        yield (
            x * lengths[0] / np.linalg.norm(x),
            v * lengths[1] / np.linalg.norm(v),
            ends[0],
            ends[1],
        )


def largest(moves, bound, attained=0.98):
    """All moves within the bound, and one near it."""
    assert max(moves) <= bound * (1 + 1e-12)
    assert max(moves) >= attained * bound


# Sensitivities.


def test_a_replaced_row_moves_the_weighted_pair_by_at_most_what_is_claimed():
    rng = np.random.default_rng(1)
    radius = 1.7
    for weight in (0.3, 1.0, 1.7):
        moves = []
        for cosine in np.linspace(-1, 1, 401):  # the worst angle depends on the weight
            x = radius * np.array([1.0, 0.0])
            v = radius * np.array([cosine, math.sqrt(1 - cosine**2)])
            gram = np.outer(x, x) - np.outer(v, v)
            moves.append(math.hypot(np.linalg.norm(gram), np.linalg.norm(weight * (x + v))))
        for x, v, y, s in neighbours(rng, radius):
            gram = np.outer(x, x) - np.outer(v, v)
            moves.append(math.hypot(np.linalg.norm(gram), weight * np.linalg.norm(x * y - v * s)))
        largest(moves, adassp.pair_sensitivity(radius, weight), attained=0.9999)


def test_a_replaced_row_moves_grams_eigenvalues_and_residual_sums_by_at_most_what_is_claimed():
    rng = np.random.default_rng(2)
    design, y = rows(6)
    theta = np.array([0.5, -1.0, 0.2, 0.4])
    grams = []
    eigenvalues = []
    residuals = []
    gradients = []
    for x, v, _, _ in neighbours(rng, 2.0):
        one, other = (np.vstack([design, row]) for row in (x, v))
        responses = np.append(y, rng.choice([-1.0, 1.0]))
        grams.append(np.linalg.norm(one.T @ one - other.T @ other))
        least = [np.linalg.eigvalsh(each.T @ each)[0] for each in (one, other)]
        eigenvalues.append(abs(least[0] - least[1]))
        pair = [Holders((each,), (responses,)) for each in (one, other)]
        sums = [each.residual_sum(theta, 0.3) for each in pair]
        residuals.append(np.linalg.norm(sums[0] - sums[1]))
        clipped = [gradient_descent.clipped(each, responses, theta, 0.4) for each in (one, other)]
        gradients.append(np.linalg.norm(clipped[0] - clipped[1]))
    largest(grams, math.sqrt(2) * 4.0)
    largest(residuals, 2 * 2.0 * 0.3)
    largest(gradients, 2 * 0.4)
    largest(eigenvalues, 4.0, attained=0.3)


# Noise: squares of sensitivity over noise add up to μ².


def test_adassp_spends_its_budget_and_no_more():
    spy = Spy(1)
    holders = held(1000)
    adassp.fit(spy, holders, BUDGET, adassp.FIXED)
    gram, moment, eigenvalue = spy.asked
    weight = 2.0
    assert moment * weight == pytest.approx(gram)
    pair = adassp.pair_sensitivity(2.0, weight)
    assert (pair / gram) ** 2 + (4.0 / eigenvalue) ** 2 == pytest.approx(BUDGET.mu**2)


@pytest.mark.parametrize("settings", [boosted_adassp.FIXED, boosted_adassp.Settings(3, 0.25, 0.6)])
def test_boosted_adassp_spends_its_budget_and_no_more(settings):
    spy = Spy(1)
    boosted_adassp.fit(spy, held(1000), BUDGET, settings)
    gram, eigenvalue, *rounds = spy.asked
    assert len(rounds) == settings.rounds
    radius = 2.0 * settings.radius
    spent = (math.sqrt(2) * radius**2 / gram) ** 2 + (radius**2 / eigenvalue) ** 2
    spent += sum((2 * radius * settings.clip / sd) ** 2 for sd in rounds)
    assert spent == pytest.approx(BUDGET.mu**2)


def test_gradient_descent_spends_its_budget_and_no_more():
    spy = Spy(1)
    settings = gradient_descent.FIXED
    gradient_descent.fit(spy, held(1000), BUDGET, settings)
    assert len(spy.asked) == settings.steps
    bound = settings.clip * 2.0
    assert sum((2 * bound / sd) ** 2 for sd in spy.asked) == pytest.approx(BUDGET.mu**2)


def test_noise_of_holders_meets_unless_they_add_up_securely():
    for secure_sum, factor in ((False, math.sqrt(10)), (True, 1.0)):
        spy = Spy(1)
        holders = held(1000, 10, secure_sum=secure_sum)
        gradient_descent.fit(spy, holders, BUDGET, gradient_descent.FIXED)
        single = Spy(1)
        gradient_descent.fit(single, held(1000), BUDGET, gradient_descent.FIXED)
        assert spy.asked == pytest.approx([factor * sd for sd in single.asked])


def test_symmetric_noise_has_half_the_variance_beside_the_diagonal():
    rng = np.random.default_rng(3)
    holders = held(100)
    drawn = np.array([holders.symmetric_noise(rng, 2.0) for _ in range(20_000)])
    assert np.array_equal(drawn, drawn.transpose(0, 2, 1))
    variances = drawn.var(axis=0)
    expected = np.full((4, 4), 2.0) + 2 * np.eye(4)
    # A variance of 20,000 draws errs by 1 %: six standard errors, below 1e-7 for ten entries.
    assert variances == pytest.approx(expected, rel=0.06)


def test_rows_are_cut_and_not_lengthened():
    design, _ = rows(50)
    lengths = np.linalg.norm(cut(design, 1.2), axis=1)
    assert lengths.max() <= 1.2 * (1 + 1e-12)
    short = np.linalg.norm(design, axis=1) < 1.2
    assert np.array_equal(cut(design, 1.2)[short], design[short])


# Iterative Hessian mixing.


def test_a_sketch_that_tells_nothing_leaves_the_gaussian_mechanism():
    got = iterative_hessian_mixing.delta_of(1.0, 1e9, 300, 0.4)
    assert got == pytest.approx(delta_at(1.0, 0.4), rel=1e-6)


def loss_of(rng, gram, other, count, size):
    """Privacy losses of `size` rows N(0, gram) against N(0, other)."""
    whitened = np.linalg.solve(np.linalg.cholesky(gram), other)
    whitened = np.linalg.solve(np.linalg.cholesky(gram), whitened.T)
    kappas, _ = np.linalg.eigh(whitened)
    drawn = rng.chisquare(size, (count, len(kappas)))
    return 0.5 * (size * np.log(kappas) + drawn * (1 / kappas - 1)).sum(axis=1)


def test_delta_of_a_sketch_is_that_of_the_worst_neighbours_and_no_neighbours_are_worse():
    """Monte Carlo of the sketch's own law, Gaussian mechanism included; 1e-6 to fail by chance."""
    rng = np.random.default_rng(4)
    gamma = 12.0
    size = 60
    mu = 0.5
    epsilon = 1.0
    claimed = iterative_hessian_mixing.delta_of(epsilon, gamma, size, mu)
    gram = np.diag([gamma, gamma, 5 * gamma])
    cases = {
        "worst": (np.eye(3)[0], np.eye(3)[1]),
        "same direction": (np.eye(3)[0], 0.3 * np.eye(3)[0]),
        "slanted": (np.array([0.8, 0.6, 0.0]), np.array([0.6, 0.8, 0.0])),
        "inner": (np.eye(3)[2], np.eye(3)[1]),
    }
    for name, (u, v) in cases.items():
        other = gram - np.outer(u, u) + np.outer(v, v)
        losses = loss_of(rng, gram, other, 200_000, size)
        losses += rng.normal(mu**2 / 2, mu, len(losses))
        excess = np.maximum(0.0, -np.expm1(epsilon - losses))
        error = 5 * excess.std() / math.sqrt(len(excess))
        if name == "worst":
            assert abs(excess.mean() - claimed) <= error
        else:
            assert excess.mean() <= claimed + error


def test_mixing_spends_its_budget_and_no_more():
    settings = iterative_hessian_mixing.FIXED
    spy = Spy(1)
    holders = held(1000)
    iterative_hessian_mixing.fit(spy, holders, BUDGET, settings)
    assert len(spy.asked) == settings.rounds
    gradients = math.sqrt(sum((2 * 2.0 / sd) ** 2 for sd in spy.asked))
    size = iterative_hessian_mixing.sketch_rows(4, BUDGET, settings)
    gamma = iterative_hessian_mixing.eigenvalue_floor(
        BUDGET.epsilon, BUDGET.delta, gradients, size, settings.rounds
    )
    together = math.hypot(gradients, math.sqrt(size) / gamma)
    spent = iterative_hessian_mixing.delta_of(1.0, gamma, size * settings.rounds, together)
    assert 0.99 * 0.9e-6 <= spent <= 0.9e-6
    assert iterative_hessian_mixing.delta_of(1.0, gamma * 0.99, size * 3, together) > 0.9e-6


def test_padding_fills_the_smallest_eigenvalue_up():
    rng = np.random.default_rng(5)
    loose = Budget(1.0, 0.5)  # so that failures, at most a twentieth, can be counted
    filled = [
        3.0 + iterative_hessian_mixing.padding(rng, 3.0, 40.0, 100, loose) for _ in range(5000)
    ]
    below = np.mean(np.array(filled) < 40.0)
    assert below <= 0.05 + 5 * math.sqrt(0.05 * 0.95 / 5000)
    assert iterative_hessian_mixing.padding(rng, 1e6, 40.0, 100, BUDGET) == 0.0


def test_a_sketch_has_the_law_of_a_gaussian_matrix_times_the_rows():
    rng = np.random.default_rng(6)
    design, _ = rows(40)
    gram = design.T @ design
    direct = []
    for _ in range(2000):
        mixed = rng.standard_normal((30, 40)) @ design
        direct.append(mixed.T @ mixed / 30)
    drawn = [iterative_hessian_mixing.sketch(rng, gram, 30) for _ in range(2000)]
    for each in (direct, drawn):
        error = np.std(each, axis=0) / math.sqrt(2000)
        assert (np.abs(np.mean(each, axis=0) - gram) <= 6 * error).all()
    assert np.std(drawn, axis=0) == pytest.approx(np.std(direct, axis=0), rel=0.12)


# TukeyEM.


def test_one_changed_model_changes_the_distance_by_at_most_one():
    rng = np.random.default_rng(7)
    seen = set()
    for _ in range(200):
        models = rng.standard_normal((200, 2)) * rng.uniform(0.1, 3)
        changed = models.copy()
        changed[rng.integers(200)] = rng.choice([rng.standard_normal(2) * 100, models[0]])
        distances = []
        for each in (models, changed):
            volumes = tukey_em.log_volumes(np.sort(each, axis=0))
            distances.append(tukey_em.distance(volumes, 50, 2.0, 1e-3))
        seen.add(distances[0])
        assert abs(distances[0] - distances[1]) <= 1
    assert len(seen) > 3


def depths_of(models, points):
    """Depth of points among one-dimensional models."""
    below = (models[None, :] <= points[:, None]).sum(axis=1)
    return np.minimum(below, (models[None, :] >= points[:, None]).sum(axis=1))


def density(models, points, widths, depth, epsilon):
    depths = depths_of(models, points)
    weights = np.where(depths >= depth, np.exp(epsilon * depths / 2), 0.0)
    return weights / (weights * widths).sum()


def test_safe_models_are_private_against_every_changed_one():
    """δ of the restricted exponential mechanism between neighbours, integrated exactly."""
    rng = np.random.default_rng(8)
    epsilon = 2.0
    delta = 1e-2
    checked = 0
    for _ in range(60):
        models = rng.standard_normal(80) * rng.choice([0.2, 1.0], 80)
        volumes = tukey_em.log_volumes(np.sort(models)[:, None])
        if tukey_em.distance(volumes, 20, epsilon, delta) < 0:
            continue
        checked += 1
        changed = models.copy()
        changed[rng.choice([models.argmin(), np.abs(models).argmin(), 3])] = rng.choice(
            [-9, 0.0, 9]
        )
        edges = np.unique(np.concatenate([models, changed]))
        points = (edges[1:] + edges[:-1]) / 2
        widths = np.diff(edges)
        one = density(models, points, widths, 20, epsilon)
        other = density(changed, points, widths, 20, epsilon)
        for p, q in ((one, other), (other, one)):
            assert (np.maximum(0, p - math.exp(epsilon) * q) * widths).sum() <= delta
    assert checked > 20


def test_draws_have_the_density_of_their_depth():
    rng = np.random.default_rng(9)
    models = np.sort(rng.standard_normal(24))
    drawn = np.array([tukey_em.draw(rng, models[:, None], 6, 1.0)[0] for _ in range(20_000)])
    widths = np.diff(models)
    points = (models[1:] + models[:-1]) / 2
    expected = density(models, points, widths, 6, 1.0) * widths
    shares = np.histogram(drawn, models)[0] / len(drawn)
    error = np.sqrt(expected * (1 - expected) / len(drawn))
    assert (np.abs(shares - expected) <= 5.5 * error + 1e-12).all()


def test_an_unsafe_table_is_refused():
    rng = np.random.default_rng(10)
    spread = rng.standard_cauchy((100, 3))
    assert tukey_em.answer(rng, spread, BUDGET) is None
    assert tukey_em.answer(rng, spread[:8], BUDGET) is None
    tight = rng.standard_normal((1000, 3))
    assert tukey_em.answer(rng, tight, Budget(3.0, 1e-6)) is not None


# BinAgg.


def test_pure_privacy_is_turned_into_gaussian_privacy():
    for mu in (0.05, 0.3, 1.5):
        epsilon = binagg.pure_epsilon(mu)
        alpha = np.linspace(1e-6, 1 - 1e-6, 999)
        tradeoff = np.maximum(1 - math.exp(epsilon) * alpha, math.exp(-epsilon) * (1 - alpha))
        gaussian = ndtr(-ndtri(alpha) - mu)
        assert (tradeoff >= gaussian - 1e-12).all()
        assert (tradeoff - gaussian).min() < 1e-3 * mu


def test_the_tree_is_private_however_deep_it_grows():
    """Log ratios of all decisions along the path of a removed row, for many paths of counts."""
    rng = np.random.default_rng(11)
    epsilon = 0.8
    scale = 3 / (epsilon / 2)
    decay = scale * math.log(2)
    highest = 0.0
    for _ in range(300):
        depth = rng.integers(1, 40)
        counts = np.sort(rng.integers(1, rng.choice([5, 50, 500]), depth))[::-1]
        levels = decay * np.arange(depth)
        with_row, without = (
            np.maximum(each - levels, -decay) / scale for each in (counts, counts - 1)
        )
        ratios = laplace.logsf(-with_row) - laplace.logsf(-without)
        ratios[-1] = laplace.logcdf(-with_row[-1]) - laplace.logcdf(-without[-1])
        highest = max(highest, float(np.abs(ratios).sum()))
    assert 0.3 * epsilon / 2 < highest <= epsilon / 2


def test_leaves_part_the_rows():
    design, _ = rows(3000)
    boxes = binagg.tree(np.random.default_rng(12), design[:, 1:], 1.0, 0.0)
    assert len(boxes) >= 5
    assert np.array_equal(np.sort(np.concatenate([box.rows for box in boxes])), np.arange(3000))
    for box in boxes:
        inside = design[box.rows, 1:]
        assert ((box.low <= inside) & (inside <= box.high)).all()


def test_a_replaced_row_moves_sums_of_boxes_by_at_most_what_is_claimed():
    rng = np.random.default_rng(13)
    design, _ = rows(500)
    for epsilon in (1e-3, 3.0):
        boxes = binagg.tree(rng, design[:, 1:], epsilon, 0.0)
        reach = binagg.reach(boxes)
        low = np.array([box.low for box in boxes])
        high = np.array([box.high for box in boxes])
        moves = []
        for one in range(len(boxes)):
            for other in (one, int(rng.integers(len(boxes)))):
                corners = rng.choice([0.0, 1.0], (2, 3))
                leaves = low[one] + corners[0] * (high[one] - low[one])
                enters = low[other] + corners[1] * (high[other] - low[other])
                if one == other:
                    moves.append(np.linalg.norm((leaves - enters) / reach[one]))
                else:
                    parts = np.concatenate([leaves / reach[one], enters / reach[other]])
                    moves.append(np.linalg.norm(parts))
        largest(moves, binagg.sum_sensitivity(boxes), attained=0.5)


def test_binagg_spends_its_budget_and_no_more():
    ratios = np.array(binagg.FIXED.ratios)
    parts = BUDGET.mu * ratios / np.linalg.norm(ratios)
    assert (parts**2).sum() == pytest.approx(BUDGET.mu**2)
    spy = Spy(2)
    design, y = rows(2000)
    binagg.equations(spy, design, y, BUDGET.mu, binagg.FIXED)
    [responses] = spy.asked
    assert responses == pytest.approx(2 / parts[3])


# As ε grows.


@pytest.mark.parametrize(
    ("fit", "settings", "near"),
    [
        (adassp.fit, adassp.FIXED, 0.01),
        (boosted_adassp.fit, boosted_adassp.FIXED, 0.01),
        # Three rounds leave what the sketches err by, to the third power.
        (iterative_hessian_mixing.fit, iterative_hessian_mixing.Settings(rounds=12), 0.01),
        (iterative_hessian_mixing.fit, iterative_hessian_mixing.FIXED, 0.05),
        # A hundred steps have not arrived, and clipping bends what they lead to.
        (gradient_descent.fit, gradient_descent.Settings(300, 1.0, 2.0), 0.01),
    ],
)
@pytest.mark.parametrize(("holders", "secure_sum"), [(1, False), (4, False), (4, True)])
def test_without_noise_it_is_least_squares(fit, settings, near, holders, secure_sum):
    rows_held = held(4000, holders, secure_sum=secure_sum)
    line = fit(np.random.default_rng(14), rows_held, GENEROUS, settings)
    assert line.theta == pytest.approx(least_squares(rows_held), abs=near)


@pytest.mark.parametrize("fit", [binagg.fit, tukey_em.fit])
@pytest.mark.parametrize("holders", [1, 4])
def test_with_little_noise_other_estimates_agree_on_a_straight_line(fit, holders):
    """Weighted sums over boxes, a point deep among batches' answers: neither is least squares."""
    rows_held = held(20_000, holders)
    settings = binagg.FIXED if fit is binagg.fit else tukey_em.FIXED
    line = fit(np.random.default_rng(14), rows_held, Budget(100.0, 1e-6), settings)
    assert line.theta == pytest.approx(least_squares(rows_held), abs=0.03)
