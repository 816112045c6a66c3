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

from tacit.analyst.plausibility import Statistics, doubts_of
from tacit.cores import cores
from tacit.errors import TacitError
from tacit.privacy.mechanism import Noise
from tacit.privacy.sensitivity import Relation
from tacit.release import Release
from tacit.release.alike import Alike, Told
from tacit.release.document import Signature, read_text
from tacit.release.texts import unzipped
from tacit.study import Study

Array = NDArray[np.float64]

MANY = 1000
"""Files from which on processes pay."""
_CHUNK = 200
"""Files that a process is given at a time."""
_MOST_PROCESSES = 16
_SHARED = ("epsilon", "delta", "simulated")
_OWN = ("holder", "n", "yty", "smallest_eigenvalue", "hash", "created")
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
"""Releases of several visits or responses, of a sum or of another study are kept whole."""


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

    The answer to a line is a line with facts, and after it the numbers of X'X and X'y; no facts
    where the caller must read these files itself.
    """
    answers = sys.stdout.buffer
    sys.stdout = sys.stderr
    alike = Alike()
    for line in sys.stdin.buffer:
        asked = json.loads(line)
        try:
            releases = [_one_of(path, alike) for path in asked["files"]]
        except TacitError:
            releases = []
        told = releases if all(_is_alone(one, asked["study"]) for one in releases) else []
        grams = np.array([release.gram for release in told])
        moments = np.array([release.moment for release in told])
        facts = _facts(told, grams, moments) if told else {}
        answers.write(json.dumps(facts).encode() + b"\n")
        answers.write(grams.tobytes())
        answers.write(moments.tobytes())
        answers.flush()


def _one_of(path: str, alike: Alike) -> Told | Release:
    """The release in a file, by what others have told where that is possible."""
    text = unzipped(read_text(path))
    told = alike.read(text)
    if told is not None:
        return told
    release = Release.from_json(text)
    alike.learn(text, release)
    return release


def _is_alone(release: Told | Release, study: str) -> bool:
    """Whether it is all that its holder published for that study."""
    if isinstance(release, Told):
        return release.like.study_hash == study  # one of several visits, or a sum, has no like
    alone = release.visit is None and release.survivors is None and release.further is None
    return alone and release.study_hash == study


def _facts(releases: Sequence[Told | Release], grams: Array, moments: Array) -> dict[str, Any]:
    """What a collection needs of them besides: the kinds that they are of, and each one's own."""
    likes = [release.like if isinstance(release, Told) else release for release in releases]
    kinds = {id(like): like for like in likes}
    numbers = {key: number for number, key in enumerate(kinds)}
    kind = np.array([numbers[id(like)] for like in likes])
    columns = {name: [getattr(release, name) for release in releases] for name in _OWN}
    doubts = np.empty(len(releases), dtype=object)
    for number, like in enumerate(kinds.values()):
        places = np.flatnonzero(kind == number)
        doubts[places] = doubts_of(
            Statistics(
                study=like.study,
                noise=like.noise,
                visited=False,
                grams=grams[places],
                moments=moments[places],
                rows=_chosen(columns["n"], places),
                squares=_chosen(columns["yty"], places),
                eigenvalues=_chosen(columns["smallest_eigenvalue"], places),
            )
        )
    signatures = [release.signature for release in releases]
    return {
        "kinds": [_kind_facts(like) for like in kinds.values()],
        "kind": kind.tolist(),
        "columns": columns
        | {
            "signature": [signature and vars(signature) for signature in signatures],
            "doubt": doubts.tolist(),
        },
    }


def _kind_facts(like: Release) -> dict[str, Any]:
    noise = list(vars(like.noise).values())
    return {name: getattr(like, name) for name in _SHARED} | {"noise": noise}


def _chosen(values: list[float | None], places: NDArray[np.intp]) -> Array | None:
    """The values at these places, where there are any."""
    chosen = [values[place] for place in places]
    return None if chosen[0] is None else np.array(chosen, dtype=float)


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
            facts = json.loads(told.readline() or b"{}")
            count = len(facts.get("kind", []))
            numbers = np.frombuffer(told.read(8 * d * (d + 1) * count))
        except (OSError, ValueError):  # it ended, or in the middle of a line
            return []
        if not count or numbers.size < d * (d + 1) * count:
            return []
        grams = numbers[: d * d * count].reshape(-1, d, d)
        moments = numbers[d * d * count :].reshape(-1, d)
        return self._all(facts, grams, moments)

    def _all(self, facts: dict[str, Any], grams: Array, moments: Array) -> list[Filed]:
        kinds = [kind | {"noise": self._noise(kind["noise"])} for kind in facts["kinds"]]
        columns = facts["columns"]
        return [
            Filed(
                study=self._study,
                gram=gram,
                moment=moment,
                signature=None if signature is None else Signature(**signature),
                **kinds[kind],
                **dict(zip(_OWN, own, strict=True)),
                doubt=doubt,
            )
            for kind, gram, moment, signature, doubt, *own in zip(
                facts["kind"],
                grams,
                moments,
                columns["signature"],
                columns["doubt"],
                *(columns[name] for name in _OWN),
                strict=True,
            )
        ]

    def _noise(self, sds: list[float | None]) -> Noise:
        """One record for all that state the same."""
        key = tuple(sds)
        if key not in self._noises:
            stated = dict(zip(Noise.model_fields, sds, strict=True))
            self._noises[key] = Noise.model_validate(stated)
        return self._noises[key]

    def end(self) -> None:
        """Let the process end."""
        with suppress(OSError):
            self._process.communicate()
