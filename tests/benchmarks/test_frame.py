"""The frame of every benchmark: its help can be read whatever it speaks of.

Covers `benchmarks/frame.py`.
"""

from benchmarks.frame import Bench


def test_help_may_speak_of_percents() -> None:
    bench = Bench("rates of 5 %", quick="rates of 5 and 50 %, few runs")
    bench.option("--runs", type=int, default=1, help="runs; 10 % of them are kept")
    text = bench.parser.format_help()
    assert "rates of 5 and 50 %, few runs" in text
    assert "10 % of them" in text
