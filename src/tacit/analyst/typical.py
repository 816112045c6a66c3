r"""Fix scales: from all holders' noisy moments to the second stage's study, with typical intervals.

A column's values u ∈ [−1, 1] have pooled noisy sums P (how many), U = Σu and Q = Σu². Its mean is
m = U/P and its variance

    v = Q/P − m² + sd(m)²,      sd(v)² = (sd_Q² + 4m² sd_U² + (2m² − Q/P)² sd_P²) / P²,

where sd(m)² makes up for what noise adds to m² on average. The typical interval is m ± √(3v), that
of an even spread with the same variance, so that the column is mapped to about unit spread; where
noise hides the variance, sd(v) stands for it. Everything is a function of published documents: it
costs no privacy, and whoever has them finds the same study.
"""

import hashlib
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from tacit.analyst.collection import TrustedKeys, check_together
from tacit.release.scales import ScalesRelease
from tacit.study import Study
from tacit.study.columns import Feature
from tacit.study.form import LARGEST_ENTRY
from tacit.study.terms import products_of

CLEAR = 4.0
"""A column's number of values must be at least so many standard deviations of its noise, or nothing
is learnt."""
EVEN_VARIANCE = 1 / 3
"""Variance of an even spread over the range: noise on the variance that is larger than this hides
any scale."""
NEARLY_WHOLE = 0.9
"""An interval that covers this share of the range is not worth stating: the range is typical."""
WIDEN = 1.25
"""Step by which an interval is widened until a study may state it."""
DIGITS = 2
"""Decimal places of an interval's ends, counted from the leading digit of its width."""


def fix_scales(
    releases: Iterable[ScalesRelease],
    *,
    allow_simulated: bool = False,
    trusted_keys: TrustedKeys | None = None,
) -> Study:
    """The second stage's study: typical intervals, and the budget that the first stage left.

    From all holders' scales; the same documents, in any order, give the same study, whose
    `stage_one` is their hash.
    """
    releases = tuple(releases)
    check_together(releases, allow_simulated=allow_simulated, trusted_keys=trusted_keys)
    study = releases[0].study
    intervals = {
        feature.name: _typical(feature, _pooled(releases, k))
        for k, feature in enumerate(study.scaled)
    }
    document = study.document()
    for feature in document["features"]:
        feature["typical"] = intervals.get(feature["name"], feature["typical"])
    document |= {"epsilon": study.stages[1], "scales_share": None, "stage_one": _hash(releases)}
    features = tuple(Feature.model_validate(feature) for feature in document["features"])
    document["release"] |= _radius(study, features)
    return Study.from_document(document)


@dataclass(frozen=True)
class _Pooled:
    """Sums of one column over holders, and the standard deviations of their noise."""

    count: float
    total: float
    square: float
    count_sd: float
    total_sd: float
    square_sd: float


def _pooled(releases: Sequence[ScalesRelease], column: int) -> _Pooled:
    """Holders' sums, added up with weights in inverse proportion to their noise variance."""
    least = min(release.noise.total for release in releases)
    weights = [(least / release.noise.total) ** 2 for release in releases]
    sums = [release.columns[column] for release in releases]
    noise = [release.noise for release in releases]
    return _Pooled(
        count=_weighted(weights, [each.count for each in sums]),
        total=_weighted(weights, [each.total for each in sums]),
        square=_weighted(weights, [each.square for each in sums]),
        count_sd=_weighted_sd(weights, [each.count for each in noise]),
        total_sd=_weighted_sd(weights, [each.total for each in noise]),
        square_sd=_weighted_sd(weights, [each.square for each in noise]),
    )


def _weighted(weights: Sequence[float], values: Sequence[float]) -> float:
    return math.fsum(w * value for w, value in zip(weights, values, strict=True))


def _weighted_sd(weights: Sequence[float], sds: Sequence[float]) -> float:
    """Standard deviation of a weighted sum of independent noises."""
    return math.sqrt(math.fsum((w * sd) ** 2 for w, sd in zip(weights, sds, strict=True)))


def _spread(sums: _Pooled) -> tuple[float, float] | None:
    """Mean and sd of a column in units of half its range; None where noise hides them."""
    if sums.count < CLEAR * sums.count_sd:
        return None
    mean = sums.total / sums.count
    square = sums.square / sums.count
    mean_sd = math.hypot(sums.total_sd, mean * sums.count_sd) / sums.count
    by_total = 2 * mean * sums.total_sd
    by_count = (2 * mean**2 - square) * sums.count_sd
    variance_sd = math.hypot(sums.square_sd, by_total, by_count) / sums.count
    if variance_sd > EVEN_VARIANCE:
        return None
    variance = max(square - mean**2 + mean_sd**2, variance_sd)
    return min(1.0, max(-1.0, mean)), math.sqrt(variance)


def _typical(feature: Feature, sums: _Pooled) -> tuple[float, float] | None:
    """Interval m ± √3·s within the range, widened where a study could not state it.

    None where the range itself is to stand.
    """
    spread = _spread(sums)
    if spread is None:
        return None
    mean, sd = spread
    reach = math.sqrt(3) * sd
    middle, half = feature.mapping
    while True:
        low = max(-1.0, mean - reach)
        high = min(1.0, mean + reach)
        if high - low > 2 * NEARLY_WHOLE:
            return None
        interval = _rounded(feature, middle + half * low, middle + half * high)
        if _may_state(feature, interval):
            return interval
        reach *= WIDEN


def _rounded(feature: Feature, low: float, high: float) -> tuple[float, float]:
    """Ends with few digits, for a person to read, inside the range."""
    least, most = feature.range or (low, high)
    places = DIGITS - math.floor(math.log10(high - low)) if high > low else 0
    return max(least, round(low, places)), min(most, round(high, places))


def _may_state(feature: Feature, interval: tuple[float, float]) -> bool:
    try:
        Feature.model_validate(feature.model_dump() | {"typical": interval})
    except ValidationError:
        return False
    return True


def _radius(study: Study, features: tuple[Feature, ...]) -> dict[str, Any]:
    """A smaller row radius, and response weight with it.

    Where sums of rows this wide would not be exact (study.py). Where rows are planned, the form
    that is best for the new intervals.
    """
    if study.planned_rows:
        return dict.fromkeys(_defaults(study))
    longest = max((term.longest for term in products_of(features, study.terms)), default=0.0)
    if study.row_radius <= LARGEST_ENTRY or longest <= LARGEST_ENTRY:
        return {}
    return {
        "row_radius": LARGEST_ENTRY,
        "response_weight": study.response_weight * LARGEST_ENTRY / study.row_radius,
    }


def _defaults(study: Study) -> list[str]:
    """Fields of the release form that planned rows made, and so are to follow the intervals."""
    document = study.document()
    fields = ["row_radius", "response_bound", "response_weight"]
    form = {name: value for name, value in document["release"].items() if name not in fields}
    unstated = Study.from_document(document | {"release": form})
    return [name for name in fields if getattr(unstated, name) == document["release"][name]]


def _hash(releases: Sequence[ScalesRelease]) -> str:
    """SHA-256 over the documents' own hashes, sorted; signatures left out."""
    hashes = sorted(hashlib.sha256(release.canonical()).hexdigest() for release in releases)
    return "sha256:" + hashlib.sha256("\n".join(hashes).encode()).hexdigest()
