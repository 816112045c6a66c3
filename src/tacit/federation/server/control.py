"""Control: what the analyst's machine asks of its SuperLink, by Flower's own command.

`flwr` prints JSON on request. What it says of a failure is passed on as one sentence.
"""

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tacit.errors import FederationError
from tacit.federation.environment import QUIET

TIMEOUT = 60.0


class AwayError(FederationError):
    """The SuperLink does not answer."""


@dataclass(frozen=True)
class Started:
    """A run that was started: its number, and its log as it is written."""

    number: str
    lines: Iterator[str]


@dataclass(frozen=True)
class Control:
    """The SuperLink by its name in Flower's configuration, `$FLWR_HOME/config.toml`.

    Without that variable it is the one that `tacit federate open` wrote.
    """

    superlink: str = "tacit"

    def start(self, app: Path, config: str = "") -> "Started":
        """Start a run; its log comes with it, since another command would begin seconds later."""
        options = ("--run-config", config) if config else ()
        stream = _stream("run", str(app), self.superlink, "--stream", *options)
        watch = threading.Timer(TIMEOUT, stream.kill)
        watch.start()
        before = ""
        for line in stream.stdout or ():
            if number := _STARTED.search(line):
                watch.cancel()
                return Started(number[1], _lines(stream))
            before += line
        watch.cancel()
        stream.wait()
        raise _refusal(before, self.superlink)

    def run(self, number: str) -> dict[str, Any]:
        """What is known of one run."""
        runs = self._ask("list", self.superlink, "--run-id", number)["runs"]
        return dict(runs[0])

    def runs(self) -> list[dict[str, Any]]:
        """Every run, the newest first."""
        return [dict(run) for run in self._ask("list", self.superlink)["runs"]]

    def nodes(self) -> list[dict[str, Any]]:
        """Every SuperNode that was registered."""
        return [dict(node) for node in self._ask("supernode", "list", self.superlink)["nodes"]]

    def stop(self, number: str) -> None:
        """End a run."""
        self._ask("stop", number, self.superlink)

    def register(self, key: Path, name: str) -> str:
        """Admit a SuperNode by its public key; gives its number."""
        answer = self._ask("supernode", "register", str(key), self.superlink, "--name", name)
        return str(answer["node-id"])

    def unregister(self, number: str) -> None:
        """Turn a SuperNode away from now on."""
        self._ask("supernode", "unregister", number, self.superlink)

    def lines(self, number: str) -> Iterator[str]:
        """A run's log as it is written, until it ends or the SuperLink does."""
        yield from _lines(_stream("log", number, self.superlink, "--stream"))

    def _ask(self, *words: str) -> dict[str, Any]:
        try:
            asked = subprocess.run(  # noqa: S603 - our own command
                [_flwr(), *words, "--format", "json"],
                capture_output=True,
                text=True,
                timeout=TIMEOUT,
                check=False,
                stdin=subprocess.DEVNULL,
                env=_environment(),
            )
        except FileNotFoundError:
            raise FederationError(_NO_FLOWER) from None
        except subprocess.TimeoutExpired:
            raise AwayError(f"the SuperLink {self.superlink!r} does not answer") from None
        return _read(asked.stdout, asked.stderr, self.superlink)


def _read(said: str, complained: str, superlink: str) -> dict[str, Any]:
    """Flower's answer, or what went wrong as one sentence."""
    try:
        answer = json.loads(said[said.index("{") :])
    except ValueError:
        answer = {"success": False, "error-message": complained or said}
    if answer.get("success"):
        return dict(answer)
    raise _refusal(str(answer.get("error-message", "")), superlink)


def _refusal(said: str, superlink: str) -> FederationError:
    """What went wrong as one sentence."""
    words = " ".join(said.split())
    if any(sign in words.lower() for sign in _AWAY):
        return AwayError(
            f"the SuperLink {superlink!r} cannot be reached: see `systemctl status tacit-superlink`"
        )
    return FederationError(f"Flower refused: {words[:300] or 'it does not say why'}")


_NO_FLOWER = "there is no `flwr` beside this Python: pip install 'tacit-dp[flower]'"
_STARTED = re.compile(r"Successfully started run (\d+)")
_AWAY = ("connect", "unavailable", "refused", "timed out", "502", "503")


def _stream(*words: str) -> "subprocess.Popen[str]":
    """A command of Flower's whose words are read as they come."""
    try:
        return subprocess.Popen(  # noqa: S603 - our own command
            [_flwr(), *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            text=True,
            errors="replace",
            env=_environment() | {"PYTHONUNBUFFERED": "1"},
        )
    except FileNotFoundError:
        raise FederationError(_NO_FLOWER) from None


def _lines(stream: "subprocess.Popen[str]") -> Iterator[str]:
    """What is said, until nobody listens any more."""
    with stream:
        try:
            yield from stream.stdout or ()
        finally:
            stream.terminate()


def _flwr() -> str:
    return str(Path(sys.executable).with_name("flwr"))


def _environment() -> dict[str, str]:
    return _home() | os.environ | QUIET | {"NO_COLOR": "1", "COLUMNS": "1000"}


def _home() -> dict[str, str]:
    """Flower's configuration where `tacit federate open` puts it, the user's own before root's."""
    for folder in (Path.home() / ".config/tacit/flwr", Path("/etc/tacit/flwr")):
        if (folder / "config.toml").exists():
            return {"FLWR_HOME": str(folder)}
    return {}
