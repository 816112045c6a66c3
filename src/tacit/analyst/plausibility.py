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
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.errors import ReleaseError
from tacit.release import Release
from tacit.release.document import Published
from tacit.release.places import Places, PlacesRelease

Array = NDArray[np.float64]

FALSE_ALARM = 1e-9
"""Chance that an honest release is taken for an implausible one, at most."""
MOST_ROWS = 2.0**40
"""More rows than any table has; where n is withheld, bounds are those of so many."""
ROUNDING = 1e-9
"""Relative error that sums and eigenvalues may have."""


class Rule(NamedTuple):
    """What must lie between two numbers."""

    what: str
    values: Array
    low: float
    high: float

    def broken(self) -> str:
        """How it is broken, in words; nothing where it is kept."""
        slack = ROUNDING * max(abs(self.low), abs(self.high))
        low = self.low - slack
        high = self.high + slack
        if not self.values.size or (self.values.min() >= low and self.values.max() <= high):
            return ""
        outside = (self.values < low) | (self.values > high)
        if not outside.any():  # what is no number breaks no bound
            return ""
        value = self.values[outside].ravel()[0]
        return f"{self.what} is {value:.4g}, outside {self.low:.4g} to {self.high:.4g}"


def doubt_of(document: Published) -> str:
    """Which bound a document breaks, in words; nothing where it keeps them all."""
    rules: Iterator[Rule] = iter(())
    if isinstance(document, Release):
        rules = _of_release(document)
    elif isinstance(document, PlacesRelease):
        rules = _of_places(document.places)
    return next(filter(None, (rule.broken() for rule in rules)), "")


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
    yield from _of_statistics(release)
    if release.visit is None:
        return
    if release.visit.places is not None:
        yield from _of_places(release.visit.places)
    for answer in release.visit.earlier:
        parts = ("n", "xtx", "xty", "yty", "noise")
        told = {part: getattr(answer, part) for part in parts}
        yield from _of_statistics(release.model_copy(update=told))


def _of_statistics(release: Release) -> Iterator[Rule]:
    """Entries first: what is computed from them then stays finite."""
    study = release.study
    noise = release.noise
    d = study.d
    reach = reach_of(d * (d + 1) + 4 * d + 12)
    count_slack = reach * (noise.count or 0.0)
    if release.n is not None:
        yield Rule("n", np.array([release.n], dtype=float), -count_slack, MOST_ROWS)
    rows = MOST_ROWS if release.n is None else max(release.n + count_slack, 0.0)
    visited = release.visit is not None  # rows are then in units of the question's bounds
    x = 1.0 if visited else study.row_radius
    y = 1.0 if visited else study.response_bound
    length = rows * x**2
    yield from _of_entries(release, length, rows * x * y, reach)
    if release.yty is not None and noise.yty is not None:
        square_slack = reach * noise.yty
        square = np.array([release.yty])
        yield Rule("yty", square, -square_slack, rows * y**2 + square_slack)
        yield _of_products(release, release.yty + square_slack, reach)
    if study.intercept and not visited:
        least = rows if study.whole_rows and isinstance(release.n, int) else 0.0
        slack = reach * noise.xtx_diagonal
        yield Rule("the intercept's entry of xtx", release.gram[:1, 0], least - slack, rows + slack)
    yield from _of_eigenvalues(release, length, reach)


def _of_entries(release: Release, length: float, moment: float, reach: float) -> Iterator[Rule]:
    """Entries of X'X and X'y by themselves; rows give `length` and `moment` at most."""
    noise = release.noise
    d = release.study.d
    slack = reach * noise.xtx_diagonal
    off_slack = length / 2 + reach * noise.xtx_off_diagonal
    moment_slack = moment + reach * noise.xty
    diagonal = np.diag(release.gram)
    above = release.gram.ravel()[_above_diagonal(d)]
    yield Rule("a diagonal entry of xtx", diagonal, -slack, length + slack)
    yield Rule("an entry of xtx", above, -off_slack, off_slack)
    yield Rule("an entry of xty", release.moment, -moment_slack, moment_slack)
    trace = np.array([diagonal.sum()])
    wide = math.sqrt(d) * slack
    yield Rule("the trace of xtx", trace, -wide, length + wide)


@lru_cache(maxsize=4)
def _above_diagonal(d: int) -> NDArray[np.intp]:
    """Places above the diagonal of a square matrix, row by row."""
    return np.flatnonzero(np.triu(np.ones((d, d)), 1))


def _of_products(release: Release, square: float, reach: float) -> Rule:
    """X'y against X'X and y'y: z_i² ≤ S_ii·y'y."""
    slack = reach * release.noise.xtx_diagonal
    sizes = np.maximum(np.diag(release.gram) + slack, 0.0)
    most = np.sqrt(sizes * max(square, 0.0)) + reach * release.noise.xty
    share = np.abs(release.moment) / most
    return Rule("an entry of xty, over what xtx and yty allow,", share, 0.0, 1.0)


def _of_eigenvalues(release: Release, length: float, reach: float) -> Iterator[Rule]:
    noise = release.noise
    d = release.study.d
    edge = noise.xtx_off_diagonal * (2 * math.sqrt(d) + math.sqrt(2) * reach)
    values: Array = np.linalg.eigvalsh(release.gram).astype(np.float64)
    yield Rule("an eigenvalue of xtx", values, -edge, length + edge)
    if release.smallest_eigenvalue is not None and noise.eigenvalue is not None:
        slack = reach * noise.eigenvalue
        smallest = np.array([release.smallest_eigenvalue])
        low = max(-slack, values[0] - edge - slack)
        high = min(length / d, values[0] + edge) + slack
        yield Rule("smallest_eigenvalue", smallest, low, high)


def _of_places(places: Places) -> Iterator[Rule]:
    """Sums over values u ∈ [−1, 1] of complete rows: each is at most their number."""
    noise = places.noise
    reach = reach_of(4 * len(places.totals) + 2)
    most = max(places.count + reach * noise.count, 0.0)
    total = most + reach * noise.total
    slack = reach * noise.square
    yield Rule("count", np.array([places.count]), -reach * noise.count, MOST_ROWS)
    yield Rule("an entry of totals", np.array(places.totals), -total, total)
    yield Rule("an entry of squares", np.array(places.squares), -slack, most + slack)
