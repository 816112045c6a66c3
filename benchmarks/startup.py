"""How long the command takes to start, which imports the time goes to, and what an install weighs.

`import tacit`, `tacit --help`, and `tacit fit` with the default method on ten releases of twenty
columns, each as a process of its own. What counts is the smallest of several runs: user plus system
time, which other work on the machine lengthens little, and the wall clock beside it. Import shares
come from Python's own `-X importtime`, summed over each package's modules.

With `--before DIR`, the checkout of another version, the same is measured of that version in turn,
run by run, and the ratios are held to a bar. The size of a core install is that of the package's
own files and of what pyproject.toml depends on, as installed here.

    python benchmarks/startup.py [--quick] [--check] [--before DIR]

`--check` exits 1 when a bar is missed.
"""

import os
import re
import resource
import subprocess
import sys
import tempfile
import time
import tomllib
from collections import Counter
from importlib import metadata
from pathlib import Path

from frame import Bench

MOST = {"import tacit": 0.2, "tacit --help": 0.3, "tacit fit": 1.0}
"""Bars: seconds of CPU, start included; the fit has d = 20 and J = 10."""
MOST_RATIO = 1.1
"""Bar: `import tacit` and the install's size, over those of the version before."""

COLUMNS = 20
HOLDERS = 10
SHOWN = 6
HERE = Path(__file__).parents[1]
Command = list[str]


def main() -> None:
    bench = Bench(__doc__, quick="3 runs instead of 10")
    bench.option("--before", type=Path, help="the checkout of another version to compare with")
    options = bench.options()
    trees = [HERE, *([options.before] if options.before else [])]
    runs = 3 if options.quick else 10
    with tempfile.TemporaryDirectory(prefix="tacit-startup-") as folder:
        commands = commands_in(Path(folder))
        times = {name: smallest(command, trees, runs) for name, command in commands.items()}
        shares = {name: import_shares(command) for name, command in commands.items()}
    table = bench.table("start", {"command": "<14", "CPU, s": ".2f", "wall, s": ".2f"})
    for name, most in MOST.items():
        cpu, wall = times[name][HERE]
        table.row(name, cpu, wall)
        bench.bar(f"{name}: {cpu:.2f} of at most {most:g} s of CPU", met=cpu <= most)
    for name, packages in shares.items():
        told = ", ".join(f"{package} {1e3 * seconds:.0f} ms" for package, seconds in packages)
        bench.say(f"{name}: imports {told}")
    bench.say(
        f"a core install is {install_size(HERE) / 1e6:.0f} MB, "
        f"of which our own files are {size_of(HERE) / 1e6:.2f}"
    )
    if options.before:
        compare(bench, times, options.before)
    bench.finish()


def commands_in(folder: Path) -> dict[str, Command]:
    """What is run, by name; releases for the fit are written there."""
    fit = ["-m", "tacit", "fit", *make_releases(folder), "--allow-simulated"]
    return {
        "import tacit": ["-c", "import tacit"],
        "tacit --help": ["-m", "tacit", "--help"],
        "tacit fit": [*fit, "--out", f"{folder}/posterior.parquet"],
    }


def compare(bench: Bench, times: dict[str, dict[Path, tuple[float, float]]], before: Path) -> None:
    """The ratios to the version before."""
    columns = {"": "<28", "before": ".3f", "now": ".3f", "ratio": ".2f"}
    table = bench.table("before and now", columns)
    rows = [(f"{name}, CPU s", times[name][before][0], times[name][HERE][0]) for name in MOST]
    rows.append(("core install, MB", install_size(before) / 1e6, install_size(HERE) / 1e6))
    rows.append(("our own files, MB", size_of(before) / 1e6, size_of(HERE) / 1e6))
    for name, old, new in rows:
        table.row(name, old, new, new / old)
        if name.startswith(("import", "core install")):
            bench.bar(
                f"{name}: {new / old:.2f} of at most {MOST_RATIO}", met=new / old <= MOST_RATIO
            )


def size_of(tree: Path) -> int:
    """Bytes of the package's files as a wheel holds them."""
    files = (tree / "src" / "tacit").rglob("*")
    return sum(
        path.stat().st_size for path in files if path.is_file() and "__pycache__" not in path.parts
    )


def install_size(tree: Path) -> int:
    """Bytes of a core install: the package and what it depends on, as installed here."""
    project = tomllib.loads((tree / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    waiting = [name_of(need) for need in project["dependencies"]]
    known: set[str] = set()
    total = size_of(tree)
    while waiting:
        name = waiting.pop()
        if name in known:
            continue
        known.add(name)
        try:
            package = metadata.distribution(name)
        except metadata.PackageNotFoundError:  # for another Python or system
            continue
        for file in package.files or []:
            path = Path(str(package.locate_file(file)))
            total += path.stat().st_size if path.is_file() else 0
        waiting += [name_of(need) for need in package.requires or [] if "extra ==" not in need]
    return total


def name_of(need: str) -> str:
    """The distribution of a requirement."""
    return re.split(r"[^\w.-]", need, maxsplit=1)[0].lower()


def make_releases(folder: Path) -> list[str]:
    """Ten holders' simulated releases of a study with twenty columns."""
    import numpy as np

    from tacit.simulation import simulate
    from tacit.study import Study

    rng = np.random.default_rng(0)
    study = Study.from_document(
        {
            "name": "startup",
            "epsilon": 1.0,
            "delta": 1e-6,
            "response": {"name": "y", "range": [-1, 1]},
            "features": [{"name": f"x{k}", "range": [-1, 1]} for k in range(COLUMNS - 1)],
        }
    )
    paths = []
    for holder in range(HOLDERS):
        paths.append(str(folder / f"{holder}.json"))
        rows = rng.uniform(-1, 1, (5000, COLUMNS))
        simulate(study, rows, rng, holder=f"holder {holder}").save(paths[-1])
    return paths


def smallest(command: Command, trees: list[Path], runs: int) -> dict[Path, tuple[float, float]]:
    """Least CPU seconds and least wall seconds of a command, in turn for each tree."""
    measures: dict[Path, list[tuple[float, float]]] = {tree: [] for tree in trees}
    for _ in range(runs):
        for tree in trees:
            measures[tree].append(measure(command, tree))
    return {
        tree: (min(cpu for cpu, _ in times), min(wall for _, wall in times))
        for tree, times in measures.items()
    }


def measure(command: Command, tree: Path) -> tuple[float, float]:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    begun = time.perf_counter()
    subprocess.run(
        [sys.executable, *command], check=True, stdout=subprocess.DEVNULL, env=environment(tree)
    )
    wall = time.perf_counter() - begun
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, wall


def import_shares(command: Command) -> list[tuple[str, float]]:
    """The packages whose own modules take longest to import, in seconds."""
    done = subprocess.run(
        [sys.executable, "-X", "importtime", *command],
        check=True,
        capture_output=True,
        text=True,
        env=environment(HERE),
    )
    own: Counter[str] = Counter()
    for microseconds, module in re.findall(
        r"import time:\s+(\d+) \|\s+\d+ \|\s+(\S+)", done.stderr
    ):
        own[module.split(".")[0]] += int(microseconds) * 1e-6
    return own.most_common(SHOWN)


def environment(tree: Path) -> dict[str, str]:
    return os.environ | {"OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": str(tree / "src")}


if __name__ == "__main__":
    main()
