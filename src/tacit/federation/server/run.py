"""Run: a study from its start to the truth about its end, whatever happens to the SuperLink.

Flower's own command ends well even where the study did not, and is lost where the SuperLink is
restarted. This one follows the run's log, tells of every holder as it changes, and starts the study
again where the SuperLink went away with it: what was published before is given again, at no cost.
"""

import json
import re
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tacit.errors import FederationError
from tacit.federation.server.control import AwayError, Control, Started
from tacit.federation.server.minutes import END, MARK
from tacit.federation.server.opening import project_config

MOST_STARTS = 5
"""How often a study is started again after the SuperLink went away."""
PAUSE = 1.0
FREE = "what was published before is given again, at no cost"


@dataclass
class Follow:
    """A study being run: who is told, how long a SuperLink that is away is waited for."""

    control: Control
    app: Path
    config: str = ""
    on_line: Callable[[str], None] = lambda _line: None
    away: float = 600.0
    _told: list[str] = field(default_factory=list)

    def run(self) -> dict[str, Any]:
        """How it ended: `outcome`, `failure` and `out`, as the server says."""
        started = self.control.start(self.app, self.config)
        for _ in range(MOST_STARTS):
            self.on_line(f"run {started.number} is started")
            end = self._end_of(started)
            if end is not None:
                return end
            self.on_line(f"the SuperLink went away with the run: it is started again; {FREE}")
            started = self._patiently(lambda: self.control.start(self.app, self.config))
        raise FederationError(
            f"the SuperLink went away {MOST_STARTS} times during the study: "
            f"see `journalctl -u tacit-superlink`, then run it again; {FREE}"
        )

    def _end_of(self, started: Started) -> dict[str, Any] | None:
        """How a run ended; None where the SuperLink lost it."""
        self._told.clear()
        number = started.number
        lines = started.lines
        while True:
            end = self._streamed(lines)
            if end is not None:
                return end
            try:
                status = self.control.run(number)
            except AwayError:
                self.on_line("the SuperLink is away; waiting for it")
                self._patiently(self.control.runs)
                self._put_away(number)
                return None
            except FederationError:  # it was started anew and knows no such run
                return None
            if str(status["status"]).startswith("finished"):
                said = self._streamed(self.control.lines(number))
                return said or _without_a_word(status, self._out())
            time.sleep(PAUSE)
            lines = self.control.lines(number)

    def _out(self) -> str:
        """Where results are, as the run was told."""
        told = re.search(r"""(?:^|\s)out=["']?([^"'\s]+)""", self.config)
        return told[1] if told else str(project_config(self.app).get("out", ""))

    def _streamed(self, lines: Iterable[str]) -> dict[str, Any] | None:
        """Tell what the run says; its outcome, once it says so."""
        for index, line in enumerate(_marked(lines)):
            if line.startswith(END):
                return dict(json.loads(line.removeprefix(END)))
            if index < len(self._told) and self._told[index] == line:
                continue
            self._told[index:] = [line]
            self.on_line(line.removeprefix(MARK).strip())
        return None

    def _patiently(self, action: Callable[[], Any]) -> Any:  # noqa: ANN401 - whatever it gives
        """Do something as soon as the SuperLink is there."""
        end = time.monotonic() + self.away
        while True:
            try:
                return action()
            except AwayError:
                if time.monotonic() > end:
                    raise
                time.sleep(PAUSE)

    def _put_away(self, number: str) -> None:
        """End the run that the SuperLink may believe to go on; its program ended with it."""
        try:
            self.control.stop(number)
        except FederationError:
            return


def _marked(lines: Iterable[str]) -> Iterator[str]:
    """The lines that are Tacit's own, without what Flower puts before them."""
    for line in lines:
        start = line.find(MARK)
        if start >= 0:
            yield line[start:].rstrip()


def _without_a_word(status: dict[str, Any], out: str) -> dict[str, Any]:
    """The end of a run whose last words are not in the log.

    Flower drops them where they take more than a moment, and its own record of the run's end has
    what is needed. A run may also have been stopped, or its program could not begin.
    """
    if status["status"] == "finished:completed":
        return {"outcome": "fitted", "failure": None, "out": out}
    details = " ".join(str(status.get("status-details", "")).split())[:1000]
    if details.startswith(_RAISED):
        return {"outcome": "failed", "failure": details.removeprefix(_RAISED), "out": out}
    why = "" if details in {"", "N/A"} else f" ({details[:300]})"
    failure = f"the run is {status['status']}{why}; run it again: {FREE}"
    return {"outcome": "failed", "failure": failure, "out": ""}


_RAISED = "ServerApp failed with exception: "
