"""How many cores there are to work on, and linear algebra that keeps to its own."""

import math
import os
from contextlib import suppress
from pathlib import Path

QUOTA = Path("/sys/fs/cgroup/cpu.max")
"""Where a container finds how much of how many processors it may use."""
ONE_THREAD = dict.fromkeys(
    ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"), "1"
)
"""What keeps linear algebra to one core, where our own threads or processes use all of them."""


def cores() -> int:
    """The cores that this process may run on, and no more than its container's share of them."""
    has_affinity = hasattr(os, "sched_getaffinity")
    count = len(os.sched_getaffinity(0)) if has_affinity else os.cpu_count() or 1
    with suppress(OSError, ValueError):
        quota, period = QUOTA.read_text(encoding="ascii").split()
        count = min(count, math.ceil(int(quota) / int(period)))
    return max(1, count)


def keep_to_one_thread() -> None:
    """Hold linear algebra to one thread, unless the environment says otherwise.

    It must come before NumPy is loaded. Threads of BLAS under threads of ours wait for each other:
    a fit of 200 columns then takes 25 times the processor on a busy machine.
    """
    for name, one in ONE_THREAD.items():
        os.environ.setdefault(name, one)
