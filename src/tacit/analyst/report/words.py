"""Numbers and coefficients in plain words, without claims of cause."""

import math
from dataclasses import dataclass
from datetime import datetime

from tacit.columns import Feature
from tacit.study import Study


def number(value: float, spread: float | None = None) -> str:
    """A number with as many digits as matter: two of its spread, or three of its own."""
    if not math.isfinite(value):
        return "not known"
    if value == 0:
        return "0"
    size = abs(value) if spread is None or not spread > 0 else spread
    decimals = (1 if spread else 2) - math.floor(math.log10(size))
    if abs(value) >= 1e9 or decimals > 7:  # noqa: PLR2004
        return f"{value:.3g}".replace("-", "−")
    return f"{round(value, decimals):,.{max(decimals, 0)}f}".replace("-", "−")


def percent(share: float) -> str:
    """A share in per cent; very small and very large ones are not rounded away."""
    if not math.isfinite(share):
        return "not known"
    return "under 1 %" if 0 < share < 0.005 else "over 99 %" if 0.995 < share < 1 else f"{100 * share:.0f} %"  # noqa: PLR2004


def power(value: float) -> str:
    """A small number such as δ with its power of ten written out."""
    digits, _, exponent = f"{value:e}".partition("e")
    raised = str(int(exponent)).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    factor = f"{float(digits):g}"
    return f"10{raised}" if factor == "1" else f"{factor} × 10{raised}"


def moment(stamp: str) -> str:
    """A time of a document, for a reader."""
    try:
        return datetime.strptime(stamp, "%Y-%m-%dT%H:%M:%S%z").strftime("%-d %b %Y, %H:%M UTC")
    except ValueError:
        return "not known"


def listed(names: list[str], word: str = "and") -> str:
    """Names with commas, and a word before the last."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} {word} {names[-1]}"


def exact(value: float) -> str:
    """A number that somebody wrote down, as it was written."""
    return f"{value:,.10g}".replace("-", "−")


@dataclass(frozen=True)
class Term:
    """A coefficient in words: the feature, its contrast, and the step by which it is told."""

    feature: Feature
    level: str | None  # of a categorical feature

    @property
    def ends(self) -> tuple[str, str]:
        """The two ends of the contrast: from and to."""
        if self.level is not None:
            return self.feature.all_levels[0], self.level
        low, high = self.feature.typical or self.feature.range or (0.0, 1.0)
        return exact(low), exact(high)

    @property
    def label(self) -> str:
        """The feature, and its level where it has levels."""
        return self.feature.name if self.level is None else f"{self.feature.name} {self.level}"

    @property
    def contrast(self) -> str:
        """The contrast, for a label."""
        bottom, top = self.ends
        return f"{self.feature.name}: {top} against {bottom}"

    @property
    def step(self) -> float:
        """A round step of a numeric feature, of which its (typical) range has ten or more."""
        low, high = self.feature.typical or self.feature.range or (0.0, 1.0)
        return float(10.0 ** math.floor(math.log10((high - low) / 10)))


def terms(study: Study) -> list[Term]:
    """One per coefficient but the intercept."""
    return [
        Term(feature, None if feature.levels is None else level)
        for feature in study.features
        for level in (feature.all_levels[1:] if feature.levels is not None else ("",))
    ]
