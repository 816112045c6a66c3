"""A clock that is wrong by TEST_CLOCK_AHEAD seconds, for every Python process that finds this file.

Flower's and Tacit's time of day are shifted, and nothing that waits is.
"""

import os
import time

AHEAD = float(os.environ.get("TEST_CLOCK_AHEAD", "0"))
if AHEAD:
    _right = time.time
    time.time = lambda: _right() + AHEAD

    import datetime as dt

    import flwr.supercore.date

    flwr.supercore.date.now = lambda: dt.datetime.now(dt.UTC) + dt.timedelta(seconds=AHEAD)
