"""Logs of the federation's services: one JSON object a line, in words that were written before.

    {"at": "2026-03-01T09:30:00Z", "level": "info", "part": "site", "said": "published"}

No line holds a value of the data. What was not foreseen is told by the kind of error and the place
in the program where it arose, never by its text, which could quote a row; `TACIT_DEBUG=1` adds the
whole of it, on the site's own screen.
"""

import json
import logging
import os
import traceback
from datetime import UTC, datetime

PARTS = ("site", "node", "server")


class Line(logging.Formatter):
    """A record as one line of JSON."""

    def __init__(self, part: str) -> None:
        super().__init__()
        self._part = part

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        moment = datetime.fromtimestamp(record.created, UTC)
        fields = {
            "at": moment.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "level": record.levelname.lower(),
            "part": self._part,
            "said": record.getMessage(),
        }
        if record.exc_info and record.exc_info[1] is not None:
            fields |= _error(record.exc_info[1])
        return json.dumps(fields, ensure_ascii=False)


def _error(error: BaseException) -> dict[str, str]:
    """The kind of an error and where it arose."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f"{os.path.basename(frames[-1].filename)}:{frames[-1].lineno}" if frames else ""  # noqa: PTH119
    told = {"error": type(error).__name__, "where": place}
    if os.environ.get("TACIT_DEBUG"):
        told["debug"] = "".join(traceback.format_exception(error))
    return told


def log_to_stderr(part: str) -> None:
    """Let this service's log appear on its error stream."""
    handler = logging.StreamHandler()
    handler.setFormatter(Line(part))
    logger = logging.getLogger("tacit.federation")
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
