"""`sampling`.

Covers `tacit.analyst.methods.sampling`, `tacit.analyst.posterior.convergence`.
"""

import os
import subprocess
import sys
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

import numpy as np
import pytest
from calibration import assert_recovers, standard_error
from numpy.testing import assert_array_equal
from scipy import stats
from simulated import evidence_of

from tacit.analyst.methods import fixed_s, method_named, sampling
from tacit.analyst.methods.method import Settings
from tacit.analyst.methods.normal_x import metropolis as normal_x
from tacit.analyst.methods.sampling import (
    adapt,
    double_precision,
    gains,
    jax,
    jnp,
    metropolis,
    random,
    run,
)
from tacit.analyst.prior import Prior

pytestmark = pytest.mark.xdist_group("samplers")  # one process compiles what these files share

FALSE_ALARM = 1e-6


class ToyState(NamedTuple):
    theta: jax.Array
    noise_variance: jax.Array  # reports the step size, so that draws show the adaptation


class ToyInfo(NamedTuple):
    acceptance: jax.Array


class ToyProblem(NamedTuple):
    mean: jax.Array


@dataclass(frozen=True)
class Toy:
    """Random-walk Metropolis for N(mean, 1)."""

    blocks: ClassVar[tuple[str, ...]] = ("walk",)

    def init(self, key, problem):
        return ToyState(problem.mean + 10 * random.normal(key, (1,)), jnp.ones(()))

    def step(self, key, state, problem, gain):
        key_walk, key_accept = random.split(key)
        proposed = state.theta + state.noise_variance * random.normal(key_walk, (1,))
        ratio = ((state.theta - problem.mean) ** 2 - (proposed - problem.mean) ** 2)[0] / 2
        accepted, acceptance = metropolis(random.uniform(key_accept), ratio)
        step = jnp.exp(adapt(jnp.log(state.noise_variance), acceptance, 0.44, gain))
        theta = jnp.where(accepted, proposed, state.theta)
        return ToyState(theta, jnp.where(gain > 0, step, state.noise_variance)), ToyInfo(
            acceptance[None]
        )


TOY = ToyProblem(np.array([3.0]))


def test_draws_have_their_shapes_and_recover_the_target():
    draws = run(Toy(), TOY, Settings(chains=3, draws=5000, warmup=300))
    assert draws.theta.shape == (3, 5000, 1)
    assert draws.noise_variance.shape == (3, 5000)
    assert draws.theta.dtype == np.float64
    assert_recovers(draws.theta[..., 0], 3.0)
    assert_recovers((draws.theta[..., 0] - 3.0) ** 2, 1.0)


def test_adaptation_reaches_its_target_and_ends_with_warm_up():
    draws = run(Toy(), TOY, Settings(chains=3, draws=700, warmup=500))
    assert_array_equal(draws.noise_variance, draws.noise_variance[:, :1] + np.zeros(700))
    assert not np.any(draws.noise_variance[:, 0] == 1.0)
    assert np.all(np.abs(draws.acceptance["walk"] - 0.44) < 0.15)


def test_gains_fall_in_warm_up_and_are_zero_afterwards():
    schedule = gains(30, 50)
    assert np.all(np.diff(schedule[:30]) < 0)
    assert np.all(schedule[:30] > 0)
    assert_array_equal(schedule[30:], np.zeros(20))


def test_a_longer_run_begins_with_the_shorter_one():
    """The length of the chunks, which differs here, changes no draw."""
    short, long = (
        run(Toy(), TOY, Settings(draws=draws, warmup=100, seed=8)) for draws in (150, 900)
    )
    assert_array_equal(short.theta, long.theta[:, :150])


def test_seeds_and_chains_differ():
    first, second = (run(Toy(), TOY, Settings(draws=50, warmup=10, seed=seed)) for seed in (0, 1))
    assert not np.any(first.theta == second.theta)
    assert len(np.unique(first.theta[:, -1])) == 4


def test_progress_counts_up_to_the_total():
    reports = []
    run(Toy(), TOY, Settings(draws=901, warmup=100, on_progress=reports.append))
    done = [report.done for report in reports]
    assert 20 <= len(done) <= 50
    assert done == sorted(done)
    assert done[-1] == reports[0].total == 1001
    assert all(0 <= report.acceptance["walk"] <= 1 for report in reports)


def test_warm_up_may_be_absent():
    assert run(Toy(), TOY, Settings(draws=3, warmup=0)).theta.shape == (4, 3, 1)


def test_the_users_precision_is_left_alone():
    before = jax.config.jax_enable_x64
    run(Toy(), TOY, Settings(draws=10, warmup=10))
    assert jax.config.jax_enable_x64 == before
    assert jnp.ones(1).dtype == (jnp.float64 if before else jnp.float32)


def test_a_ratio_that_is_no_number_rejects():
    accepted, acceptance = metropolis(jnp.array([0.5, 0.5, 0.5]), jnp.array([jnp.nan, 1.0, -5.0]))
    assert_array_equal(accepted, [False, True, False])
    assert_array_equal(acceptance, jnp.exp(jnp.array([-jnp.inf, 0.0, -5.0])))


def run_python(code: str, **environment: str) -> str:
    command = [sys.executable, "-c", code]
    return subprocess.run(
        command, env=os.environ | environment, check=True, capture_output=True, text=True
    ).stdout.strip()


def test_a_missing_jax_names_the_extra():
    code = """import sys; sys.modules["jax"] = None
from tacit.analyst.methods import method_named
from tacit.errors import MethodError
try: method_named("fixed-s")
except MethodError as error: print(error)"""
    assert run_python(code).endswith("pip install 'tacit-dp[sampling]'")


@pytest.mark.parametrize("configured", [False, True])
def test_compilations_are_kept_where_the_user_says(tmp_path, configured):
    code = (
        "from tacit.analyst.methods import sampling; sampling.keep_compilations(); "
        "print(sampling.jax.config.jax_compilation_cache_dir)"
    )
    environment = {"XDG_CACHE_HOME": str(tmp_path)} | (
        {"JAX_COMPILATION_CACHE_DIR": "/mine"} if configured else {}
    )
    assert run_python(code, **environment) == (
        "/mine" if configured else str(tmp_path / "tacit" / "jax")
    )


# Every kernel of ours.

PRIOR = replace(Prior.weak(2), shape=3.0, rate=0.5)
KERNELS = {
    "fixed-s": (fixed_s.FixedS(), fixed_s.problem_of),
    "normal-x": (normal_x.NormalX(), normal_x.problem_of),
}
SETTINGS = Settings(draws=1536, warmup=512, seed=7)
TUNING = ("log_step", "log_spread")


@pytest.mark.parametrize("name", KERNELS)
def test_a_seed_fixes_the_chain(name):
    first, second = (method_named(name).fit(evidence_of(), PRIOR, SETTINGS) for _ in range(2))
    assert_array_equal(first.theta, second.theta)
    assert_array_equal(first.noise_variance, second.noise_variance)


@pytest.mark.parametrize("name", KERNELS)
def test_the_order_of_holders_does_not_matter(name):
    evidence, order = evidence_of(), [2, 0, 1]
    arrays = ("grams", "moments", "gram_sd", "off_diagonal_sd", "moment_sd", "counts")
    permuted = replace(evidence, **{array: getattr(evidence, array)[order] for array in arrays})
    one, other = (method_named(name).fit(each, PRIOR, SETTINGS) for each in (evidence, permuted))
    pairs = [
        (one.theta[..., 0], other.theta[..., 0]),
        (one.theta[..., 1], other.theta[..., 1]),
        (one.noise_variance, other.noise_variance),
    ]
    for a, b in pairs:
        error = abs(a.mean() - b.mean()) / np.hypot(standard_error(a), standard_error(b))
        assert error < stats.norm.isf(FALSE_ALARM / 2)


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("gain", [0.0, 1.0])
def test_tuning_moves_with_the_gain_alone(name, gain):
    kernel, problem_of = KERNELS[name]
    with double_precision():
        problem = problem_of(evidence_of(), PRIOR)
        keys, before = sampling.start(kernel, 4, random.key(0), problem)
        after, _ = sampling.advance(kernel, (keys, 0, np.full(64, gain)), before, problem)
    same = [
        bool(jnp.all(getattr(before, part) == getattr(after, part)))
        for part in TUNING
        if hasattr(before, part)
    ]
    assert same == [gain == 0.0] * len(same)


@pytest.mark.parametrize("name", KERNELS)
def test_starts_are_wider_apart_than_the_posterior(name):
    kernel, problem_of = KERNELS[name]
    draws = method_named(name).fit(evidence_of(), PRIOR, SETTINGS)
    with double_precision():
        _, states = sampling.start(kernel, 500, random.key(0), problem_of(evidence_of(), PRIOR))
    assert (
        np.log(np.asarray(states.noise_variance)).std() > 1.5 * np.log(draws.noise_variance).std()
    )
