"""How long the command takes to start, and which imports the time goes to.

`tacit --help`, and `tacit fit` with the default method on ten releases of twenty columns, each as a
process of its own. What counts is the smallest of several runs: user plus system time, which other
work on the machine lengthens little, and the wall clock beside it. Import shares come from Python's
own `-X importtime`, summed over each package's modules.

    python benchmarks/startup.py [--quick] [--check]

`--check` exits 1 when a bar is missed.
"""

import argparse
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

MOST_HELP = 0.3
"""Bar: seconds of CPU for `tacit --help`."""
MOST_FIT = 1.0
"""Bar: seconds of CPU for `tacit fit`, d = 20, J = 10, start included."""

COLUMNS, HOLDERS = 20, 10
TACIT = [sys.executable, "-m", "tacit"]
SHOWN = 6


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure how long the command takes to start.")
    parser.add_argument("--quick", action="store_true", help="3 runs instead of 10")
    parser.add_argument("--check", action="store_true", help="exit 1 when a bar is missed")
    arguments = parser.parse_args()
    runs = 3 if arguments.quick else 10
    with tempfile.TemporaryDirectory(prefix="tacit-startup-") as folder:
        releases = make_releases(Path(folder))
        commands = {
            "tacit --help": (["--help"], MOST_HELP),
            "tacit fit": (
                ["fit", *releases, "--out", f"{folder}/posterior.parquet", "--allow-simulated"],
                MOST_FIT,
            ),
        }
        shares = {name: import_shares(command) for name, (command, _) in commands.items()}
        times = {name: smallest(command, runs) for name, (command, _) in commands.items()}
    missed = False
    for name, (_, bar) in commands.items():
        cpu, wall = times[name]
        print(
            f"{name}: imports "
            + ", ".join(f"{package} {1e3 * seconds:.0f} ms" for package, seconds in shares[name])
        )
        print(f"{name}: {cpu:.2f} s CPU (bar {bar:g}), {wall:.2f} s wall")
        missed |= cpu > bar
    sys.exit(1 if arguments.check and missed else 0)


def make_releases(folder: Path) -> list[str]:
    """Ten holders' simulated releases of a study with twenty columns."""
    import numpy as np

    from tacit.simulation import simulate
    from tacit.study import Study
    from tacit.study.columns import Feature, Response

    rng = np.random.default_rng(0)
    features = tuple(Feature(name=f"x{k}", range=(-1, 1)) for k in range(COLUMNS - 1))
    study = Study(
        name="startup",
        epsilon=1.0,
        delta=1e-6,
        response=Response(name="y", range=(-1, 1)),
        features=features,
    )
    paths = []
    for holder in range(HOLDERS):
        paths.append(str(folder / f"{holder}.json"))
        simulate(study, rng.uniform(-1, 1, (5000, COLUMNS)), rng, holder=f"holder {holder}").save(
            paths[-1]
        )
    return paths


def smallest(command: list[str], runs: int) -> tuple[float, float]:
    """Least CPU seconds and least wall seconds of a command."""
    found = [measure(command) for _ in range(runs)]
    return min(cpu for cpu, _ in found), min(wall for _, wall in found)


def measure(command: list[str]) -> tuple[float, float]:
    before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run([*TACIT, *command], check=True, stdout=subprocess.DEVNULL, env=environment())
    wall, after = time.perf_counter() - begun, resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, wall


def import_shares(command: list[str]) -> list[tuple[str, float]]:
    """The packages whose own modules take longest to import, in seconds."""
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "tacit", *command],
        check=True,
        capture_output=True,
        text=True,
        env=environment(),
    )
    own: Counter[str] = Counter()
    for microseconds, module in re.findall(
        r"import time:\s+(\d+) \|\s+\d+ \|\s+(\S+)", done.stderr
    ):
        own[module.split(".")[0]] += int(microseconds) * 1e-6
    return own.most_common(SHOWN)


def environment() -> dict[str, str]:
    return os.environ | {"OPENBLAS_NUM_THREADS": "1"}


if __name__ == "__main__":
    main()
