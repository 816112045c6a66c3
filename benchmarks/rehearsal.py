"""What rehearsing costs beside publishing the same table.

CPU time on 5 million rows of 20 columns, from one Parquet file. Three measures: `publish` from a
program, `rehearse`, and `publish` as the command line runs it, which looks at the very rows that it
publishes (`confirm`). Each is a process of its own; the smallest of several runs counts.

    python benchmarks/rehearsal.py [--quick] [--check]

`--quick` takes 500,000 rows; `--check` exits 1 when a bar is missed.
"""

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

from frame import Bench, cpu_time, measured_apart, peak_memory
from publish import FEATURES, least, make_table

MOST_RATIO = 1.3
"""Bar: CPU time of rehearsing, and of publishing with a look, against publishing."""


def main() -> None:
    bench = Bench(__doc__, quick="500,000 rows instead of 5 million")
    bench.option("--repeats", type=int, default=3, help="runs of each; the smallest counts")
    bench.option("--measure", nargs=2, metavar=("WHAT", "PATH"), help=argparse.SUPPRESS)
    options = bench.options()
    if options.measure:
        what, path = options.measure
        print(json.dumps(measure(what, path)))
        return
    compare(bench, 500_000 if options.quick else 5_000_000, options.repeats)
    bench.finish()


def compare(bench: Bench, rows: int, repeats: int) -> None:
    """Measure all three, in turn so that a busy spell meets all, and set the bars."""
    with tempfile.TemporaryDirectory(prefix="tacit-benchmark-") as folder:
        path = make_table(Path(folder) / "table.parquet", rows)
        runs: dict[str, list[dict[str, float]]] = {"publish": [], "rehearse": [], "confirm": []}
        for _ in range(repeats):
            for name, measures in runs.items():
                measures.append(measured_apart(__file__, name, path))
    columns = {"": "<12", "rows": ",", "CPU, s": ".2f", "peak, MB": ".0f", "ratio": ".2f"}
    table = bench.table("rehearsal", columns)
    base = least(runs["publish"], "cpu")
    for name, measures in runs.items():
        cpu = least(measures, "cpu")
        table.row(name, rows, cpu, least(measures, "peak") / 1e6, cpu / base)
    for name in ("rehearse", "confirm"):
        ratio = least(runs[name], "cpu") / base
        bench.bar(
            f"{name}: CPU ratio {ratio:.2f} of at most {MOST_RATIO}, to publishing",
            met=ratio <= MOST_RATIO,
        )


def measure(what: str, path: str) -> dict[str, float]:
    """One of the three, ledger and noise included where there are any."""
    from tacit import Study, publish, rehearse
    from tacit.privacy.noise import secure_noise

    study = Study.from_document(
        {
            "name": "benchmark",
            "epsilon": 1.0,
            "delta": 1e-6,
            "response": {"name": "y", "range": [-3, 3]},
            "features": [{"name": name, "range": [-3, 3]} for name in FEATURES],
        }
    )
    secure_noise([1.0], 0)
    with tempfile.TemporaryDirectory() as folder:
        given: dict[str, Any] = {"holder": "benchmark", "ledger": Path(folder) / "ledger.db"}
        start = cpu_time()
        if what == "rehearse":
            rehearse(study, path, **given)
        elif what == "confirm":
            publish(study, path, confirm=lambda _rehearsal: None, **given)
        else:
            publish(study, path, **given)
        return {"cpu": cpu_time() - start, "peak": peak_memory()}


if __name__ == "__main__":
    main()
