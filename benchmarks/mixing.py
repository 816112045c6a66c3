"""Mixing of `normal-x`: the gradient sampler, with the paper's Metropolis kernel beside it.

Or, by --nuts, with NUTS beside it, or, by --pseudo-marginal, the pseudo-marginal sampler.

Design (Alparslan, Yıldırım and Birbil 2023): n = 100,000 rows over J holders, θ ~ N(0, I), Σ ~
IW(V'V, d + 1), x ~ N(0, Σ), σ² = 1, prior a = 20, b = 0.5, ε = 1, δ = 1/n with exact replace-one
sensitivity; row radius and response bound are the largest in the data, as in the paper. Four chains
of 1,000 warm-up and 1,000 kept draws. Effective sizes and R-hat are the worst over θ and σ²;
seconds are those of a second run, after compilation, on whatever cores there are.

Cells "intercept" are releases of a study whose rows are whole: an intercept and d − 1 features with
means up to ±0.6 and sds about 0.15 in public ranges [−1, 1], ε = 1, δ = 1/n, through the real
mechanism, default prior.

With --nuts: blackjax's NUTS with window adaptation of a diagonal mass matrix (target 0.8) on the
same log-density and coordinates, from the same starts, as many draws. CPU seconds of warm-up and
draws, compiled before; gradients are those of the kept draws, of all chains.

With --pseudo-marginal: in small cells, 8,000 kept draws of both kernels that do without gradients,
since those of a random walk are cheap.

Bars (--check): the gradient sampler converged in every cell (R-hat below 1.01, effective size above
400), and at (10, 5) gives at least 100 effective draws per second, 500 times what the published
code reaches under Octave (0.1 to 0.2).

    python benchmarks/mixing.py [--quick] [--check] [--nuts | --pseudo-marginal]
"""

import os
import time
from dataclasses import replace

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import numpy as np
from frame import Bench, Table
from scipy import stats

from tacit.analyst.collection import collect
from tacit.analyst.evidence import Evidence
from tacit.analyst.methods.method import Settings
from tacit.analyst.methods.normal_x import METHOD
from tacit.analyst.methods.normal_x.frame import Framed, in_frame
from tacit.analyst.methods.normal_x.gradient import JITTER, TRAJECTORY, Hamiltonian, point_at
from tacit.analyst.methods.normal_x.model import draw_theta, problem_of
from tacit.analyst.methods.sampling import advance, double_precision, gains, jax, random, start
from tacit.analyst.posterior.convergence import mixing
from tacit.analyst.posterior.laws import Draws
from tacit.analyst.prior import Prior
from tacit.privacy.gaussian import multiplier
from tacit.privacy.sensitivity import Weights, sensitivity
from tacit.simulation import simulate
from tacit.study import Study

ROWS = 100_000
Cell = tuple[str, int, int]  # design, d, J
CELLS = [
    ("paper", d, holders)
    for d, holders in [(2, 1), (2, 10), (5, 5), (10, 5), (10, 10), (20, 1), (20, 10)]
]
CELLS += [("intercept", d, holders) for d, holders in [(2, 1), (5, 5), (10, 5), (10, 10), (20, 10)]]
QUICK_CELLS = [("paper", 2, 1), ("paper", 5, 5), ("intercept", 5, 5)]
NUTS_CELLS = [("paper", 2, 1), ("paper", 5, 5), ("paper", 10, 5), ("paper", 20, 10)]
MARGINAL_CELLS = [("paper", 2, 1), ("paper", 2, 5), ("paper", 5, 1), ("paper", 5, 5)]
LEAST_RATE = {("paper", 10, 5): 100.0}
CHAINS, WARMUP, KEPT = 4, 1000, 1000


def design(d: int, holders: int, seed: int = 0) -> tuple[Evidence, Prior]:
    """Evidence and prior of the paper's design, noise honestly calibrated, of frobenius shape."""
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(d, d))
    scale = root.T @ root
    covariance = np.atleast_2d(stats.invwishart(d + 1, scale).rvs(random_state=rng))
    x = rng.normal(size=(ROWS, d)) @ np.linalg.cholesky(covariance).T
    y = x @ rng.normal(size=d) + rng.normal(size=ROWS)
    moved = sensitivity(
        float(np.linalg.norm(x, axis=1).max()), float(np.abs(y).max()), Weights(1.0), "replace-one"
    )
    sd = multiplier(1.0, 1 / ROWS) * moved
    parts = list(zip(np.array_split(x, holders), np.array_split(y, holders), strict=True))
    full = rng.normal(size=(holders, d, d))
    one = np.ones(holders)
    evidence = Evidence(
        grams=np.array([rows.T @ rows for rows, _ in parts])
        + sd * (full + full.swapaxes(1, 2)) / 2,
        moments=np.array([rows.T @ response for rows, response in parts])
        + sd * rng.normal(size=(holders, d)),
        gram_sd=sd * one,
        off_diagonal_sd=sd / np.sqrt(2) * one,
        moment_sd=sd * one,
        counts=np.array([float(len(response)) for _, response in parts]),
    )
    return evidence, Prior(np.zeros(d), np.eye(d), 20.0, 0.5, scale, d + 1.0)


def with_intercept(d: int, holders: int, seed: int = 0) -> tuple[Evidence, Prior]:
    """Releases of whole rows whose features lie off the middle of their ranges."""
    rng = np.random.default_rng(seed)
    p = d - 1
    study = Study.from_document(
        {
            "name": "whole rows",
            "epsilon": 1.0,
            "delta": 1 / ROWS,
            "missing": "refuse",
            "response": {"name": "y", "range": [-3.0, 3.0]},
            "features": [{"name": f"x{k}", "range": [-1.0, 1.0]} for k in range(p)],
            "release": {"row_radius": float(np.sqrt(d))},
        }
    )
    root = 0.15 * (np.eye(p) + 0.3 * rng.normal(size=(p, p)) / np.sqrt(max(p, 1)))
    mean = rng.uniform(-0.6, 0.6, size=p)
    theta = rng.normal(size=p) / np.sqrt(max(p, 1))
    x = np.clip(mean + rng.normal(size=(ROWS, p)) @ root.T, -1, 1)
    table = np.column_stack([x, 0.3 + x @ theta + 0.3 * rng.normal(size=ROWS)])
    releases = [
        simulate(study, part, rng, holder=f"h{j}")
        for j, part in enumerate(np.array_split(table, holders))
    ]
    evidence = collect(releases, allow_simulated=True).evidence
    assert evidence.constant  # noqa: S101 - what these cells are about
    return evidence, Prior.weak(d)


DESIGNS = {"paper": design, "intercept": with_intercept}


def worst(theta: np.ndarray, noise_variance: np.ndarray) -> tuple[float, float]:
    """Smallest bulk effective size and largest R-hat over θ and log σ², (chain, draw, …)."""
    both = np.concatenate([theta, np.log(noise_variance)[..., None]], axis=-1)
    mixed = mixing(both)
    return float(mixed.bulk.min()), float(mixed.rhat.max())


def measure(cell: Cell, sampler: str, kept: int = KEPT) -> tuple[float, float, float]:
    """Least effective size, largest R-hat and seconds of a compiled sampler."""
    evidence, prior = DESIGNS[cell[0]](*cell[1:])
    settings = Settings(CHAINS, kept, WARMUP, sampler=sampler)  # type: ignore[arg-type]
    METHOD.fit(evidence, prior, replace(settings, seed=1))
    begin = time.perf_counter()
    draws = METHOD.fit(evidence, prior, settings)
    seconds = time.perf_counter() - begin
    assert isinstance(draws, Draws)  # noqa: S101 - samplers give draws
    return *worst(draws.theta, draws.noise_variance), seconds


COLUMNS = {"design": "<11", "sampler": "<16", "d": "d", "J": "d", "least ESS": ".0f"}
COLUMNS |= {"R-hat": ".4f"}


# NUTS on the same log-density.


@jax.jit
def nuts(
    key: jax.Array, starts: jax.Array, framed: Framed
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """θ, σ² and the number of gradients of every kept draw, (chain, draw, …)."""
    import blackjax

    def density(position: jax.Array) -> jax.Array:
        return point_at(position, framed).log_density

    def chain(key: jax.Array, first: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
        key_warmup, key_draws = random.split(key)
        adapted, _ = blackjax.window_adaptation(blackjax.nuts, density).run(
            key_warmup, first, num_steps=WARMUP
        )
        kernel = blackjax.nuts(density, **adapted.parameters)

        def draw(state, key):  # noqa: ANN001, ANN202
            key_step, key_theta = random.split(key)
            state, info = kernel.step(key_step, state)
            point = point_at(state.position, framed)
            standard = random.normal(key_theta, framed.problem.shift.shape)
            theta = draw_theta(standard, point.regression, framed.problem)
            return state, (
                framed.frame.rotation @ theta,
                point.noise_variance,
                info.num_integration_steps,
            )

        return jax.lax.scan(draw, adapted.state, random.split(key_draws, KEPT))[1]

    return jax.vmap(chain)(random.split(key, len(starts)), starts)


def gradient(
    key: jax.Array, _starts: jax.Array, framed: Framed
) -> tuple[np.ndarray, np.ndarray, float]:
    """The same of our sampler.

    Gradients as their mean, from the step sizes and the law of a trajectory's length.
    """
    kernel = Hamiltonian()
    gain = gains(WARMUP, WARMUP + KEPT)
    keys, states = start(kernel, CHAINS, key, framed)
    states, _ = advance(kernel, (keys, 0, gain[:WARMUP]), states, framed)
    states, trace = advance(kernel, (keys, WARMUP, gain[WARMUP:]), states, framed)
    lengths = TRAJECTORY * (1 + JITTER * np.linspace(-1, 1, 2001))
    steps = np.ceil(lengths / np.exp(np.asarray(states.log_step))[:, None])
    return np.asarray(trace[0]).swapaxes(0, 1), np.asarray(trace[1]).T, float(steps.mean())


def compare(cell: Cell, table: Table) -> None:
    """Our sampler and NUTS in one cell."""
    with double_precision():
        framed = in_frame(problem_of(*DESIGNS[cell[0]](*cell[1:])))
        starts = start(Hamiltonian(), CHAINS, random.key(0), framed)[1].position
        gradient(random.key(1), starts, framed)
        compiled = nuts.lower(random.key(0), starts, framed).compile()
        for name, sampler in (("gradient", gradient), ("nuts", compiled)):
            begin = time.process_time()
            theta, variance, steps = map(np.asarray, sampler(random.key(0), starts, framed))
            seconds = time.process_time() - begin
            gradients = float(steps.mean())
            size, rhat = worst(theta, variance)
            per = size / (CHAINS * KEPT * gradients)
            place = cell[0], name, *cell[1:]
            table.row(*place, size, rhat, seconds, size / seconds, gradients, per)


def main() -> None:
    bench = Bench(__doc__, quick="small cells")
    bench.option("--nuts", action="store_true", help="compare with NUTS instead; there is no bar")
    bench.option("--pseudo-marginal", action="store_true", help="compare with it; there is no bar")
    options = bench.options()
    if options.pseudo_marginal:
        table = bench.table("marginal", COLUMNS | {"seconds": ".1f", "ESS/second": ".1f"})
        for cell in MARGINAL_CELLS[:1] if options.quick else MARGINAL_CELLS:
            for sampler in ("gradient", "metropolis", "pseudo-marginal"):
                kept = KEPT if sampler == "gradient" else 8 * KEPT
                size, rhat, seconds = measure(cell, sampler, kept)
                place = cell[0], sampler, *cell[1:]
                table.row(*place, size, rhat, seconds, size / seconds)
        bench.finish()
    if options.nuts:
        columns = COLUMNS | {"CPU seconds": ".1f", "ESS/CPU second": ".1f"}
        table = bench.table("nuts", columns | {"gradients/draw": ".1f", "ESS/gradient": ".3f"})
        for cell in NUTS_CELLS[:1] if options.quick else NUTS_CELLS:
            compare(cell, table)
        bench.finish()
    table = bench.table("mixing", COLUMNS | {"seconds": ".1f", "ESS/second": ".1f"})
    for cell in QUICK_CELLS if options.quick else CELLS:
        for sampler in ("gradient", "metropolis"):
            size, rhat, seconds = measure(cell, sampler)
            converged = rhat < 1.01 and size > 400
            note = "" if converged else "not converged"
            place = cell[0], sampler, *cell[1:]
            table.row(*place, size, rhat, seconds, size / seconds, note=note)
            if sampler == "gradient":
                rate = LEAST_RATE.get(cell, 0.0)
                bench.bar(f"{cell} converged", met=converged)
                bench.bar(f"{cell} at least {rate:g} a second", met=size / seconds >= rate)
    bench.finish()


if __name__ == "__main__":
    main()
