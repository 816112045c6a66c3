"""Float-safe noise: discrete Gaussians on a lattice, drawn exactly from the operating system's secure generator.

OpenDP samples the discrete Gaussian by the exact rational algorithm of Canonne, Kamath and Steinke (2020), so no
floating-point artefact of the noise can betray the value under it (Mironov 2012). There is no seed.
"""

from collections.abc import Callable, Sequence
from functools import cache
from importlib.metadata import version
from itertools import groupby

Sampler = Callable[[Sequence[float], int], list[int]]
"""Takes standard deviations and the lattice exponent k; returns one whole number of lattice steps 2**k for each."""


@cache
def sampler_name() -> str:
    """What draws the noise, as a release states it."""
    return f"discrete Gaussian, OpenDP {version('opendp')}"


def secure_noise(sds: Sequence[float], lattice: int) -> list[int]:
    """Independent discrete Gaussians with the given standard deviations, in steps of 2**`lattice`."""
    noise: list[int] = []
    for sd, group in groupby(sds):
        noise += _measurement(sd * 2.0**-lattice)([0] * len(list(group)))
    return noise


def _measurement(scale: float) -> Callable[[list[int]], list[int]]:
    import opendp.prelude as dp  # noqa: PLC0415  (a third of a second: paid only by who publishes)

    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l2_distance(T="f64")
    measurement: Callable[[list[int]], list[int]] = dp.m.make_gaussian(*space, scale=scale)
    return measurement
