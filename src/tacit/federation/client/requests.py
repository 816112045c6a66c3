"""Requests that a person decides on: one small file each, in a folder beside the ledger.

A request is named by its study's hash. It is written, whole and durably, when a study is first
asked for, and written again when the data officer approves or refuses; what was decided stays until
a person decides otherwise.
"""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Self

from pydantic import ValidationError

from tacit.errors import FederationError, TacitError
from tacit.files import write_whole
from tacit.records import Record, explain, now
from tacit.study import Study
from tacit.study.study import Hash
from tacit.study.toml import study_toml

MOST_WAITING = 100
"""Requests that may wait at once, so that a server cannot fill the disk."""

Decision = Literal["waiting", "approved", "refused"]


class Request(Record):
    """A study that was asked for, and what was decided."""

    format: Literal["tacit-request"] = "tacit-request"
    version: Literal[1] = 1
    study_hash: Hash
    study: str
    asked: str
    decision: Decision = "waiting"
    decided: str | None = None

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read a file that `Requests` wrote."""
        try:
            request = cls.model_validate_json(path.read_bytes())
        except OSError as error:
            message = f"cannot read the request {str(path)!r}: {error.strerror}"
        except ValidationError as error:
            message = f"{path}: {explain(error)}"
        else:
            return request
        raise FederationError(message) from None

    def agreement(self) -> Study:
        """The study itself, checked against the hash the request is kept under."""
        study = Study.from_toml(self.study)
        if study.hash != self.study_hash:
            raise FederationError(
                f"the request {self.study_hash} holds another study: "
                "it was changed on disk, so remove the file"
            )
        return study


@dataclass(frozen=True)
class Requests:
    """A site's folder of requests."""

    folder: Path

    def every(self) -> list[Request]:
        """All requests that can be read, the oldest first."""
        return self._scan()[0]

    def broken(self) -> list[str]:
        """What is wrong with requests that cannot be read, a sentence each."""
        return self._scan()[1]

    def _scan(self) -> tuple[list[Request], list[str]]:
        """Each request read by itself, its study too: a broken one hides no other."""
        requests = []
        complaints = []
        for path in sorted(self.folder.glob("*.json")) if self.folder.is_dir() else ():
            try:
                request = Request.load(path)
                request.agreement()
            except Exception as error:  # noqa: BLE001 - whatever it is, the others are shown
                kind = "" if isinstance(error, TacitError) else f"{type(error).__name__}: "
                complaints.append(f"request {path.name} is left out: {kind}{error}")
            else:
                requests.append(request)
        requests.sort(key=lambda request: (request.asked, request.study_hash))
        return requests, complaints

    def ask(self, study: Study) -> Decision | None:
        """What was decided; a new study is noted as waiting; None where too many wait."""
        path = self._path(study.hash)
        if os.path.lexists(path):
            request = Request.load(path)
            request.agreement()
            return request.decision
        if sum(request.decision == "waiting" for request in self.every()) >= MOST_WAITING:
            return None
        self._write(Request(study_hash=study.hash, study=study_toml(study), asked=now()))
        return "waiting"

    def find(self, start: str) -> Request:
        """The one request whose study's hash, or name, begins so."""
        requests, complaints = self._scan()
        matching = [request for request in requests if start and _begins(request, start)]
        if len(matching) != 1:
            count = f"{len(matching)} requests" if matching else "no request"
            unread = f" ({len(complaints)} more cannot be read)" if complaints else ""
            raise FederationError(
                f"{count} in {str(self.folder)!r}{unread} for a study that begins with "
                f"{start!r}: give more letters of its hash"
            )
        return matching[0]

    def decide(self, request: Request, decision: Literal["approved", "refused"]) -> Request:
        """Write down what a person decided."""
        decided = request.model_copy(update={"decision": decision, "decided": now()})
        self._write(decided)
        return decided

    def _path(self, study_hash: str) -> Path:
        return self.folder / f"{study_hash.removeprefix('sha256:')}.json"

    def _write(self, request: Request) -> None:
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_whole(
            self._path(request.study_hash), request.model_dump_json(indent=2) + "\n", mode=0o600
        )


def _begins(request: Request, start: str) -> bool:
    digits = start.removeprefix("sha256:")
    return (
        request.study_hash.removeprefix("sha256:").startswith(digits)
        or request.agreement().name == start
    )
