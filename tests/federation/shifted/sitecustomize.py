"""A clock that is wrong by TEST_CLOCK_AHEAD seconds, for every Python process that finds this file.

Flower's and Tacit's time of day are shifted, and nothing that waits is.
"""

import os
import sys
import time

AHEAD = float(os.environ.get("TEST_CLOCK_AHEAD", "0"))
if AHEAD:
    _right = time.time
    time.time = lambda: _right() + AHEAD

    import datetime as dt

    import flwr.supercore.date

    _right_now = flwr.supercore.date.now

    def _wrong_now():
        return _right_now() + dt.timedelta(seconds=AHEAD)

    for _module in [module for name, module in sys.modules.items() if name.startswith("flwr.")]:
        if getattr(_module, "now", None) is _right_now:
            _module.now = _wrong_now
