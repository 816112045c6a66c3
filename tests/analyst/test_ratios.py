"""Ratios as they are written: an interval near 1 is not rounded to a point.

Covers `tacit.analyst.posterior.ratios`.
"""

import pytest

from tacit.analyst.posterior.ratios import Ratio, Ratios
from tacit.analyst.report.families import _near_one

AGE = Ratio(name="age", ratio=1.04022, low=1.03698, high=1.04347)


def test_a_ratio_near_one_has_the_digits_that_its_interval_needs() -> None:
    assert AGE.written() == ("1.0402", "1.037", "1.0435")
    narrow = Ratio(name="income", ratio=1.0000120, low=1.0000104, high=1.0000136)
    assert narrow.written() == ("1.000012", "1.0000104", "1.0000136")
    assert "1.0402  1.037  1.0435" in str(Ratios(word="odds ratio", probability=0.9, rows=(AGE,)))


@pytest.mark.parametrize(
    ("ratio", "low", "high", "written"),
    [
        (1.5893, 1.4171, 1.7824, ("1.589", "1.417", "1.782")),
        (25.41, 19.68, 32.74, ("25.41", "19.68", "32.74")),
        (0.5, 0.0012, 312.4, ("0.5", "0.0012", "312.4")),
        (1.0, 1.0, 1.0, ("1", "1", "1")),
        (1e300, 1.0, float("inf"), ("1e+300", "1", "inf")),
    ],
)
def test_other_ratios_have_four_digits(
    ratio: float, low: float, high: float, written: tuple[str, str, str]
) -> None:
    assert Ratio(name="x", ratio=ratio, low=low, high=high).written() == written


def test_a_report_writes_them_so() -> None:
    width = AGE.high - AGE.low
    assert [_near_one(value, width) for value in (AGE.low, AGE.high)] == ["1.0370", "1.0435"]
    assert [_near_one(value, 13.0) for value in (25.41, 19.68)] == ["25.4", "19.7"]
    assert [_near_one(value, 312.0) for value in (0.5, 0.0012)] == ["0.500", "0.00120"]
