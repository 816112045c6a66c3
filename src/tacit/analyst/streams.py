"""Batches: those of one stream added up, which read like one release of all their rows.

Ŝ_b = S_b + N_b with independent noise of one size, so Σ_b Ŝ_b is X'X of all B batches' rows plus
noise of √B times that sd, and likewise X'y, y'y and n: a sum is kept, and adding a batch costs the
same whatever came before. Any method then sees one holder.
"""

import math
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tacit.errors import ReleaseError
from tacit.privacy.mechanism import Noise
from tacit.privacy.sensitivity import Relation
from tacit.release.log import Entry
from tacit.study import Study

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Batches:
    """What a stream has published so far, with a release's names for it."""

    study: Study
    study_hash: str
    holder: str
    epsilon: float
    delta: float
    batches: int
    n: float | None
    gram: Array
    moments: Array  # of every response
    squares: Array | None
    one: Noise  # of one batch
    hash: str  # names the batches, in whatever order they came
    created: str  # of the last one
    simulated: bool

    smallest_eigenvalue = None

    @property
    def moment(self) -> Array:
        """The X'y of the study's own response."""
        own: Array = self.moments[0]
        return own

    @property
    def yty(self) -> float | None:
        """The y'y of the study's own response."""
        return None if self.squares is None else float(self.squares[0])

    @property
    def relation(self) -> Relation:
        """The neighbouring relation of every batch."""
        return self.study.relation

    @cached_property
    def noise(self) -> Noise:
        """Standard deviations of the sums' noise."""
        return self.one.times(math.sqrt(self.batches))


@dataclass
class Accumulator:
    """Adds up the batches of one stream.

    Refuses one that is there twice, and any that does not belong.
    """

    first: Entry
    gram: Array = field(init=False)
    moments: Array = field(init=False)
    squares: Array = field(init=False)
    n: float = 0.0
    created: str = ""
    simulated: bool = False
    numbers: set[int] = field(default_factory=set)
    _digest: int = 0  # sum of the releases' hashes
    _seen: set[int] = field(default_factory=set)  # hashes of X'X, which noise lets never repeat

    def __post_init__(self) -> None:
        study = self.first.release.study
        self.gram = np.zeros((study.d, study.d))
        self.moments = np.zeros((study.response_count, study.d))
        self.squares = np.zeros(study.response_count)

    def add(self, entry: Entry) -> None:
        """Add one batch."""
        release = entry.release
        self._refuse_foreign(entry)
        mark = hash(release.xtx)
        if entry.batch in self.numbers or mark in self._seen:
            raise ReleaseError(
                f"batch {entry.batch} of {release.holder!r} is there twice: give each batch once"
            )
        self.numbers.add(entry.batch)
        self._seen.add(mark)
        self.gram += release.gram
        self.moments += release.moments
        self.squares += 0.0 if release.squares is None else release.squares
        self.n += release.n or 0.0
        self.created = max(self.created, release.created)
        self.simulated |= release.simulated
        self._digest = (self._digest + int(release.hash.removeprefix("sha256:"), 16)) % 2**256

    def summed(self) -> Batches:
        """The sums so far."""
        one = self.first.release
        return Batches(
            study=one.study,
            study_hash=one.study_hash,
            holder=one.holder,
            epsilon=one.epsilon,
            delta=one.delta,
            batches=len(self.numbers),
            n=None if one.n is None else self.n,
            gram=self.gram.copy(),
            moments=self.moments.copy(),
            squares=None if one.yty is None else self.squares.copy(),
            one=one.noise,
            hash=f"sha256-sum:{self._digest:064x}",
            created=self.created,
            simulated=self.simulated,
        )

    def _refuse_foreign(self, entry: Entry) -> None:
        release = entry.release
        for name in ("holder", "study_hash", "epsilon", "delta", "noise"):
            if getattr(self.first.release, name) != getattr(release, name):
                raise ReleaseError(
                    f"batch {entry.batch} has another {name} than batch {self.first.batch} of the "
                    "same stream: one of them was changed"
                )
        if release.smallest_eigenvalue is not None:
            raise ReleaseError(
                "smallest_eigenvalue: those of batches do not add up, so no stream publishes it"
            )


class Streams:
    """Accumulators by stream."""

    def __init__(self) -> None:
        self._accumulators: dict[str, Accumulator] = {}

    def add(self, entry: Entry) -> None:
        """Add a batch to its stream."""
        self._accumulators.setdefault(entry.stream, Accumulator(entry)).add(entry)

    def summed(self) -> list[Batches]:
        """What each stream has published so far, in the order in which they began."""
        return [accumulator.summed() for accumulator in self._accumulators.values()]

    def lost(self) -> int:
        """Batches whose numbers were passed over."""
        return sum(max(one.numbers) - len(one.numbers) for one in self._accumulators.values())
