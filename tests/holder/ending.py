"""What may befall a worker, for test_pieces.py; a worker imports it by name."""

import os
import signal
import sys

from tacit.holder.statistics import statistics_of

QUOTED = "Mrs Brown, 1234.5"


def killed(study, batches, **others):
    """Add up, but be killed on the way where this is a worker with rows to read."""
    first = next(iter(batches), None)
    if first is not None:
        os.kill(os.getpid(), signal.SIGKILL)
    return statistics_of(study, iter(()), **others)


def chatty(study, batches, **others):
    """Add up, and print as a library might."""
    sys.stdout.write(QUOTED)
    sys.stdout.flush()
    os.write(1, QUOTED.encode())
    return statistics_of(study, batches, **others)
