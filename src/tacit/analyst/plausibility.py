r"""Plausibility: whether a release can be what it says, by bounds that everybody knows.

The study fixes ‖x‖ ≤ X and |y| ≤ Y of every row, the release states n, and the sd σ of its noise
follows from the budget. So, besides noise, n rows in groups of any size obey (C1) of
docs/methods.md, no eigenvalue of S is negative or above nX², and the intercept's entry is n at most
(n where every row enters whole). A holder who breaks a bound by more than noise can has made a
mistake, or means harm: one such release would decide the fit. A poisoned release that keeps them
all passes.

Noise is Gaussian or, on its lattice, has lighter tails: beyond `reach`·σ it goes with probability
exp(−reach²/2) at most. An eigenvalue of X'X moves by no more than 2√d·σ_o + reach·√2·σ_o, σ_o the
sd off the diagonal: the first is a bound on the mean of the noise's largest eigenvalue (Chevet),
the second its deviation, since an eigenvalue moves no faster than the matrix. `reach` makes the
chance that an honest release breaks any of the bounds `FALSE_ALARM` at most.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.errors import ReleaseError
from tacit.privacy.mechanism import Noise
from tacit.release import Release
from tacit.release.document import Published
from tacit.release.places import Places, PlacesRelease
from tacit.release.statistics import Answer, Further
from tacit.study import Study

Array = NDArray[np.float64]

FALSE_ALARM = 1e-9
"""Chance that an honest release is taken for an implausible one, at most."""
MOST_ROWS = 2.0**40
"""More rows than any table has; where n is withheld, bounds are those of so many."""
ROUNDING = 1e-9
"""Relative error that sums and eigenvalues may have."""


class Rule(NamedTuple):
    """What must lie between two numbers, document by document."""

    what: str
    values: Array  # (document, value)
    low: Array | float  # one for all, or (document,)
    high: Array | float

    def broken(self) -> dict[int, str]:
        """How it is broken, in words, by document; nothing of those that keep it."""
        slack = ROUNDING * np.maximum(np.abs(self.low), np.abs(self.high))
        low = np.broadcast_to(self.low - slack, len(self.values))[:, None]
        high = np.broadcast_to(self.high + slack, len(self.values))[:, None]
        outside = (self.values < low) | (self.values > high)  # what is no number breaks no bound
        return {
            int(place): self._words(int(place), self.values[place][outside[place]][0])
            for place in np.flatnonzero(outside.any(axis=1))
        }

    def _words(self, place: int, value: float) -> str:
        low, high = (
            float(np.broadcast_to(end, len(self.values))[place]) for end in (self.low, self.high)
        )
        return f"{self.what} is {value:.4g}, outside {low:.4g} to {high:.4g}"


@dataclass(frozen=True)
class Statistics:
    """Statistics that documents of one study state, all with the same noise."""

    study: Study
    noise: Noise
    visited: bool  # rows are then in units of the question's bounds
    rows: Array | None  # (document,)
    grams: Array  # (document, d, d)
    moments: Array  # (document, d)
    squares: Array | None
    eigenvalues: Array | None

    @classmethod
    def of(cls, release: Release, said: Release | Answer) -> "Statistics":
        """Those of one release, or of an answer that it holds."""
        eigenvalue = said.smallest_eigenvalue if isinstance(said, Release) else None
        return cls(
            study=release.study,
            noise=said.noise,
            visited=release.visit is not None,
            rows=_alone(said.n),
            grams=np.array([said.xtx]),
            moments=np.array([said.xty]),
            squares=_alone(said.yty),
            eigenvalues=_alone(eigenvalue),
        )

    def only(self, place: int) -> "Statistics":
        """Those of one document."""
        one = slice(place, place + 1)
        return replace(
            self,
            rows=None if self.rows is None else self.rows[one],
            grams=self.grams[one],
            moments=self.moments[one],
            squares=None if self.squares is None else self.squares[one],
            eigenvalues=None if self.eigenvalues is None else self.eigenvalues[one],
        )


def _alone(value: float | None) -> Array | None:
    return None if value is None else np.array([value], dtype=float)


def doubt_of(document: Published) -> str:
    """Which bound a document breaks, in words; nothing where it keeps them all."""
    rules: Iterator[Rule] = iter(())
    if isinstance(document, Release):
        rules = _of_release(document)
    elif isinstance(document, PlacesRelease):
        rules = _of_places(document.places)
    return _first_broken(rules)


def doubts_of(statistics: Statistics) -> list[str]:
    """The same for each of many documents: at once where none breaks a bound, else one by one."""
    count = len(statistics.grams)
    if not any(rule.broken() for rule in _of_statistics(statistics)):
        return [""] * count
    return [_first_broken(_of_statistics(statistics.only(place))) for place in range(count)]


def _first_broken(rules: Iterable[Rule]) -> str:
    return next(filter(None, (rule.broken().get(0, "") for rule in rules)), "")


def check_plausible(documents: Sequence[Published]) -> None:
    """Refuse a document that cannot be what it says, by its holder's name."""
    refuse_doubted((document.holder for document in documents), map(doubt_of, documents))


def refuse_doubted(holders: Iterable[str], doubts: Iterable[str]) -> None:
    """Refuse the document of the first holder that there is a doubt about."""
    for holder, doubt in zip(holders, doubts, strict=True):
        if doubt:
            raise ReleaseError(
                f"the release of {holder!r} is implausible: {doubt}, which neither rows "
                "of its study nor noise explain; ask that holder, or leave the release out "
                "(without_implausible=True)"
            )


def reach_of(rules: int) -> float:
    """Standard deviations of noise that one of so many rules must allow for."""
    return math.sqrt(2 * math.log(rules / FALSE_ALARM))


def _of_release(release: Release) -> Iterator[Rule]:
    """Its statistics and, in a study of several visits, what its holder said before."""
    yield from _of_statistics(Statistics.of(release, release))
    for further in release.further or ():
        yield from _of_further(release, further)
    if release.visit is None:
        return
    if release.visit.places is not None:
        yield from _of_places(release.visit.places)
    for answer in release.visit.earlier:
        yield from _of_statistics(Statistics.of(release, answer))


def _of_further(release: Release, further: Further) -> Iterator[Rule]:
    """What is said of a further response, beside the same X'X."""
    stated = Statistics.of(release, release)
    own = replace(stated, moments=np.array([further.xty]), squares=_alone(further.yty))
    yield from _of_statistics(own)


def _of_statistics(stated: Statistics) -> Iterator[Rule]:
    """Entries first: what is computed from them then stays finite."""
    study = stated.study
    noise = stated.noise
    d = study.d
    reach = reach_of((d * (d + 1) + 4 * d + 12) * study.response_count)
    count_slack = reach * (noise.count or 0.0)
    rows = np.full(len(stated.grams), MOST_ROWS)
    if stated.rows is not None:
        yield Rule("n", stated.rows[:, None], -count_slack, MOST_ROWS)
        rows = np.maximum(stated.rows + count_slack, 0.0)
    x = 1.0 if stated.visited else study.row_radius
    y = 1.0 if stated.visited else study.response_bound
    length = rows * x**2
    yield from _of_entries(stated, length, rows * x * y, reach)
    if stated.squares is not None and noise.yty is not None:
        square_slack = reach * noise.yty
        most = rows * y**2 + square_slack
        yield Rule("yty", stated.squares[:, None], -square_slack, most)
        yield _of_products(stated, stated.squares + square_slack, reach)
    if study.intercept and not stated.visited:
        exact = study.whole_rows and stated.rows is not None and study.count != "noisy"
        slack = reach * noise.xtx_diagonal
        level = stated.grams[:, :1, 0]
        least = rows - slack if exact else -slack
        yield Rule("the intercept's entry of xtx", level, least, rows + slack)
    yield from _of_eigenvalues(stated, length, reach)


def _of_entries(stated: Statistics, length: Array, moment: Array, reach: float) -> Iterator[Rule]:
    """Entries of X'X and X'y by themselves; rows give `length` and `moment` at most."""
    noise = stated.noise
    d = stated.study.d
    slack = reach * noise.xtx_diagonal
    off_slack = length / 2 + reach * noise.xtx_off_diagonal
    moment_slack = moment + reach * noise.xty
    diagonal = np.diagonal(stated.grams, axis1=1, axis2=2)
    above = stated.grams.reshape(len(length), -1)[:, _above_diagonal(d)]
    yield Rule("a diagonal entry of xtx", diagonal, -slack, length + slack)
    yield Rule("an entry of xtx", above, -off_slack, off_slack)
    yield Rule("an entry of xty", stated.moments, -moment_slack, moment_slack)
    trace = diagonal.sum(axis=1, keepdims=True)
    wide = math.sqrt(d) * slack
    yield Rule("the trace of xtx", trace, -wide, length + wide)


@lru_cache(maxsize=4)
def _above_diagonal(d: int) -> NDArray[np.intp]:
    """Places above the diagonal of a square matrix, row by row."""
    return np.flatnonzero(np.triu(np.ones((d, d)), 1))


def _of_products(stated: Statistics, square: Array, reach: float) -> Rule:
    """X'y against X'X and y'y: z_i² ≤ S_ii·y'y."""
    slack = reach * stated.noise.xtx_diagonal
    diagonal = np.diagonal(stated.grams, axis1=1, axis2=2)
    sizes = np.maximum(diagonal + slack, 0.0)
    most = np.sqrt(sizes * np.maximum(square, 0.0)[:, None]) + reach * stated.noise.xty
    share = np.abs(stated.moments) / most
    return Rule("an entry of xty, over what xtx and yty allow,", share, 0.0, 1.0)


def _of_eigenvalues(stated: Statistics, length: Array, reach: float) -> Iterator[Rule]:
    noise = stated.noise
    d = stated.study.d
    edge = noise.xtx_off_diagonal * (2 * math.sqrt(d) + math.sqrt(2) * reach)
    values: Array = np.linalg.eigvalsh(stated.grams).astype(np.float64)
    yield Rule("an eigenvalue of xtx", values, -edge, length + edge)
    if stated.eigenvalues is not None and noise.eigenvalue is not None:
        slack = reach * noise.eigenvalue
        low = np.maximum(-slack, values[:, 0] - edge - slack)
        high = np.minimum(length / d, values[:, 0] + edge) + slack
        yield Rule("smallest_eigenvalue", stated.eigenvalues[:, None], low, high)


def _of_places(places: Places) -> Iterator[Rule]:
    """Sums over values u ∈ [−1, 1] of complete rows: each is at most their number."""
    noise = places.noise
    reach = reach_of(4 * len(places.totals) + 2)
    most = max(places.count + reach * noise.count, 0.0)
    total = most + reach * noise.total
    slack = reach * noise.square
    yield Rule("count", np.array([[places.count]]), -reach * noise.count, MOST_ROWS)
    yield Rule("an entry of totals", np.array([places.totals]), -total, total)
    yield Rule("an entry of squares", np.array([places.squares]), -slack, most + slack)
