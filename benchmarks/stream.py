"""Streams: what pooling batches costs in accuracy, and what one more batch costs.

And how fast rows are published.

Bars (--check): one more batch late in a long log costs at most BAR times what it costs early, and
pooling at most 5 % of accuracy.

    python benchmarks/stream.py [--quick] [--check]
"""

import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
from frame import Bench
from numpy.typing import NDArray

import tacit
from tacit.analyst.collection import Collection
from tacit.analyst.fit import fit
from tacit.analyst.follow import Follower
from tacit.analyst.streams import Accumulator
from tacit.release.log import Entry
from tacit.simulation import simulate
from tacit.study import Study

Array = NDArray[np.float64]

BAR = 2.0
FEATURES = 5
SHORT = ((10, 1000), (50, 1000))
LONG = (*SHORT, (50, 200), (200, 500))
STUDY = Study.from_document(
    {
        "name": "stream-benchmark",
        "epsilon": 1.0,
        "delta": 1e-6,
        "response": {"name": "y", "range": [-3, 3]},
        "features": [{"name": f"x{k}", "range": [-1, 1]} for k in range(FEATURES)],
    }
)


def table(rows: int, truth: Array, mixing: Array, rng: np.random.Generator) -> Array:
    x = np.clip(0.2 * rng.normal(size=(rows, FEATURES)) @ mixing, -1, 1)
    return np.column_stack([x, x @ truth + rng.normal(0, 0.5, rows)])


def accuracy(batches: int, rows: int, runs: int) -> dict[str, tuple[float, float, float]]:
    """Root mean square error of the scaled coefficients, coverage of 90 % intervals and seconds.

    Pooled, and each batch as a holder.
    """
    figures: dict[str, tuple[list[float], ...]] = {
        name: ([], [], []) for name in ("pooled", "apart")
    }
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        truth = rng.uniform(-0.5, 0.5, FEATURES)
        mixing = rng.normal(size=(FEATURES, FEATURES))
        releases = [
            simulate(STUDY, table(rows, truth, mixing, rng), rng, holder=str(b))
            for b in range(batches)
        ]
        same = [release.model_copy(update={"holder": "north"}) for release in releases]
        accumulator = Accumulator(Entry(same[0].in_stream("s", 1)))
        for number, release in enumerate(same, 1):
            accumulator.add(Entry(release.in_stream("s", number)))
        wanted = np.concatenate([[0.0], truth]) / 3
        for name, parts in (("pooled", (accumulator.summed(),)), ("apart", tuple(releases))):
            begun = time.perf_counter()
            posterior = fit(Collection(STUDY, parts))
            errors, covered, seconds = figures[name]
            seconds.append(time.perf_counter() - begun)
            low, high = posterior.interval(0.9, "scaled").T
            errors.append(float(np.mean((posterior.mean("scaled") - wanted) ** 2)))
            covered.append(float(np.mean((low < wanted) & (wanted < high))))
    return {
        name: (float(np.sqrt(np.mean(e))), float(np.mean(c)), float(np.mean(s)))
        for name, (e, c, s) in figures.items()
    }


def cost(batches: int, folder: Path) -> list[float]:
    """Median milliseconds to read, check and add one batch, and then to compute the posterior.

    After ten batches, and after all.
    """
    rng = np.random.default_rng(0)
    truth = np.zeros(FEATURES)
    mixing = np.eye(FEATURES)
    log = folder / "simulated.log"
    log.touch()
    follower = Follower([log], allow_simulated=True)
    add = []
    compute = []
    for number in range(1, batches + 1):
        release = simulate(STUDY, table(200, truth, mixing, rng), rng, holder="north")
        entry = Entry(release.in_stream("s", number))
        with log.open("a", encoding="utf-8") as file:
            file.write(entry.to_line())
        begun = time.perf_counter()
        follower.update()
        add.append(time.perf_counter() - begun)
        if 10 <= number < 20 or number > batches - 10:
            begun = time.perf_counter()
            follower.posterior()
            compute.append(time.perf_counter() - begun)
    late = max(batches // 10, 20)
    return [
        1e3 * float(np.median(part))
        for part in (add[10:30], add[-late:], compute[:10], compute[-10:])
    ]


def throughput(batches: int, rows: int, folder: Path) -> tuple[float, float]:
    """Rows and batches per second, ledger and log on disk included."""
    rng = np.random.default_rng(0)
    data = table(rows, np.zeros(FEATURES), np.eye(FEATURES), rng)
    names = [*(f"x{k}" for k in range(FEATURES)), "y"]
    batch = pa.record_batch(dict(zip(names, data.T, strict=True)))
    begun = time.perf_counter()
    tacit.stream(
        STUDY,
        [batch] * batches,
        holder="north",
        ledger=folder / "l.db",
        log=folder / "n.log",
        batch_rows=rows,
    )
    seconds = time.perf_counter() - begun
    return batches * rows / seconds, batches / seconds


def main() -> None:
    bench = Bench(__doc__, quick="fewer runs, and a shorter log")
    options = bench.options()
    runs = 6 if options.quick else 40
    long = 300 if options.quick else 1000
    columns = {"batches × rows": "<14", "pooled: error": ".4f", "covers": ".2f", "seconds": ".2f"}
    columns |= {"apart: error": ".4f", "apart covers": ".2f", "apart seconds": ".2f"}
    table = bench.table("pooling", columns)
    for batches, rows in SHORT if options.quick else LONG:
        both = accuracy(batches, rows, runs)
        table.row(f"{batches} × {rows}", *both["pooled"], *both["apart"])
        ratio = both["pooled"][0] / both["apart"][0]
        bench.bar(
            f"{batches} × {rows}: pooling costs {ratio - 1:.1%}, at most 5 %", met=ratio <= 1.05
        )
    with tempfile.TemporaryDirectory() as folder:
        early, late, first, last = cost(long, Path(folder))
        rate = throughput(20 if options.quick else 100, 10_000, Path(folder))
    table = bench.table("cost", {"milliseconds": "<20", "after 10": ".2f", f"after {long}": ".2f"})
    table.row("one more batch", early, late)
    table.row("the posterior", first, last)
    bench.say(f"publishing: {rate[0]:,.0f} rows and {rate[1]:.1f} batches of 10,000 per second")
    bench.bar(f"one more batch: {late / early:.2f} of at most {BAR:g}", met=late <= BAR * early)
    bench.bar(f"the posterior: {last / first:.2f} of at most {BAR:g}", met=last <= BAR * first)
    bench.finish()


if __name__ == "__main__":
    main()
