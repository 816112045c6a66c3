"""Many holders, many columns: what it takes an analyst.

Releases are files, as holders would send them: 20 columns, 1,000 rows each, every one with noise of
its own; the rows behind them are those of 50 simulated tables. Holders' intercepts and one slope
differ. Collecting reads and checks every file; fitting is the default method's. Seconds are by the
clock and of CPU, processes that read included; memory is the largest at any time, of the process
and of those that read for it.

    python benchmarks/scale_holders.py [--quick] [--check] [--signed] [--holders 10000,100000]

`--quick` takes 2,000 holders and 100 columns; `--signed` has every release signed, and verified.
The bars are for two cores: on a machine with more, start it with `taskset -c 0,1`.
"""

import os

# Before NumPy: holders' matrices are small, and threads would wait for each other.
os.environ["OPENBLAS_NUM_THREADS"] = "1"

import argparse
import gzip
import json
import resource
import tempfile
import time
from functools import partial
from pathlib import Path

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from frame import Bench, measured_apart, peak_memory
from holders import agreement
from numpy.typing import NDArray
from pydantic_core import to_json

from tacit import Posterior, collect, fit
from tacit.analyst.evidence import Evidence
from tacit.analyst.methods import noise_aware
from tacit.release import Release
from tacit.release.signature import sign
from tacit.simulation import exact, simulate

Array = NDArray[np.float64]

MOST_SECONDS = 30.0
"""Bar: by the clock, 100,000 releases collected and fitted on two cores."""
MOST_MEMORY = 4e9
MANY = 100_000
MOST_WIDE_SECONDS = 60.0
"""Bar: by the clock, a fit of ten holders with 500 columns."""
MOST_FILE = 100e6
"""Bar: bytes of that posterior's file: some tens of matrices of 500 × 500."""
BEFORE = 75.8
"""CPU seconds that fitting 10,000 holders took before holders could differ (91a7934, on the
machine that the other figures of docs/scale.md are from)."""
SLOWER = 1.5
"""Bar: how many times that it may take now."""
KEY = Ed25519PrivateKey.from_private_bytes(bytes(32))
MOST_APART = 0.1
MOST_RATIO = 1.1
"""Bars: distance of the average from that of all holders' net, in sds, and ratio of the sds."""
TABLES = 50
ROWS = 1_000
WIDE = 500
WIDE_HOLDERS = 10


def main() -> None:
    bench = Bench(__doc__, quick="2,000 holders, 100 columns")
    bench.option("--holders", default="10000,100000", help="values of J, with commas between")
    bench.option("--signed", action="store_true", help="every release is signed")
    bench.option("--measure", nargs="+", help=argparse.SUPPRESS)
    options = bench.options()
    if options.measure:
        what, size, signed = options.measure
        kinds = {"many": partial(many, signed=signed == "signed"), "beside": beside, "wide": wide}
        print(json.dumps(kinds[what](int(size))))
        return
    counts = [2_000] if options.quick else [int(count) for count in options.holders.split(",")]
    show_many(bench, counts, "signed" if options.signed else "unsigned")
    show_beside(bench, 1_200 if options.quick else 4_000)
    show_wide(bench, 100 if options.quick else WIDE)
    bench.finish()


def show_many(bench: Bench, counts: list[int], signed: str) -> None:
    """A line for every number of holders, and the bars."""
    columns = {"holders": ",", "collect, s": ".1f", "fit, s": ".1f", "together, s": ".1f"}
    columns |= {"CPU, ms per holder": ".2f", "peak memory, MB": ",.0f"}
    table = bench.table(f"many {signed}", columns)
    for count in counts:
        one = measured_apart(__file__, "many", count, signed)
        seconds = one["collect"] + one["fit"]
        each = 1e3 * (one["collect_cpu"] + one["fit_cpu"]) / count
        table.row(count, one["collect"], one["fit"], seconds, each, one["peak"] / 1e6)
        if count == MANY and signed == "unsigned":
            bench.bar(f"{count:,}: {seconds:.1f} of {MOST_SECONDS:g} s", met=seconds < MOST_SECONDS)
            most = MOST_MEMORY / 1e6
            bench.bar(
                f"{count:,}: {one['peak'] / 1e6:,.0f} of {most:,.0f} MB",
                met=one["peak"] < MOST_MEMORY,
            )
        if count == MANY // 10:
            ratio = one["fit_cpu"] / BEFORE
            bench.bar(
                f"{count:,}: {ratio:.2f} of {SLOWER:g} times as long as before", met=ratio < SLOWER
            )


def show_beside(bench: Bench, holders: int) -> None:
    """A net that some tell beside one that all tell."""
    one = measured_apart(__file__, "beside", holders, "unsigned")
    columns = {"holders": ",", "centre, sds": ".3f", "least sd ratio": ".3f"}
    columns |= {"largest sd ratio": ".3f", "s": ".1f", "s, all": ".1f"}
    table = bench.table("beside", columns)
    ratios = (one["least"], one["largest"])
    table.row(holders, one["centre"], *ratios, one["some"], one["all"])
    bench.bar(
        f"the average within 0.1 sds ({one['centre']:.3f}), its sd within 10 %",
        met=one["centre"] < MOST_APART and 1 / MOST_RATIO < ratios[0] < ratios[1] < MOST_RATIO,
    )


def show_wide(bench: Bench, d: int) -> None:
    """Many columns."""
    columns = {"columns d": "d", "publish, s": ".1f", "collect, s": ".1f", "fit, s": ".1f"}
    columns |= {"report, s": ".1f", "release, MB": ".1f", "compressed, MB": ".1f"}
    columns |= {"posterior, MB": ".1f", "peak memory, MB": ",.0f"}
    table = bench.table("wide", columns)
    one = measured_apart(__file__, "wide", d, "unsigned")
    megabytes = [one[name] / 1e6 for name in ("release", "compressed", "posterior", "peak")]
    table.row(d, one["publish"], one["collect"], one["fit"], one["report"], *megabytes)
    bench.bar(
        f"d = {d}: fit {one['fit']:.1f} of {MOST_WIDE_SECONDS:g} s",
        met=one["fit"] < MOST_WIDE_SECONDS,
    )
    bench.bar(
        f"d = {d}: posterior {one['posterior'] / 1e6:.1f} of {MOST_FILE / 1e6:g} MB",
        met=one["posterior"] < MOST_FILE,
    )


def many(holders: int, *, signed: bool) -> dict[str, float]:
    """Write so many releases, collect them and fit."""
    with tempfile.TemporaryDirectory(prefix="tacit-benchmark-") as folder:
        write_releases(Path(folder), holders, signed=signed)
        start = time.perf_counter()
        before = cpu()
        collection = collect(folder, allow_simulated=True)
        collected = time.perf_counter()
        between = cpu()
        fit(collection)
        fitted = time.perf_counter()
    return {
        "collect": collected - start,
        "fit": fitted - collected,
        "collect_cpu": between - before,
        "fit_cpu": cpu() - between,
        "peak": peak_memory() + readers_memory(),
    }


def cpu() -> float:
    """Seconds of this process and of those that it started and that have ended."""
    both = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in both)


def readers_memory() -> float:
    """Bytes that processes which read took at most, were all as large as the largest."""
    largest = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
    return float(largest * len(os.sched_getaffinity(0)))


def write_releases(folder: Path, holders: int, *, signed: bool) -> None:
    """So many files, each with noise of its own."""
    study = agreement()
    rng = np.random.default_rng(holders)
    tables = [table_of(study.d, rng) for _ in range(TABLES)]
    kinds = [exact(study, table) for table in tables]
    sample = simulate(study, tables[0], rng, holder="HOLDER")
    text = sample.to_json()
    head = text[: text.index('"holder"')]
    tail = text[text.rindex('"smallest_eigenvalue"') :]
    for number in range(holders):
        numbers = noisy(sample, kinds[number % TABLES], rng)
        stated = to_json({"holder": f"h{number}", "n": ROWS} | numbers).decode().strip("{}")
        document = f"{head}{stated}, {tail}"
        if signed:
            document = sign(Release.from_json(document), KEY).to_json()
        (folder / f"{number}.json").write_text(document, encoding="utf-8")


def table_of(d: int, rng: np.random.Generator) -> Array:
    """A holder's rows, the response last; intercept and first slope are its own."""
    x = rng.standard_normal((ROWS, d - 1))
    slopes = np.full(d - 1, 0.3 / np.sqrt(d))
    slopes[0] += 0.1 * rng.standard_normal()
    y = 0.1 * rng.standard_normal() + x @ slopes + 0.5 * rng.standard_normal(ROWS)
    return np.column_stack([x, y])


def noisy(sample: Release, kind: Evidence, rng: np.random.Generator) -> dict[str, object]:
    """Numbers of a release with these rows, and the noise that the sample states."""
    noise = sample.noise
    d = kind.d
    gram = np.triu(noise.xtx_off_diagonal * rng.standard_normal((d, d)), 1)
    gram = kind.grams[0] + gram + gram.T
    gram[range(d), range(d)] += noise.xtx_diagonal * rng.standard_normal(d)
    moment = kind.moments[0] + noise.xty * rng.standard_normal(d)
    square = np.sum(kind.squares) + (noise.yty or 0.0) * rng.standard_normal()
    return {"xtx": gram.tolist(), "xty": moment.tolist(), "yty": float(square)}


def beside(holders: int) -> dict[str, float]:
    """How far the average lies from what a net solved for all holders gives, five columns."""
    study = agreement(5)
    rng = np.random.default_rng(holders)
    releases = [
        simulate(study, table_of(5, rng), rng, holder=f"h{number}") for number in range(holders)
    ]
    collection = collect(releases, allow_simulated=True)
    start = time.process_time()
    some = fit(collection)
    between = time.process_time()
    noise_aware.some_of = lambda evidence: evidence
    every = fit(collection)
    end = time.process_time()
    sd = every.sd("scaled")
    ratios = some.sd("scaled") / sd
    return {
        "centre": float(np.max(np.abs(some.mean("scaled") - every.mean("scaled")) / sd)),
        "least": float(ratios.min()),
        "largest": float(ratios.max()),
        "some": between - start,
        "all": end - between,
    }


def wide(d: int) -> dict[str, float]:
    """Publish, collect, fit, save and report a study of so many columns."""
    study = agreement(d)
    rng = np.random.default_rng(d)
    tables = [np.repeat(table_of(d, rng), 20, axis=0) for _ in range(WIDE_HOLDERS)]
    with tempfile.TemporaryDirectory(prefix="tacit-benchmark-") as place:
        folder = Path(place)
        start = time.perf_counter()
        for number, table in enumerate(tables):
            simulate(study, table, rng, holder=f"h{number}").save(folder / f"{number}.json")
        published = time.perf_counter()
        collection = collect(folder, allow_simulated=True)
        collected = time.perf_counter()
        posterior = fit(collection)
        fitted = time.perf_counter()
        posterior.save(folder / "posterior.parquet")
        Posterior.load(folder / "posterior.parquet").report(folder / "report.html")
        reported = time.perf_counter()
        text = (folder / "0.json").read_bytes()
        saved = (folder / "posterior.parquet").stat().st_size
    return {
        "publish": (published - start) / WIDE_HOLDERS,
        "collect": collected - published,
        "fit": fitted - collected,
        "report": reported - fitted,
        "release": len(text),
        "compressed": len(gzip.compress(text)),
        "posterior": saved,
        "peak": peak_memory(),
    }


if __name__ == "__main__":
    main()
