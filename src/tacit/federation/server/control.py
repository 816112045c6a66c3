"""Control: what the analyst's machine asks of its SuperLink, by Flower's own command.

`flwr` prints JSON on request. What it says of a failure is passed on as one sentence.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tacit.errors import FederationError

TIMEOUT = 60.0


class AwayError(FederationError):
    """The SuperLink does not answer."""


@dataclass(frozen=True)
class Control:
    """The SuperLink by its name in Flower's configuration, `$FLWR_HOME/config.toml`."""

    superlink: str = "tacit"

    def start(self, app: Path, config: str = "") -> str:
        """Start a run; gives its number."""
        options = ("--run-config", config) if config else ()
        return str(self._ask("run", str(app), self.superlink, *options)["run-id"])

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
        command = [_flwr(), "log", number, self.superlink, "--stream"]
        with subprocess.Popen(  # noqa: S603 - our own command
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            stdin=subprocess.DEVNULL,
            text=True,
            env=_environment(),
        ) as stream:
            try:
                yield from stream.stdout or ()
            finally:
                stream.terminate()

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
            raise FederationError(
                "there is no `flwr` beside this Python: pip install 'tacit-dp[flower]'"
            ) from None
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
    words = " ".join(str(answer.get("error-message", "")).split())
    if any(sign in words.lower() for sign in _AWAY):
        raise AwayError(
            f"the SuperLink {superlink!r} cannot be reached: see `systemctl status tacit-superlink`"
        )
    raise FederationError(f"Flower refused: {words[:300] or 'it does not say why'}")


_AWAY = ("connect", "unavailable", "refused", "timed out", "502", "503")


def _flwr() -> str:
    return str(Path(sys.executable).with_name("flwr"))


def _environment() -> dict[str, str]:
    return os.environ | {"FLWR_TELEMETRY_ENABLED": "0", "NO_COLOR": "1", "COLUMNS": "1000"}
