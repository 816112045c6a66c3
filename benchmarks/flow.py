"""The path that data take through the package: modules in the order of their first call.

`publish`, `fit` and `report` are the commands, run as a user runs them; `federated` is a whole run
over three sites in one process. A profiler notes the first call of a function of each module;
importing does not count. Printed: how many modules in how many folders, how often the path leaves
one folder for another, and how often it comes back to one; with --path the path itself. `--before
DIR`, the checkout of another version, is measured too. A flow that needs what is not installed
(Flower) is left out, and said so.

There is no bar: the figures tell how far somebody who follows a value has to walk.

    python benchmarks/flow.py [--path] [--before DIR]
"""

import argparse
import itertools
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import FrameType

from frame import Bench, Table

HERE = Path(__file__).parents[1]
STUDY = """
name = "flow"
epsilon = 1.0
delta = 1e-6
[response]
name = "y"
range = [0, 10]
[[features]]
name = "x"
range = [0, 1]
[[features]]
name = "ward"
levels = ["a", "b"]
other = "b"
"""
POLICY = """
holder = "{holder}"
data = ["rows.csv"]
dataset = "rows"
ledger = "ledger.db"
approval = false
studies = ["*"]
[most]
epsilon = 1.0
delta = 1e-6
epsilon_in_all = 1.0
delta_in_all = 1e-6
"""
SITES = ("north", "south", "east")


def rows() -> str:
    lines = [f"{k % 10},{(k % 7) / 7},{'ab'[k % 2]}" for k in range(500)]
    return "\n".join(["y,x,ward", *lines]) + "\n"


def command(*words: str) -> None:
    """A command of the package, in this process."""
    from tacit.cli import main

    sys.argv = ["tacit", *words]
    try:
        main()
    except SystemExit as end:
        if end.code:
            raise


def publish() -> None:
    command("publish", "study.toml", "rows.csv", "--holder", "north", "--out", "north.json")


def fit() -> None:
    command("fit", "north.json", "--out", "posterior.parquet")


def report() -> None:
    command("report", "posterior.parquet", "--out", "report.html")


def federated() -> None:
    """A server's run over three sites that answer in this process."""
    from tacit.federation.client.app import app
    from tacit.federation.local import LocalGrid, Node
    from tacit.federation.server import gather
    from tacit.federation.server.app import Order, federate
    from tacit.federation.server.ask import Patience
    from tacit.study import Study

    nodes = {}
    for number, holder in enumerate(SITES):
        place = Path(holder)
        place.mkdir()
        (place / "rows.csv").write_text(rows(), encoding="utf-8")
        (place / "holder.toml").write_text(POLICY.format(holder=holder), encoding="utf-8")
        nodes[number] = Node(app, {"policy": str((place / "holder.toml").resolve())})
    inquiry = gather.Inquiry if hasattr(gather, "Inquiry") else gather.Terms  # its name before
    terms = inquiry(Study.from_toml(STUDY), Patience(60.0, 10.0, 0.0), least=len(SITES))
    federate(LocalGrid(nodes), Order(terms, Path("federated"), "noise-aware", "weak"))


FLOWS: dict[str, Callable[[], None]] = {
    "publish": publish,
    "fit": fit,
    "report": report,
    "federated": federated,
}


def traced(flow: Callable[[], None]) -> list[str]:
    """The package's modules in the order of the first call of a function of each."""
    import tacit

    home = f"{Path(tacit.__file__).parent}{os.sep}"
    modules: dict[str, None] = {}

    def note(frame: FrameType, event: str, _argument: object) -> None:
        place = frame.f_code.co_filename
        if event != "call" or not place.startswith(home):
            return
        name = place.removeprefix(home).removesuffix(".py")
        if name not in modules and not is_importing(frame, home):
            modules[name] = None

    sys.setprofile(note)
    try:
        flow()
    finally:
        sys.setprofile(None)
    return list(modules)


def is_importing(frame: FrameType | None, home: str) -> bool:
    """Whether a call is part of some module's being imported: a class's body, a decorator."""
    while frame is not None:
        code = frame.f_code
        if code.co_name == "<module>" and code.co_filename.startswith(home):
            return True
        frame = frame.f_back
    return False


def trace_here(name: str) -> list[str]:
    """Run what a flow needs, then the flow itself, in a folder of its own."""
    with tempfile.TemporaryDirectory(prefix="tacit-flow-") as folder:
        os.chdir(folder)
        os.environ["TACIT_LEDGER"] = f"{folder}/ledger.db"
        Path("study.toml").write_text(STUDY, encoding="utf-8")
        Path("rows.csv").write_text(rows(), encoding="utf-8")
        order = list(FLOWS)
        before = order[: order.index(name)] if name in {"fit", "report"} else []
        for earlier in before:
            FLOWS[earlier]()
        return traced(FLOWS[name])


def path_of(name: str, tree: Path) -> list[str] | None:
    """The path of a flow through the package of a checkout; None where it cannot be run."""
    done = subprocess.run(
        [sys.executable, __file__, "--measure", name],
        env=os.environ | {"PYTHONPATH": str(tree / "src"), "FLWR_TELEMETRY_ENABLED": "0"},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        return None
    modules: list[str] = json.loads(done.stdout.splitlines()[-1])
    return modules


def changes(modules: list[str]) -> int:
    """How often the path leaves a folder."""
    folders = [str(Path(module).parent) for module in modules]
    return sum(one != other for one, other in itertools.pairwise(folders))


def returns(modules: list[str]) -> int:
    """How often the path comes back to a folder that it had left."""
    folders = [str(Path(module).parent) for module in modules]
    return changes(modules) + 1 - len(set(folders))


def show(bench: Bench, table: Table, version: str, tree: Path, *, path: bool) -> None:
    for name in FLOWS:
        modules = path_of(name, tree)
        if modules is None:
            bench.say(f"{name} left out: it cannot be run here")
            continue
        folders = {str(Path(module).parent) for module in modules}
        table.row(version, name, len(modules), len(folders), changes(modules), returns(modules))
        if path:
            print("  " + " → ".join(modules))


def main() -> None:
    bench = Bench(__doc__, quick="the same: it takes seconds")
    bench.option("--path", action="store_true", help="print the path itself")
    bench.option("--before", type=Path, help="the checkout of another version")
    bench.option("--measure", choices=list(FLOWS), help=argparse.SUPPRESS)
    options = bench.options()
    if options.measure:
        print("\n" + json.dumps(trace_here(options.measure)))
        return
    columns = {"version": "<9", "flow": "<11", "modules": "d", "folders": "d"}
    table = bench.table("flow", columns | {"changes of folder": "d", "returns": "d"})
    if options.before:
        show(bench, table, "before", options.before.resolve(), path=options.path)
    show(bench, table, "now", HERE, path=options.path)
    bench.finish()


if __name__ == "__main__":
    main()
