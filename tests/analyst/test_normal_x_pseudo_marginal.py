"""`normal-x`, pseudo-marginal: Geweke's test, calibration, and its draws against the gradient's.

False-alarm rates: 1e-6 per comparison of means, 1e-6 per calibration test (seeds are fixed, so it
was taken once). A wrong kernel must reach 1e-6.

Covers `tacit.analyst.methods.normal_x.pseudo_marginal`.
"""

from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
import pytest
from calibration import Model, assert_recovers, geweke, smallest
from framed import (
    D,
    J,
    draw_data,
    draw_evidence,
    draw_parameters,
    prior_of,
    summaries,
    with_rows_more,
)
from scipy import stats
from simulated import evidence_of

from tacit.analyst.methods.method import Settings
from tacit.analyst.methods.normal_x import gradient, pseudo_marginal
from tacit.analyst.methods.normal_x.pseudo_marginal import (
    WIDER,
    Particles,
    PseudoMarginal,
    log_estimate,
    parameters_at,
    particles_at,
)
from tacit.analyst.methods.sampling import double_precision, jax, jnp, random

FALSE_ALARM = 1e-6  # seeds are fixed, but another processor rounds otherwise
REJECTION = 1e-6
EACH = D * (D + 1) // 2
PARTICLES = 8


class Joint(NamedTuple):
    """θ, σ², Σ and the S_j: what data are drawn from."""

    theta: jax.Array
    noise_variance: jax.Array
    position: jax.Array  # of σ², of Σ, of the S_j


def draw_joint(key):
    return Joint(*draw_parameters(key))


@dataclass(frozen=True)
class AsJoint:
    """The kernel as one that moves S_j too.

    Given the S_j, matrices are one of each S_j and others as they are proposed: the law of matrices
    that the kernel keeps. After its step one of the matrices is chosen by weight.
    """

    kernel: PseudoMarginal

    def step(self, key, joint, framed, gain):
        key_others, key_step, key_choice = random.split(key, 3)
        own = joint.position[1 + EACH :].reshape(1, J, EACH)
        others = WIDER * random.normal(key_others, (PARTICLES - 1, J, EACH))
        blank = self.kernel.init(key_others, framed)
        theta = jnp.linalg.solve(
            blank.theta_factor, framed.frame.rotation.T @ joint.theta - blank.theta_centre
        )
        position = jnp.concatenate([joint.position[: 1 + EACH], theta])
        parameters = parameters_at(blank, position, framed)
        entries = jnp.concatenate([own, others])
        state = blank._replace(
            theta=joint.theta,
            noise_variance=joint.noise_variance,
            position=position,
            particles=particles_at(entries, parameters, framed),
            log_step=jnp.log(0.7),
        )
        state, info = self.kernel.step(key_step, state, framed, gain)
        chosen = random.categorical(key_choice, state.particles.log_weights, axis=0)
        grams = state.particles.entries[chosen, jnp.arange(J)]
        moved = jnp.concatenate([state.position[: 1 + EACH], grams.ravel()])
        return Joint(state.theta, state.noise_variance, moved), info


@dataclass(frozen=True)
class WrongWeights(PseudoMarginal):
    """Distinct from the right kernel, so that jax compiles it anew with the patched function."""


def joint_test(kernel, **settings) -> float:
    with double_precision():
        model = Model(AsJoint(kernel), draw_joint, draw_data, summaries, mistaken=with_rows_more)
        return smallest(geweke(model, random.key(5), **settings))


def test_geweke_and_it_notices_degrees_of_freedom_too_many():
    """Three of them: p = 1e-15, and 0.004 with one."""
    kernel = PseudoMarginal(particles=PARTICLES)
    assert joint_test(kernel, replicates=500, rounds=40) > FALSE_ALARM
    assert joint_test(kernel, replicates=500, rounds=40, mistake=3.0) < REJECTION


@pytest.mark.slow
def test_geweke_at_length():
    kernel = PseudoMarginal(particles=PARTICLES)
    assert joint_test(kernel, replicates=4000, rounds=100) > FALSE_ALARM


@pytest.mark.slow
def test_geweke_notices_a_wrong_weight(monkeypatch):
    right = pseudo_marginal.log_weights

    def wrong(entries, parameters, framed):
        return right(entries, parameters, framed) - 0.5 * jnp.sum(entries**2, -1)

    monkeypatch.setattr(pseudo_marginal, "log_weights", wrong)
    kernel = WrongWeights(particles=PARTICLES)
    assert joint_test(kernel, replicates=500, rounds=40) < REJECTION


def test_the_estimate_is_unbiased():
    """Means over many estimates with 1 and with 16 matrices agree, to 5 standard errors."""
    evidence = evidence_of(d=2, holders=2, noise=6.0)
    with double_precision():
        framed = pseudo_marginal.in_frame(pseudo_marginal.problem_of(evidence, prior_of(2)))
        state = jax.jit(PseudoMarginal().init)(random.key(0), framed)
        parameters = parameters_at(state, jnp.zeros_like(state.position), framed)

        def estimate(key, particles):
            entries = WIDER * random.normal(key, (particles, 2, 3))
            weighted = particles_at(entries, parameters, framed)
            return log_estimate(Particles(*weighted)) - 2 * jnp.log(particles)

        logs = [
            np.asarray(jax.jit(jax.vmap(partial(estimate, particles=m)))(random.split(key, n)))
            for m, n, key in ((1, 8_000, random.key(1)), (16, 500, random.key(16)))
        ]
    scale = logs[1].mean()
    single, many = (np.exp(each - scale) for each in logs)
    error = np.hypot(single.std() / len(single) ** 0.5, many.std() / len(many) ** 0.5)
    assert abs(single.mean() - many.mean()) < 5 * error
    assert error < 0.2 * many.mean()


@pytest.mark.slow
def test_gradient_samples_the_same_posterior():
    evidence = evidence_of(d=2, holders=2, noise=6.0)
    ours = pseudo_marginal.fit(evidence, prior_of(2), Settings(draws=6000, seed=1))
    theirs = gradient.fit(evidence, prior_of(2), Settings(draws=4000, seed=2))
    for k in range(2):
        assert_recovers(ours.theta[..., k], theirs.theta[..., k].mean())
        centre = theirs.theta[..., k].mean()
        spread = theirs.theta[..., k].var()
        assert_recovers((ours.theta[..., k] - centre) ** 2, spread)
    assert_recovers(np.log(ours.noise_variance), np.log(theirs.noise_variance).mean())


@pytest.mark.slow
def test_ranks_of_the_truth_are_uniform():
    """Simulation-based calibration of `fit` as a whole, the choice of the frame included."""
    rng, prior, replicates, draws = np.random.default_rng(9), prior_of(2), 320, 15
    ranks = np.zeros((replicates, 4))
    for r in range(replicates):
        truth, evidence = draw_evidence(rng, prior)
        settings = Settings(chains=1, draws=draws * 160, warmup=1600, seed=r)
        sampled = pseudo_marginal.fit(evidence, prior, settings)
        theta = sampled.theta[0]
        values = np.column_stack([theta, theta.prod(1), sampled.noise_variance[0]])[159::160]
        ranks[r] = np.sum(values < truth, axis=0)
    p_values = [
        stats.chisquare(np.bincount(column.astype(int), minlength=draws + 1)).pvalue
        for column in ranks.T
    ]
    assert smallest(np.array(p_values)) > FALSE_ALARM
