"""`normal-x` against an independent program: NumPyro's NUTS on the model written down directly,
nothing collapsed.
"""

from dataclasses import replace

import numpy as np
import pytest
from calibration import standard_error
from simulated import evidence_of

from tacit.analyst.methods import normal_x
from tacit.analyst.methods.method import Settings
from tacit.analyst.methods.sampling import double_precision, jax, jnp
from tacit.analyst.posterior.convergence import Verdict
from tacit.analyst.posterior.posterior import Posterior
from tacit.analyst.prior import Prior
from tacit.study import Study


def reference(evidence, prior, *, seed: int) -> dict[str, np.ndarray]:
    """Draws (chain, draw, …) of θ and log σ² from NumPyro."""
    import numpyro
    from numpyro import distributions as dist
    from numpyro.infer import MCMC, NUTS

    d = evidence.d
    upper = np.triu_indices(d)
    sds = np.where(
        upper[0] == upper[1], evidence.gram_sd[:, None], evidence.off_diagonal_sd[:, None]
    )

    def model() -> None:
        precision = numpyro.sample(
            "precision", dist.Wishart(prior.feature_degrees, jnp.linalg.inv(prior.feature_scale))
        )
        theta = numpyro.sample("theta", dist.MultivariateNormal(prior.mean, prior.covariance))
        variance = numpyro.sample("variance", dist.InverseGamma(prior.shape, prior.rate))
        for j in range(evidence.holders):
            gram = numpyro.sample(
                f"gram{j}", dist.Wishart(evidence.counts[j], jnp.linalg.inv(precision))
            )
            numpyro.sample(
                f"noisy{j}", dist.Normal(gram[upper], sds[j]), obs=evidence.grams[j][upper]
            )
            spread = variance * gram + evidence.moment_sd[j] ** 2 * jnp.eye(d)
            numpyro.sample(
                f"moment{j}", dist.MultivariateNormal(gram @ theta, spread), obs=evidence.moments[j]
            )

    with double_precision():
        chains = MCMC(
            NUTS(model, dense_mass=True, target_accept_prob=0.9),
            num_warmup=400,
            num_samples=500,
            num_chains=4,
            chain_method="vectorized",
            progress_bar=False,
        )
        chains.run(jax.random.key(seed))
        found = chains.get_samples(group_by_chain=True)
    return {"theta": np.asarray(found["theta"]), "variance": np.log(np.asarray(found["variance"]))}


@pytest.mark.slow
def test_normal_x_agrees_with_numpyro():
    """Means of θ_1, θ_2, log σ² and of their squares: six z-tests, false alarm below 1e-5 in all at
    |z| < 5.
    """
    evidence = evidence_of(d=2, holders=2, noise=6.0, rows=30, seed=8)
    prior = replace(Prior.weak(2), released_features=False)
    ours = normal_x.METHOD.fit(
        evidence, prior, Settings(chains=4, draws=6_000, warmup=2_000, seed=2, sampler="metropolis")
    )
    theirs = reference(evidence, prior, seed=1)
    pairs = [(ours.theta[..., k], theirs["theta"][..., k]) for k in range(2)] + [
        (np.log(ours.noise_variance), theirs["variance"])
    ]
    for mine, other in pairs:
        for power in (1, 2):
            error = np.hypot(standard_error(mine**power), standard_error(other**power))
            assert abs((mine**power).mean() - (other**power).mean()) / error < 5


def test_the_papers_kernel_is_reported_as_not_converged():
    """Five or more columns: the published chains had not converged after 10,000 steps, and the
    summary must say so of ours.
    """
    d = 10
    evidence = evidence_of(d=d, holders=5, noise=200.0, rows=2_000, seed=1)
    settings = Settings(chains=4, draws=500, warmup=500, seed=0, sampler="metropolis")
    outcome = normal_x.METHOD.fit(evidence, Prior.weak(d), settings)
    features = [{"name": f"x{k}", "range": [-1, 1]} for k in range(d)]
    response = {"name": "y", "range": [-1, 1]}
    study = Study.from_document(
        {
            "name": "s",
            "epsilon": 1.0,
            "delta": 1e-6,
            "intercept": False,
            "response": response,
            "features": features,
        }
    )
    found = Posterior(study, "normal-x", outcome, ()).summary()
    assert found.verdict in {Verdict.STUCK, Verdict.TOO_SHORT}
    assert "Not converged" in str(found)
