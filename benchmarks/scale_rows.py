"""How publishing from Parquet scales with cores, up to 10⁹ rows of 20 columns.

Seconds on the clock of `publish`, from a list of files to a release: workers started, rows read,
ledger charged, noise drawn. Each measure is a process of its own, held to as many cores as it has
workers; what is compared are rows per second. Files hold normal columns in full precision; several
are made, in parallel, and each stands in the folder under many names (hard links), so that the
largest table fits on a small disk. It is read from the page cache then: no disk is measured.

A first table tells whether the sums are the same to the last bit, whoever read which piece. In the
last line of the table `publish` looks at the rows it publishes, as the command does by itself.

    python benchmarks/scale_rows.py [--quick] [--check] [--rows N] [--folder DIR]

`--quick` takes 8 million rows and two cores; `--check` exits 1 when a bar is missed. All of it
takes about four minutes on 16 cores, 7 GB of disk and as much page cache.
"""

import argparse
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from frame import Bench, measured_apart, peak_memory
from publish import FEATURES, make_table

LEAST_ON_TWO = 1.8
"""Bar: rows per second by two processes on two cores, against one on one."""
LEAST_ON_SIXTEEN = 10.0
"""Bar: the same of sixteen."""
FILE_ROWS = 2_500_000
COLUMNS = {"": "<12", "processes": ",", "rows": ",", "seconds": ".1f", "million rows per s": ".2f"}
COLUMNS |= {"times one": ".2f", "per core": ".2f", "peak of one process, MB": ".0f"}


def main() -> None:
    bench = Bench(__doc__, quick="8 million rows, one and two cores")
    bench.option("--rows", type=float, default=1e9, help="rows of the largest table")
    bench.option("--folder", type=Path, help="where the files are made [default: a temporary one]")
    bench.option("--repeats", type=int, default=3, help="runs of one and two; the best count")
    bench.option("--measure", nargs=3, metavar=("WHAT", "PATH", "COUNT"), help=argparse.SUPPRESS)
    options = bench.options()
    if options.measure:
        what, path, count = options.measure
        print(json.dumps(MEASURES[what](path, int(count))))
        return
    with tempfile.TemporaryDirectory(prefix="tacit-benchmark-", dir=options.folder) as folder:
        compare(bench, Path(folder), options)
    bench.finish()


def compare(bench: Bench, folder: Path, options: argparse.Namespace) -> None:
    """Measure one core, two, and all, and set the bars."""
    cores = len(os.sched_getaffinity(0))
    files = make_files(
        folder, 2 if options.quick else 16, 1_000_000 if options.quick else FILE_ROWS
    )
    rows = sum(size for _, size in files)
    check_bits(bench, files[0][0], cores)
    table = bench.table("scale_rows", COLUMNS)
    counts = [1, 2] if options.quick else sorted({1, 2, min(4, cores), min(8, cores), cores})
    rates: dict[int, float] = {}
    base = 4 * rows if options.quick else rows
    for count in counts:
        size = base * count  # about as long for each, so that start-up weighs alike
        if count == cores and not options.quick:
            size = int(options.rows)
        rates[count] = measure(table, folder, files, size, count, rates, options.repeats)
    looked = base * max(1, counts[-1] // 2)
    measure(table, folder, files, looked, counts[-1], rates, 1, what="confirm")
    for count, least in ((2, LEAST_ON_TWO), (16, LEAST_ON_SIXTEEN)):
        if count in rates:
            ratio = rates[count] / rates[1]
            bench.bar(
                f"{count} cores: {ratio:.2f} times one, of at least {least}", met=ratio >= least
            )
    bench.say(
        f"{rates[1] / 1e6:.2f} million rows per second on one core, best of {options.repeats}"
    )


def measure(  # noqa: PLR0917
    table: Any,  # noqa: ANN401
    folder: Path,
    files: list[tuple[Path, int]],
    rows: int,
    count: int,
    rates: dict[int, float],
    repeats: int,
    what: str = "publish",
) -> float:
    """Rows per second, the best of some runs, as a line of the table."""
    place = linked(folder, files, rows)
    runs = [
        measured_apart(__file__, what, place, count) for _ in range(repeats if count < 3 else 1)
    ]
    best = min(runs, key=lambda run: run["seconds"])
    held = len(list(place.iterdir())) * files[0][1]
    rate = held / best["seconds"]
    one = rates.get(1, rate)
    name = "with a look" if what == "confirm" else what
    figures = (rate / 1e6, rate / one, rate / one / count, best["peak"] / 1e6)
    table.row(name, count, held, best["seconds"], *figures)
    return rate


def make_files(folder: Path, count: int, rows: int) -> list[tuple[Path, int]]:
    """Files of their own rows, made by as many processes as there are."""
    paths = [folder / f"base{number}.parquet" for number in range(count)]
    begun = [
        subprocess.Popen(
            [sys.executable, __file__, "--measure", "make", str(path), str(rows)],
            stdout=subprocess.DEVNULL,
        )
        for path in paths
    ]
    for process in begun:
        if process.wait():
            sys.exit("a file could not be made")
    return [(path, rows) for path in paths]


def linked(folder: Path, files: list[tuple[Path, int]], rows: int) -> Path:
    """A folder of about so many rows, in which each file stands under several names."""
    place = folder / f"rows{rows}"
    if place.exists():
        return place
    place.mkdir()
    number = 0
    while number * files[0][1] < rows:
        os.link(files[number % len(files)][0], place / f"{number:05}.parquet")
        number += 1
    return place


def check_bits(bench: Bench, path: Path, cores: int) -> None:
    """The same sums by one process, two and all."""
    digests = {
        count: measured_apart(__file__, "digest", path, count)["digest"]
        for count in sorted({1, 2, cores})
    }
    bench.bar(
        f"the sums of {', '.join(map(str, digests))} processes are equal to the last bit",
        met=len(set(digests.values())) == 1,
    )


# In a process of its own.


def study() -> Any:  # noqa: ANN401
    """The agreement that is measured: every range is ±3."""
    from tacit import Study

    return Study.from_document(
        {
            "name": "benchmark",
            "epsilon": 1.0,
            "delta": 1e-6,
            "response": {"name": "y", "range": [-3, 3]},
            "features": [{"name": name, "range": [-3, 3]} for name in FEATURES],
        }
    )


def hold_to(count: int) -> None:
    """Take so many cores, and a process for each."""
    cores = sorted(os.sched_getaffinity(0), key=lambda core: (sibling(core), core))
    os.sched_setaffinity(0, set(cores[:count]))
    os.environ["TACIT_PROCESSES"] = str(count)


def sibling(core: int) -> int:
    """How far behind the first thread of its processor core this one is numbered: 0 for that."""
    place = Path(f"/sys/devices/system/cpu/cpu{core}/topology/thread_siblings_list")
    if not place.exists():
        return 0
    return core - int(re.split("[-,]", place.read_text(encoding="ascii"))[0])


def published(path: str, count: int, **terms: Any) -> dict[str, float]:  # noqa: ANN401
    """Seconds on the clock, and memory of this process or the largest of its workers."""
    import resource

    from tacit import publish
    from tacit.privacy.noise import secure_noise

    agreed = study()
    secure_noise([1.0], 0)  # imports OpenDP
    hold_to(count)
    with tempfile.TemporaryDirectory() as folder:
        begun = time.perf_counter()
        publish(agreed, path, holder="benchmark", ledger=Path(folder) / "ledger.db", **terms)
        seconds = time.perf_counter() - begun
    workers = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
    return {"seconds": seconds, "peak": max(workers, peak_memory() if count == 1 else 0)}


def looked_at(path: str, count: int) -> dict[str, float]:
    """The same, with a look at the rows."""
    return published(path, count, confirm=lambda _rehearsal: None)


def digest(path: str, count: int) -> dict[str, Any]:
    """A digest of the exact sums."""
    from tacit.holder import pieces
    from tacit.holder.statistics import STATISTICS
    from tacit.holder.tally import total_of

    hold_to(count)
    pieces.LEAST_WORK = 1
    numbers = total_of(STATISTICS, study(), path).numbers
    return {"digest": hashlib.sha256(json.dumps(numbers).encode()).hexdigest()}


def make(path: str, rows: int) -> dict[str, float]:
    """A file; its rows depend on its name."""
    number = int("".join(filter(str.isdecimal, Path(path).stem)))
    make_table(Path(path), rows, seed=number)
    return {}


MEASURES = {"publish": published, "confirm": looked_at, "digest": digest, "make": make}


if __name__ == "__main__":
    main()
