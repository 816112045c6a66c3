"""Link: how the SuperLink is started, and what it keeps of sites whose clocks are wrong."""

import contextlib
import json
import logging
import time
from pathlib import Path

from tacit.federation.clock import CLOCK_LIMIT
from tacit.files import write_whole

LOG = logging.getLogger("tacit.federation")
MOST_KEPT = 1000
LONGEST_KEY = 1000
"""Letters of a public key: anybody may send something longer, and no site has it."""
_FILE = "clocks.json"
_PAUSE = 10.0
"""Seconds within which the same is not noted twice."""
_noted: dict[str, float] = {}


def superlink_options(folder: Path, state: Path, port: int) -> list[str]:
    """What Flower's SuperLink is told: loopback, TLS, keys of sites, and nothing to install."""
    return [
        *("--host", "127.0.0.1"),
        *("--port", str(port)),
        *("--ssl-ca-certfile", str(folder / "ca.crt")),
        *("--ssl-certfile", str(folder / "superlink.crt")),
        *("--ssl-keyfile", str(folder / "superlink.key")),
        "--enable-supernode-auth",
        *("--database", str(state / "superlink.db")),
        "--disable-runtime-dependency-installation",
    ]


def note_clock(state: Path, key: str, seconds: float) -> None:
    """Keep that a site's clock was too far off; anybody may claim a key, so it is only a hint."""
    moment = time.monotonic()
    if moment - _noted.get(key, -_PAUSE) < _PAUSE or len(_noted) >= MOST_KEPT:
        return
    if len(key) > LONGEST_KEY:
        return
    _noted[key] = moment
    LOG.warning(
        "a SuperNode is turned away: its clock is %.0f seconds off, and at most %.0f are tolerated",
        seconds,
        CLOCK_LIMIT,
    )
    kept = clocks(state) | {key.strip(): {"ahead": round(seconds), "at": time.time()}}
    with contextlib.suppress(OSError):
        write_whole(state / _FILE, json.dumps(kept) + "\n")


def clocks(state: Path) -> dict[str, dict[str, float]]:
    """Clocks that were too far off, by the public key of the SuperNode."""
    try:
        kept = json.loads((state / _FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return kept if isinstance(kept, dict) else {}
