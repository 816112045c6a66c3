"""What a later visit costs beside the first, and beside publishing in one visit.

CPU time and memory on 5 million rows of 20 columns, from one Parquet file, by one process. A single
holder's study of six visits: the first one asks where values lie, the second for a first answer,
and every later one for a correction of it. Each measure is a process of its own that reads the
table for one of them; the smallest of several runs counts.

    python benchmarks/visit_cost.py [--quick] [--check]

`--quick` takes 1 million rows; `--check` exits 1 when a bar is missed.
"""

import argparse
import json
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

from frame import Bench, cpu_time, measured_apart, peak_memory
from publish import FEATURES, least, make_table

MOST_RATIO = 1.3
"""Bar: CPU time of a later visit against the first."""
MOST_GROWTH = 1.1
"""Bar: peak memory of a later visit with five times the rows."""
VISITS = {"one visit": 0, "first": 1, "second": 2, "third": 3}


def main() -> None:
    bench = Bench(__doc__, quick="1 million rows instead of 5 million")
    bench.option("--repeats", type=int, default=3, help="runs of each; the smallest counts")
    bench.option("--measure", nargs=2, metavar=("VISIT", "PATH"), help=argparse.SUPPRESS)
    options = bench.options()
    if options.measure:
        visit, path = options.measure
        print(json.dumps(measure(int(visit), path)))
        return
    compare(bench, 1_000_000 if options.quick else 5_000_000, options.repeats)
    bench.finish()


def compare(bench: Bench, rows: int, repeats: int) -> None:
    """Measure all, in turn so that a busy spell meets all, and set the bars."""
    runs: dict[str, list[dict[str, float]]] = {name: [] for name in VISITS}
    with tempfile.TemporaryDirectory(prefix="tacit-benchmark-") as folder:
        path = make_table(Path(folder) / "table.parquet", rows)
        fifth = make_table(Path(folder) / "fifth.parquet", rows // 5)
        for _ in range(repeats):
            for name, visit in VISITS.items():
                runs[name].append(measured_apart(__file__, visit, path))
        few = [measured_apart(__file__, VISITS["third"], fifth) for _ in range(repeats)]
    columns = {"visit": "<10", "rows": ",", "CPU, s": ".2f", "to the first": ".2f"}
    table = bench.table("visit_cost", columns | {"peak, MB": ".0f"})
    first = least(runs["first"], "cpu")
    for name, measures in runs.items():
        cpu = least(measures, "cpu")
        table.row(name, rows, cpu, cpu / first, least(measures, "peak") / 1e6)
    for name in ("second", "third"):
        ratio = least(runs[name], "cpu") / first
        sentence = f"{name} visit: CPU ratio {ratio:.2f} of at most {MOST_RATIO}, to the first"
        bench.bar(sentence, met=ratio <= MOST_RATIO)
    growth = least(runs["third"], "peak") / least(few, "peak")
    sentence = f"memory ratio {growth:.2f} of at most {MOST_GROWTH} for five times the rows"
    bench.bar(sentence, met=growth <= MOST_GROWTH)


def measure(visit: int, path: str) -> dict[str, float]:
    """Read the table for one visit; the questions before it are answered by no rows."""
    from tacit.holder.charge import Purpose
    from tacit.holder.statistics import STATISTICS
    from tacit.holder.tally import total_of
    from tacit.holder.visits import converse, nothing, read_table
    from tacit.privacy.noise import rehearsal
    from tacit.release.question import Question

    study = agreed(6 if visit else 1)
    if not visit:
        return timed(lambda: total_of(STATISTICS, study, path))
    questions: list[Question | None] = []

    def note(question: Question | None) -> Any:  # noqa: ANN401
        questions.append(question)
        return nothing(study, question)

    converse(study, note, Purpose("benchmark", "default"), rehearsal)
    return timed(partial(read_table, study, path, questions[visit - 1]))


def timed(work: Any) -> dict[str, float]:  # noqa: ANN401
    """CPU time of some work, and the peak memory of this process."""
    start = cpu_time()
    work()
    return {"cpu": cpu_time() - start, "peak": peak_memory()}


def agreed(visits: int) -> Any:  # noqa: ANN401
    """The agreement that is measured: every range is ±3."""
    from tacit import Study

    return Study.from_document(
        {
            "name": "benchmark",
            "epsilon": 1.0,
            "delta": 1e-6,
            "visits": visits,
            "planned_rows": [5_000_000],
            "response": {"name": "y", "range": [-3, 3]},
            "features": [{"name": name, "range": [-3, 3]} for name in FEATURES],
        }
    )


if __name__ == "__main__":
    main()
