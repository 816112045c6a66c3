"""Float-safe noise: discrete Gaussians on a lattice, drawn exactly from secure randomness.

OpenDP samples the discrete Gaussian by the exact rational algorithm of Canonne, Kamath and Steinke
(2020), so no floating-point artefact of the noise can betray the value under it (Mironov 2012).
There is no seed.
"""

import math
from collections.abc import Callable, Sequence
from functools import cache
from importlib.metadata import version
from itertools import groupby

from tacit.errors import StudyError

MOST_STEPS = 2.0**57
"""Largest sd in lattice steps. OpenDP draws in 64 bits, and cuts off what is more than 2⁶³: noise
of this sd passes that with a probability below 10⁻⁸⁰⁰, noise of 2⁶² every second time."""

Sampler = Callable[[Sequence[float], int], list[int]]
"""Takes standard deviations and the lattice exponent k; gives whole steps of 2**k, one for each."""


@cache
def sampler_name() -> str:
    """What draws the noise, as a release states it."""
    return f"discrete Gaussian, OpenDP {version('opendp')}"


def check_sampler() -> None:
    """Load the sampler and draw once: one that does not work is found before anything is paid."""
    secure_noise([1.0], -32)


def rehearsal(sds: Sequence[float], lattice: int) -> list[int]:
    """Draw once with each of these standard deviations, and give no noise at all."""
    secure_noise(sorted(set(sds)), lattice)
    return [0] * len(sds)


def secure_noise(sds: Sequence[float], lattice: int) -> list[int]:
    """Independent discrete Gaussians of these standard deviations, in steps of 2**`lattice`."""
    noise: list[int] = []
    for sd, group in groupby(sds):
        scale = math.ldexp(sd, -lattice)
        if not scale <= MOST_STEPS:
            raise StudyError(
                "the noise needs over 2**57 steps of its lattice, more than the sampler can draw"
            )
        noise += _measurement(scale)([0] * len(list(group)))
    return noise


def _measurement(scale: float) -> Callable[[list[int]], list[int]]:
    # Not opendp.prelude, which takes a third of a second to import; and this only by who publishes.
    from opendp.domains import atom_domain, vector_domain
    from opendp.measurements import make_gaussian
    from opendp.metrics import l2_distance
    from opendp.mod import enable_features

    enable_features("contrib")
    space = vector_domain(atom_domain(T="i64")), l2_distance(T="f64")
    measurement: Callable[[list[int]], list[int]] = make_gaussian(*space, scale=scale)
    return measurement
