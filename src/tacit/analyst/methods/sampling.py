r"""The one driver of every sampler: a kernel in, draws out.

A kernel is `init` and `step` on a state that carries θ, σ² and whatever else the model and its
tuning hold. The driver runs many chains of it at once and knows nothing of the model. Rules that a
kernel keeps:

- It is a frozen dataclass and holds no data: everything it conditions on is in `problem`, a
  NamedTuple of arrays, so that new data of the same shape needs no new compilation (a kernel
  without equality would be compiled afresh at every run).
- Its tuning values (log step sizes) live in the state and move only by `gain` times something: the
  gain is positive and falling in warm-up and exactly 0 afterwards, so adaptation ends with warm-up.
- `init` starts chains further apart than the posterior is wide, so that R-hat means something.

Method files take `jax`, `jnp` and `random` from here, so that a missing jax is reported once, as a
`MethodError`.
"""

import os
from contextlib import AbstractContextManager
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from tacit.analyst.methods.method import Draws, SamplerProgress, Settings
from tacit.errors import MethodError

try:
    import jax
    from jax import numpy as jnp
    from jax import random
except ModuleNotFoundError as missing:
    raise MethodError(
        "this method draws its samples with jax, which is not installed: "
        "pip install 'tacit-dp[sampling]'"
    ) from missing

__all__ = [
    "Info",
    "Kernel",
    "State",
    "adapt",
    "double_precision",
    "jax",
    "jnp",
    "metropolis",
    "random",
    "run",
]

CHUNKS = 32
"""Reports of progress per run, about: chunk lengths are powers of two, so that few are ever
compiled."""
FIRST_GAIN_LASTS = 20.0
"""Iterations for which the gain stays near 1."""
GAIN_DECAY = 0.75
"""Exponent of the gain; between 1/2 and 1, as Robbins and Monro (1951) ask."""
COMPILE_SECONDS = 0.1
"""Compilations longer than this are kept on disk."""


class State(Protocol):
    """What the driver reads of a kernel's state."""

    @property
    def theta(self) -> jax.Array:
        """Coefficients, (d,)."""

    @property
    def noise_variance(self) -> jax.Array:
        """σ², ()."""


class Info(Protocol):
    """What the driver reads of a step's report."""

    @property
    def acceptance(self) -> jax.Array:
        """Acceptance probability per block, (len(blocks),)."""


ProblemT_contra = TypeVar("ProblemT_contra", contravariant=True)
StateT = TypeVar("StateT", bound=State)


class Kernel(Protocol[ProblemT_contra, StateT]):
    """A Markov kernel that leaves the posterior of a problem invariant."""

    @property
    def blocks(self) -> tuple[str, ...]:
        """Names of the accept/reject blocks, in the order of `Info.acceptance`."""

    def init(self, key: jax.Array, problem: ProblemT_contra) -> StateT:
        """Overdispersed start of one chain."""

    def step(
        self, key: jax.Array, state: StateT, problem: ProblemT_contra, gain: jax.Array
    ) -> tuple[StateT, Info]:
        """One iteration of one chain."""


def adapt(log_step: jax.Array, acceptance: jax.Array, target: float, gain: jax.Array) -> jax.Array:
    r"""Robbins–Monro: a step size h moves by $g\,(\text{acceptance} - \text{target})$ in log h."""
    return log_step + gain * (acceptance - target)


def metropolis(uniform: jax.Array, log_ratio: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Whether each proposal is accepted, and its acceptance probability.

    A ratio that is not a number rejects. `uniform` on [0, 1) is the randomness: one call draws it
    for all of a step's proposals, since every call costs compile time.
    """
    log_ratio = jnp.where(jnp.isnan(log_ratio), -jnp.inf, log_ratio)
    return jnp.log(uniform) < log_ratio, jnp.exp(jnp.minimum(log_ratio, 0.0))


def gains(warmup: int, total: int) -> NDArray[np.float64]:
    r"""Gain of every iteration: $(1 + t/20)^{-3/4}$ in warm-up, 0 afterwards."""
    t = np.arange(total)
    return np.where(t < warmup, (1 + t / FIRST_GAIN_LASTS) ** -GAIN_DECAY, 0.0)


def double_precision() -> AbstractContextManager[object]:
    """Context in which jax computes in float64; the user's own setting returns afterwards."""
    older = not hasattr(jax, "enable_x64")
    home: Any = import_module("jax.experimental") if older else jax
    context: AbstractContextManager[object] = home.enable_x64(True)  # noqa: FBT003 - its own
    return context


def keep_compilations() -> None:
    """Switch on jax's compilation cache in the user's cache folder, unless there is one already."""
    config: Any = jax.config
    if config.jax_compilation_cache_dir is not None:
        return
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tacit" / "jax"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:  # a home that cannot be written costs time, not the result
        return
    config.update("jax_compilation_cache_dir", str(folder))
    config.update("jax_persistent_cache_min_compile_time_secs", COMPILE_SECONDS)


@partial(jax.jit, static_argnames=("kernel", "chains"))
def start(
    kernel: Kernel[Any, Any], chains: int, key: jax.Array, problem: object
) -> tuple[jax.Array, Any]:
    """Key and state of every chain."""
    key_init, key_steps = random.split(key)
    states = jax.vmap(kernel.init, (0, None))(random.split(key_init, chains), problem)
    return random.split(key_steps, chains), states


@partial(jax.jit, static_argnames="kernel")
def advance(
    kernel: Kernel[Any, Any],
    chunk: "Chunk",
    states: Any,  # noqa: ANN401 - any pytree
    problem: object,
) -> tuple[Any, Any]:
    """Run all chains through one chunk.

    Gives the states and the (iteration, chain, …) trace of θ, σ², acceptance. The key of iteration
    t is a function of the chain and t alone, so the length of a chunk changes no draw.
    """
    keys, first, gain = chunk
    moments = first + jnp.arange(len(gain))
    step_keys = jax.vmap(jax.vmap(random.fold_in, (0, None)), (None, 0))(keys, moments)

    def iteration(states: Any, now: tuple[jax.Array, jax.Array]) -> tuple[Any, Any]:  # noqa: ANN401
        states, info = jax.vmap(kernel.step, (0, 0, None, None))(now[0], states, problem, now[1])
        return states, (states.theta, states.noise_variance, info.acceptance)

    return jax.lax.scan(iteration, states, (step_keys, jnp.asarray(gain)))


Chunk = tuple[jax.Array, int, NDArray[np.float64]]
"""Key per chain, index of the first iteration, gain per iteration."""
Trace = tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]
"""θ, σ², acceptance."""


def run(
    kernel: Kernel[ProblemT_contra, StateT], problem: ProblemT_contra, settings: Settings
) -> Draws:
    """Draws from the posterior of a problem, whose leaves are arrays (NumPy or jax)."""
    keep_compilations()
    total = settings.warmup + settings.draws
    length = 2 ** max(0, round(np.log2(total / CHUNKS)))
    gain = gains(settings.warmup, -(-total // length) * length)
    kept: list[Trace] = []
    with double_precision():
        problem = jax.tree.map(jnp.asarray, problem)
        keys, states = start(kernel, settings.chains, random.key(settings.seed), problem)
        for first in range(0, total, length):
            chunk = (keys, first, gain[first : first + length])
            states, trace = advance(kernel, chunk, states, problem)
            rates = jax.device_get(trace[2])
            after = max(0, settings.warmup - first)
            kept.append(jax.tree.map(lambda part, after=after: np.asarray(part)[after:], trace))
            settings.on_progress(progress(kernel.blocks, rates, min(first + length, total), total))
    return assemble(kernel.blocks, kept, settings.draws)


def progress(
    blocks: tuple[str, ...], acceptance: NDArray[np.float64], done: int, total: int
) -> SamplerProgress:
    """Report with the acceptance rates of the latest chunk, averaged over chains."""
    rates = acceptance.mean(axis=(0, 1)).tolist()
    return SamplerProgress(done=done, total=total, acceptance=dict(zip(blocks, rates, strict=True)))


def assemble(blocks: tuple[str, ...], kept: list[Trace], draws: int) -> Draws:
    """Join the chunks, cut what the last one ran over, and put the chain first."""
    theta, noise_variance, acceptance = (
        np.concatenate(parts)[:draws].swapaxes(0, 1) for parts in zip(*kept, strict=True)
    )
    rates = acceptance.mean(axis=1)
    return Draws(
        theta=theta,
        noise_variance=noise_variance,
        acceptance={block: rates[:, k] for k, block in enumerate(blocks)},
    )
