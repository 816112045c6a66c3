"""Which levels of a formula's categorical factors get a column, so that the design has full rank.

A categorical factor of L levels spans the constant and L − 1 columns: 1 + f⁻, where f⁻ leaves the
reference out. A term of numeric factors N and categorical factors K therefore spans the sum of
N·∏S⁻ over all subsets S of K. What earlier terms span already is left out, and of what remains,
S⁻ and (S ∪ {f})⁻ together are S⁻ with a column for every level of f. This is how R, patsy and
formulaic choose contrasts.
"""

from collections.abc import Hashable, Iterable
from itertools import combinations
from typing import Generic, TypeVar

FactorT = TypeVar("FactorT", bound=Hashable)
Subset = frozenset[FactorT]


class Part(Generic[FactorT]):
    """Some of a term's columns: `reduced` factors leave their reference out, `full` ones do not."""

    def __init__(self, reduced: Subset[FactorT], full: Subset[FactorT]) -> None:
        self.reduced = reduced
        self.full = full

    def absorbs(self, other: "Part[FactorT]") -> FactorT | None:
        """The factor that gets a column for every level if `other` becomes a part of this one."""
        if self.full != other.full or len(self.reduced) != len(other.reduced) + 1:
            return None
        if not other.reduced < self.reduced:
            return None
        [factor] = self.reduced - other.reduced
        return factor


def parts_of(
    terms: Iterable[tuple[Subset[FactorT], Subset[FactorT]]],
) -> list[list[Part[FactorT]]]:
    """The parts of each term, given as its numeric and its categorical factors, in their order."""
    spanned: set[tuple[Subset[FactorT], Subset[FactorT]]] = set()
    parts = []
    for numeric, categorical in terms:
        subsets = [
            frozenset(chosen)
            for size in range(len(categorical) + 1)
            for chosen in combinations(categorical, size)
        ]
        fresh = [subset for subset in subsets if (numeric, subset) not in spanned]
        spanned |= {(numeric, subset) for subset in subsets}
        parts.append(_joined([Part(subset, frozenset()) for subset in fresh]))
    return parts


def _joined(parts: list[Part[FactorT]]) -> list[Part[FactorT]]:
    """As few parts as span the same, shorter ones absorbed by longer ones from the left."""
    for place, short in enumerate(parts):
        for later, long in enumerate(parts[place + 1 :], place + 1):
            factor = long.absorbs(short)
            if factor is not None:
                joined = Part(long.reduced - {factor}, long.full | {factor})
                return _joined(
                    [*parts[:place], *parts[place + 1 : later], joined, *parts[later + 1 :]]
                )
    return parts
