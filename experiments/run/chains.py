"""Many data sets, one chain each, all at once.

The package's kernels under `vmap` over problems of one shape.

The package's own driver runs several chains of one problem; an experiment runs one chain, as the
paper does, of hundreds of problems (runs × ε × calibrations). Half of the iterations are discarded.
Sums of θ and θθ' are kept as the chains go, and every so-manieth draw, so that memory does not grow
with iterations.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from experiments.model.release import CALIBRATIONS, Calibration, Form
from experiments.run.published_chains import (
    PublishedNormalX,
    PublishedSheldon,
    sheldon_started,
    started_of,
)
from tacit.analyst.evidence import Evidence
from tacit.analyst.methods import bernstein_sheldon, fixed_s
from tacit.analyst.methods.normal_x import gradient as normal_x_gradient
from tacit.analyst.methods.normal_x import metropolis as normal_x
from tacit.analyst.methods.normal_x import model
from tacit.analyst.methods.normal_x.frame import in_frame
from tacit.analyst.methods.sampling import (
    Kernel,
    double_precision,
    gains,
    jax,
    jnp,
    keep_compilations,
    random,
)
from tacit.analyst.prior import Prior

Array = NDArray[np.float64]
REPORTS = 20  # chunks that a run is cut into, about
KEPT = 100  # draws of every chain that are kept; twice this divides the number of iterations


class Unit(NamedTuple):
    """A kernel's problem, and the unit c of its response."""

    problem: Any
    stretch: float = 1.0


@dataclass(frozen=True)
class Sampler:
    """A method that samples: its kernel, its problem, and the release it needs.

    The problem is made from evidence, prior and the largest response, which published chains start
    from. `calibrations` are those under which it is run.
    """

    kernel: Kernel[Any, Any]
    unit: Callable[[Evidence, Prior, float], Unit]
    form: Form = "pair"
    calibrations: tuple[Calibration, ...] = CALIBRATIONS

    def kernel_for(self, plan: "Plan") -> Kernel[Any, Any]:
        """The kernel; that of the published normal-x knows how long the run is."""
        if isinstance(self.kernel, PublishedNormalX):
            return replace(self.kernel, iterations=plan.iterations)
        return self.kernel


def published_only(kernel: Kernel[Any, Any], unit: Callable[..., Unit], form: Form) -> Sampler:
    """A sampler of the published code, which is run on published noise alone."""
    return Sampler(kernel, unit, form, ("as-published",))


SAMPLERS = {
    "fixed-s": Sampler(
        fixed_s.FixedS(), lambda evidence, prior, _: Unit(fixed_s.problem_of(evidence, prior))
    ),
    "normal-x": Sampler(
        normal_x.NormalX(), lambda evidence, prior, _: Unit(model.problem_of(evidence, prior))
    ),
    "bernstein-sheldon": Sampler(
        bernstein_sheldon.BernsteinSheldon(),
        lambda evidence, prior, _: Unit(*bernstein_sheldon.problem_of(evidence, prior)),
        "triple",
    ),
    "normal-x-gradient": Sampler(
        normal_x_gradient.Hamiltonian(),
        lambda evidence, prior, _: Unit(in_frame(model.problem_of(evidence, prior))),
    ),
    "normal-x-published": published_only(
        PublishedNormalX(),
        lambda evidence, prior, bound: Unit(started_of(evidence, prior, bound)),
        "pair",
    ),
    "bernstein-sheldon-published": published_only(
        PublishedSheldon(),
        lambda evidence, prior, bound: Unit(*sheldon_started(evidence, prior, bound)),
        "triple",
    ),
}


@dataclass(frozen=True)
class Plan:
    """How long chains run."""

    iterations: int
    seed: int
    on_progress: Callable[[int], None] = lambda _iterations: (
        None
    )  # iterations done since the last report

    @property
    def thin(self) -> int:
        """Iterations between kept draws: every 50th of 10,000, as in the paper."""
        return self.iterations // (2 * KEPT)


@dataclass(frozen=True)
class Chains:
    """What is kept of B chains."""

    mean: Array  # (B, d): of θ over the second half
    second: Array  # (B, d, d): of θθ'
    thinned: Array  # (B, T, d): every so-manieth θ of the second half
    noise_variance: Array  # (B,): mean of σ²
    acceptance: Array  # (B, blocks)
    seconds: float  # after compilation


def stacked(
    sampler: Sampler,
    evidences: Sequence[Evidence],
    priors: Sequence[Prior],
    bounds: Sequence[float],
) -> tuple[Any, Array]:
    """The problems as one pytree with a leading axis, and their units; `bounds` of responses."""
    with jax.default_device(jax.devices("cpu")[0]):
        units = [sampler.unit(*case) for case in zip(evidences, priors, bounds, strict=True)]
        problems = jax.tree.map(
            lambda *leaves: np.stack([np.asarray(leaf) for leaf in leaves]),
            *(unit.problem for unit in units),
        )
    return problems, np.array([unit.stretch for unit in units])


@partial(jax.jit, static_argnames="kernel")
def start(kernel: Kernel[Any, Any], key: jax.Array, problems: Any) -> tuple[jax.Array, Any]:  # noqa: ANN401 - any pytree
    """Key and state of every chain."""
    key_init, key_steps = random.split(key)
    count = jax.tree.leaves(problems)[0].shape[0]
    return random.split(key_steps, count), jax.vmap(kernel.init)(
        random.split(key_init, count), problems
    )


@partial(jax.jit, static_argnames=("kernel", "thin"))
def advance(
    kernel: Kernel[Any, Any],
    thin: int,
    chunk: Any,  # noqa: ANN401
    carry: Any,  # noqa: ANN401
    problems: Any,  # noqa: ANN401
) -> tuple[Any, jax.Array]:
    """Run all chains through a chunk.

    Gives states and sums, and θ after every `thin` iterations.
    """
    keys, moments, gain, weight = chunk

    def iteration(carry: Any, now: tuple[jax.Array, jax.Array, jax.Array]) -> tuple[Any, None]:  # noqa: ANN401
        states, sums = carry
        moment, gain, weight = now
        step_keys = jax.vmap(random.fold_in, (0, None))(keys, moment)
        states, info = jax.vmap(kernel.step, (0, 0, 0, None))(step_keys, states, problems, gain)
        theta = states.theta
        new = theta, theta[:, :, None] * theta[:, None, :], states.noise_variance, info.acceptance
        return (states, jax.tree.map(lambda total, value: total + weight * value, sums, new)), None

    def block(carry: Any, now: Any) -> tuple[Any, jax.Array]:  # noqa: ANN401
        carry, _ = jax.lax.scan(iteration, carry, now)
        return carry, carry[0].theta

    each = jax.tree.map(lambda part: part.reshape(-1, thin), (moments, gain, weight))
    return jax.lax.scan(block, carry, each)


def sample(sampler: Sampler, problems: Any, stretch: Array, plan: Plan) -> Chains:  # noqa: ANN401 - any pytree
    """One chain of every problem."""
    keep_compilations()
    with double_precision():
        problems = jax.tree.map(jnp.asarray, problems)
        executables = compiled(sampler.kernel_for(plan), problems, plan)
        began = time.perf_counter()
        keys, states = executables[0](random.key(plan.seed), problems)
        carry, kept = (states, sums_like(sampler.kernel, states)), []
        for chunk in chunks_of(plan):
            carry, thinned = executables[len(chunk[0])]((keys, *chunk), carry, problems)
            kept.append(np.asarray(thinned))
            plan.on_progress(len(chunk[0]))
        theta, second, variance, acceptance = (np.asarray(part) for part in carry[1])
    seconds = time.perf_counter() - began
    draws = np.concatenate(kept)[plan.iterations // 2 // plan.thin :].swapaxes(0, 1)
    unit = stretch[:, None]
    return Chains(
        theta / unit,
        second / unit[..., None] ** 2,
        draws / unit[..., None],
        variance / stretch**2,
        acceptance,
        seconds,
    )


def chunks_of(plan: Plan) -> list[tuple[jax.Array, ...]]:
    """Index, gain and weight of every iteration, in chunks of whole thinning intervals."""
    total, half = plan.iterations, plan.iterations // 2
    length = plan.thin * max(1, round(total / plan.thin / REPORTS))
    every = np.arange(total), gains(half, total), (np.arange(total) >= half) / (total - half)
    return [
        tuple(jnp.asarray(part[first : first + length]) for part in every)
        for first in range(0, total, length)
    ]


def sums_like(kernel: Kernel[Any, Any], states: Any) -> tuple[jax.Array, ...]:  # noqa: ANN401 - any pytree
    """Sums of θ, θθ', σ² and acceptance, at zero."""
    count, d = states.theta.shape
    return tuple(
        jnp.zeros(shape)
        for shape in ((count, d), (count, d, d), (count,), (count, len(kernel.blocks)))
    )


def compiled(kernel: Kernel[Any, Any], problems: Any, plan: Plan) -> dict[int, Any]:  # noqa: ANN401 - any pytree
    """What runs chunks of every length that occurs, and under 0 what starts chains.

    `problems` may be shapes alone.
    """
    key = random.key(plan.seed)
    keys, states = jax.eval_shape(partial(start, kernel), key, problems)
    carry = states, sums_like(kernel, states)
    sizes = {len(chunk[0]): chunk for chunk in chunks_of(plan)}
    found = {
        size: advance.lower(kernel, plan.thin, (keys, *chunk), carry, problems).compile()
        for size, chunk in sizes.items()
    }
    return found | {0: start.lower(kernel, key, problems).compile()}


def compile_ahead(sampler: Sampler, problems: Any, count: int, plan: Plan) -> None:  # noqa: ANN401 - any pytree
    """Compile, into the cache, what `sample` needs for so many problems of the shape of these."""
    keep_compilations()
    with double_precision():
        shapes = jax.tree.map(
            lambda leaf: jax.ShapeDtypeStruct((count, *leaf.shape[1:]), leaf.dtype), problems
        )
        compiled(sampler.kernel_for(plan), shapes, plan)
