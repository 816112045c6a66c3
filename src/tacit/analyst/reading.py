"""Many release files at once: read and checked by as many processes as there are cores.

Every process reads its files as one does, signature and plausibility included, and hands back what
a collection needs of each. A file that it refuses, and files of a process that ends early, are read
by the caller itself, which then says what is wrong.
"""

import json
import os
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

from tacit.analyst.cores import cores
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
    *("hash", "created", "simulated"),
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
"""Releases of several visits, of a sum or of another study are kept whole."""


def read_many(files: Sequence[Path]) -> list[Read]:
    """The releases in these files, in their order."""
    study = Release.load(files[0]).study
    chunks = [files[first : first + _CHUNK] for first in range(0, len(files), _CHUNK)]
    count = min(cores(), _MOST_PROCESSES, len(chunks))
    readers = [_Reader(study) for _ in range(count)]
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
    """Read the files that every line of standard input names, until it ends.

    The answer to a line is a line with facts, and after it the numbers of X'X and X'y; an empty
    list where the caller must read these files itself.
    """
    answers = sys.stdout.buffer
    sys.stdout = sys.stderr
    for line in sys.stdin.buffer:
        try:
            asked = json.loads(line)
            releases = [Release.load(path) for path in asked["files"]]
        except TacitError:
            releases = []
        told = releases if all(_is_alone(one, asked["study"]) for one in releases) else []
        facts = [_facts(release) for release in told]
        answers.write(json.dumps(facts).encode() + b"\n")
        answers.write(np.array([release.gram for release in told]).tobytes())
        answers.write(np.array([release.moment for release in told]).tobytes())
        answers.flush()


def _is_alone(release: Release, study: str) -> bool:
    """Whether it is all that its holder published for that study."""
    alone = release.visit is None and release.survivors is None
    return alone and release.study_hash == study


def _facts(release: Release) -> dict[str, Any]:
    return {name: getattr(release, name) for name in _FACTS} | {
        "noise": list(vars(release.noise).values()),
        "signature": None if release.signature is None else vars(release.signature),
        "doubt": doubt_of(release),
    }


class _Reader:
    """A process that reads files."""

    def __init__(self, study: Study) -> None:
        self._study = study
        self._noises: dict[tuple[float | None, ...], Noise] = {}
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
        return self._filed(files) or [Release.load(path) for path in files]

    def _filed(self, files: Sequence[Path]) -> list[Filed]:
        """What the process tells of them; nothing where it refused one, or has ended."""
        asked = self._process.stdin
        told = self._process.stdout
        if asked is None or told is None:  # pragma: no cover
            raise AssertionError  # both are pipes
        d = self._study.d
        try:
            words = {"study": self._study.hash, "files": [str(path) for path in files]}
            asked.write(json.dumps(words).encode() + b"\n")
            asked.flush()
            facts = json.loads(told.readline() or b"[]")
            numbers = np.frombuffer(told.read(8 * d * (d + 1) * len(facts)))
        except (OSError, ValueError):  # it ended, or in the middle of a line
            return []
        if numbers.size < d * (d + 1) * len(facts):
            return []
        grams = numbers[: d * d * len(facts)].reshape(-1, d, d)
        moments = numbers[d * d * len(facts) :].reshape(-1, d)
        return [self._one(*each) for each in zip(facts, grams, moments, strict=True)]

    def _one(self, facts: dict[str, Any], gram: Array, moment: Array) -> Filed:
        sds = tuple(facts.pop("noise"))
        noise = self._noises.get(sds) or Noise(**dict(zip(Noise.model_fields, sds, strict=True)))
        self._noises[sds] = noise
        signature = facts.pop("signature")
        return Filed(
            study=self._study,
            noise=noise,
            gram=gram,
            moment=moment,
            signature=None if signature is None else Signature(**signature),
            **facts,
        )

    def end(self) -> None:
        """Let the process end."""
        with suppress(OSError):
            self._process.communicate()
