"""Many release files at once: read and checked by as many processes as there are cores.

Every process reads its files as one does, signature and plausibility included, and hands back what
a collection needs of each. A file that it refuses, and files of a process that ends early, are read
by the caller itself, which then says what is wrong.
"""

import os
import pickle
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.analyst.plausibility import doubt_of
from tacit.errors import TacitError
from tacit.privacy.mechanism import Noise
from tacit.privacy.sensitivity import Relation
from tacit.release import Release
from tacit.release.document import Signature
from tacit.study import Study

Array = NDArray[np.float64]

MANY = 1000
"""Files from which on processes pay."""
_CHUNK = 200
"""Files that a process is given at a time."""
_MOST_PROCESSES = 16
_FACTS = (
    *("holder", "epsilon", "delta", "n", "yty", "smallest_eigenvalue"),
    *("hash", "created", "simulated", "signature"),
)
_COMMAND = "from tacit.analyst.reading import serve; serve()"


@dataclass(frozen=True, slots=True)
class Filed:
    """A release as a large collection keeps it: its numbers; the document stays in its file."""

    study: Study
    holder: str
    epsilon: float
    delta: float
    n: float | None
    gram: Array
    moment: Array
    yty: float | None
    smallest_eigenvalue: float | None
    noise: Noise
    hash: str
    created: str
    simulated: bool
    signature: Signature | None
    doubt: str  # which bound it breaks, in words; nothing where it keeps them all

    @property
    def study_hash(self) -> str:
        """The study's."""
        return self.study.hash

    @property
    def relation(self) -> Relation:
        """The study's."""
        return self.study.relation


Read = Filed | Release
"""Releases of several visits, of a sum or of several studies are kept whole."""


def read_many(files: Sequence[Path]) -> list[Read]:
    """The releases in these files, in their order."""
    chunks = [files[first : first + _CHUNK] for first in range(0, len(files), _CHUNK)]
    count = min(len(os.sched_getaffinity(0)), _MOST_PROCESSES, len(chunks))
    readers = [_Reader() for _ in range(count)]
    free: SimpleQueue[_Reader] = SimpleQueue()
    for reader in readers:
        free.put(reader)

    def read(chunk: Sequence[Path]) -> Sequence[Read]:
        reader = free.get()
        try:
            return reader.read(chunk)
        finally:
            free.put(reader)

    try:
        with ThreadPoolExecutor(count) as pool:
            return [one for some in pool.map(read, chunks) for one in some]
    finally:
        for reader in readers:
            reader.end()


def serve() -> None:
    """Read the files that the caller names on standard input, until it ends."""
    answers = sys.stdout.buffer
    sys.stdout = sys.stderr
    while True:
        try:
            files = pickle.load(sys.stdin.buffer)  # noqa: S301 - from the process that started this
        except EOFError:
            return
        try:
            answer = _packed([Release.load(path) for path in files])
        except TacitError:
            answer = None
        pickle.dump(answer, answers, protocol=pickle.HIGHEST_PROTOCOL)
        answers.flush()


@dataclass(frozen=True)
class _Packed:
    """Releases of one study as they go from process to process, with their matrices as arrays."""

    study: Study
    grams: Array  # (J, d, d)
    moments: Array  # (J, d)
    facts: list[dict[str, Any]]

    def unpacked(self) -> list[Read]:
        """One by one."""
        return [
            Filed(study=self.study, gram=gram, moment=moment, **facts)
            for gram, moment, facts in zip(self.grams, self.moments, self.facts, strict=True)
        ]


def _packed(releases: list[Release]) -> _Packed | list[Release]:
    study = releases[0].study
    alone = study.secure_sum is None and study.visit_count == 1
    if not alone or any(release.study_hash != study.hash for release in releases):
        return releases
    noises: dict[Noise, Noise] = {}
    return _Packed(
        study=study,
        grams=np.array([release.gram for release in releases]),
        moments=np.array([release.moment for release in releases]),
        facts=[
            {name: getattr(release, name) for name in _FACTS}
            | {"noise": noises.setdefault(release.noise, release.noise)}
            | {"doubt": doubt_of(release)}
            for release in releases
        ],
    )


class _Reader:
    """A process that reads files."""

    def __init__(self) -> None:
        paths = os.pathsep.join(filter(None, sys.path))
        self._process = subprocess.Popen(  # noqa: S603 - our own code
            [sys.executable, "-c", _COMMAND],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=os.environ | {"PYTHONPATH": paths, "OPENBLAS_NUM_THREADS": "1"},
        )

    def read(self, files: Sequence[Path]) -> Sequence[Read]:
        """The releases in these files."""
        answer = self._answer(files)
        if isinstance(answer, _Packed):
            return answer.unpacked()
        return [Release.load(path) for path in files] if answer is None else answer

    def _answer(self, files: Sequence[Path]) -> _Packed | list[Release] | None:
        """What the process hands back; nothing where it refused a file, or has ended."""
        asked = self._process.stdin
        told = self._process.stdout
        if asked is None or told is None:  # pragma: no cover
            raise AssertionError  # both are pipes
        try:
            pickle.dump(files, asked)
            asked.flush()
            answer: _Packed | list[Release] | None = pickle.load(told)  # noqa: S301 - our own
        except (OSError, EOFError, pickle.UnpicklingError):
            return None
        return answer

    def end(self) -> None:
        """Let the process end."""
        with suppress(OSError):
            self._process.communicate()
