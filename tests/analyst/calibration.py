r"""Two tests that a kernel samples the posterior it claims: Geweke's joint test and
simulation-based calibration.

Interface. Describe the model that the kernel claims to fit as a `Model` of six pieces:

- `kernel`: what is tested, with `init` and `step` as in `tacit.analyst.sampling`.
- `draw_state(key) -> state`: parameters and latent variables from the PRIOR, as a state of the
  kernel, with tuning values set to something sensible (they stay frozen: the tests call `step` with
  gain 0).
- `draw_problem(key, state) -> problem`: data simulated given the state, packed as the kernel's
  problem.
- `refresh(state, problem) -> state`: recompute what the state caches of the problem (identity where
  it caches nothing).
- `summaries(state) -> (k,)`: scalar functions of the state to test: entries of θ, log σ²,
  log-determinants of Σ, S …
- `mistaken(problem, mistake) -> problem`: the problem that the kernel is shown, right at 0. A test
  that a wrong kernel is noticed passes another `mistake` to the same model: nothing is compiled
  anew for it.

Then `geweke(model, key, replicates, rounds)` and `sbc(model, key, replicates, warmup, draws, thin)`
each give one p-value per test, all uniform for a right kernel. Judge them together with
`smallest(p)`, the Bonferroni p-value, so that the false-alarm rate of one `assert smallest(p) >
1e-4` is 1e-4 at most (and with fixed seeds a test that passes stays so). `assert_recovers(draws,
truth)` compares a mean of draws with a known value, in Monte Carlo standard errors.

Both run all replicates at once (vmap) in float64; pass keys made by `jax.random.key`.

- Geweke (2004): alternate data | state and step(state | data), starting from the prior. Under a
  right kernel every replicate's state keeps the prior law at all times. Each summary is mapped to
  (0, 1) by its prior distribution function, so heavy tails do no harm; the replicates are
  independent, so the error of an average over replicates of averages over rounds is free of
  autocorrelation's pitfalls. Tests the mean and the spread of every mapped summary.
- SBC (Talts et al. 2018): state from the prior, data given it, a chain from `init`; the rank of the
  truth among thinned draws is uniform up to residual autocorrelation. Tests each summary's ranks by
  chi-squared. Tuning adapts in warm-up here.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from arviz_stats.base import array_stats
from scipy import stats

from tacit.analyst.methods.sampling import (
    double_precision,
    gains,
    jax,
    jnp,
    keep_compilations,
    random,
)
from tacit.analyst.posterior.laws import Draws

PRIOR_DRAWS = 100_000


class Model(NamedTuple):
    """A kernel and the joint law it claims to condition; see the module's docstring."""

    kernel: Any
    draw_state: Callable
    draw_problem: Callable
    summaries: Callable
    refresh: Callable = lambda state, _problem: state
    mistaken: Callable = lambda problem, _mistake: problem


def geweke(
    model: Model, key, replicates: int = 1000, rounds: int = 60, *, mistake: float = 0.0
) -> np.ndarray:
    """p-values of the joint test, two per summary: its mean and its spread."""
    keep_compilations()
    with double_precision():
        key_prior, key_chain = random.split(key)
        prior = np.sort(
            np.asarray(
                _prior_summaries(
                    (model.draw_state, model.summaries), random.split(key_prior, PRIOR_DRAWS)
                )
            ),
            axis=0,
        )
        trace = np.asarray(
            _joint_chains(model, rounds, mistake, random.split(key_chain, replicates))
        )  # (replicate, round, k)
    return np.concatenate(
        [_moment_p_values(trace[..., k], prior[:, k]) for k in range(prior.shape[1])]
    )


def sbc(
    model: Model, key, *, replicates: int = 500, warmup: int = 300, draws: int = 63, thin: int = 10
) -> np.ndarray:
    """p-values of rank uniformity, one per summary; `draws` + 1 should be a multiple of 16."""
    keep_compilations()
    with double_precision():
        schedule = (jnp.asarray(gains(warmup, warmup + draws * thin)), warmup, thin)
        ranks = np.asarray(
            _ranks(model, schedule[1:], schedule[0], random.split(key, replicates))
        )  # (replicate, k)
    bins = min(16, draws + 1)
    counts = [np.bincount(column * bins // (draws + 1), minlength=bins) for column in ranks.T]
    return np.array([stats.chisquare(count).pvalue for count in counts])


def smallest(p_values: np.ndarray) -> float:
    """Bonferroni's joint p-value: under a right kernel it is below α with probability α at most."""
    return float(min(1.0, np.min(p_values) * len(p_values)))


def standard_error(draws: np.ndarray) -> float:
    """Monte Carlo standard error of the mean of (chain, draw) draws of a scalar."""
    effective = float(array_stats.ess(draws, chain_axis=0, draw_axis=1, method="mean"))
    return float(draws.std() / np.sqrt(effective))


def assert_recovers(draws: np.ndarray, truth: float, failure_rate: float = 1e-6) -> None:
    """The mean of (chain, draw) draws agrees with a known value; a right sampler fails with
    probability `failure_rate`.
    """
    error = abs(draws.mean() - truth) / standard_error(draws)
    assert error < stats.norm.isf(failure_rate / 2), f"{error:.1f} standard errors from {truth}"


def assert_same_mean(first: np.ndarray, second: np.ndarray, failure_rate: float = 1e-6) -> None:
    """Two runs agree on a mean, (chain, draw) each."""
    error = abs(first.mean() - second.mean()) / np.hypot(
        standard_error(first), standard_error(second)
    )
    assert error < stats.norm.isf(failure_rate / 2), f"{error:.1f} standard errors apart"


def assert_same_posterior(ours: Draws, theirs: Draws) -> None:
    """Two runs agree on means, squares and the product of coefficients, and on log σ²."""
    centre = theirs.mean()
    for power in (1, 2):
        for k in range(len(centre)):
            assert_same_mean(
                (ours.theta[..., k] - centre[k]) ** power,
                (theirs.theta[..., k] - centre[k]) ** power,
            )
        assert_same_mean(
            np.log(ours.noise_variance) ** power, np.log(theirs.noise_variance) ** power
        )
    assert_same_mean(np.prod(ours.theta - centre, axis=-1), np.prod(theirs.theta - centre, axis=-1))


def _moment_p_values(values: np.ndarray, sorted_prior: np.ndarray) -> np.ndarray:
    """z-tests that the prior's distribution function maps values to mean 1/2 and variance 1/12;
    replicates are independent.
    """
    uniform = np.searchsorted(sorted_prior, values) / len(sorted_prior)
    functions = {0.5: uniform, 1 / 12: (uniform - 0.5) ** 2}
    p_values = []
    for expected, function in functions.items():
        averages = function.mean(axis=1)
        error = np.sqrt(averages.var(ddof=1) / len(averages) + function.var() / len(sorted_prior))
        p_values.append(2 * stats.norm.sf(abs(averages.mean() - expected) / error))
    return np.array(p_values)


@partial(jax.jit, static_argnums=0)
def _prior_summaries(law: tuple[Callable, Callable], keys):
    draw_state, summaries = law
    return jax.lax.map(lambda key: summaries(draw_state(key)), keys, batch_size=10_000)


@partial(jax.jit, static_argnums=(0, 1))
def _joint_chains(model: Model, rounds: int, mistake: float, keys):
    def one_round(state, key):
        key_data, key_step = random.split(key)
        problem = model.mistaken(model.draw_problem(key_data, state), mistake)
        state, _ = model.kernel.step(
            key_step, model.refresh(state, problem), problem, jnp.zeros(())
        )
        return state, model.summaries(state)

    def replicate(key):
        key_start, key_rounds = random.split(key)
        return jax.lax.scan(
            one_round, model.draw_state(key_start), random.split(key_rounds, rounds)
        )[1]

    return jax.vmap(replicate)(keys)


@partial(jax.jit, static_argnums=(0, 1))
def _ranks(model: Model, schedule, gain, keys):
    warmup, thin = schedule

    def replicate(key):
        key_truth, key_data, key_start, key_steps = random.split(key, 4)
        truth = model.draw_state(key_truth)
        problem = model.draw_problem(key_data, truth)

        def iterate(state, now):
            state, _ = model.kernel.step(now[0], state, problem, now[1])
            return state, model.summaries(state)

        _, trace = jax.lax.scan(
            iterate,
            model.kernel.init(key_start, problem),
            (random.split(key_steps, len(gain)), gain),
        )
        kept = trace[warmup + thin - 1 :: thin]
        return jnp.sum(kept < model.summaries(truth), axis=0)

    return jax.vmap(replicate)(keys)
