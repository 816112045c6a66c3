"""What every benchmark stands on: options, tables, bars, the record and the exit code.

A script says what it measures, prints rows as they come, and sets bars:

    bench = Bench(__doc__, quick="three runs")
    options = bench.options()
    table = bench.table("error", {"rows": ",", "error": ".4f"})
    table.row(5000, 0.0197)
    bench.bar("the error is at most 0.02", met=0.0197 <= 0.02)
    bench.finish()

Options of all: `--quick` (under a minute), `--check` (exit 1 when a bar is missed) and `--out`, the
file or folder that the record is written to as JSON: commit, machine, options, every table, what
was said, and every bar. `docs/figures.py` fills the documentation from `benchmarks/results`.
"""

import argparse
import json
import os
import platform
import re
import subprocess
import sys
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import NoReturn

RESULTS = Path(__file__).parent / "results"
WIDTH = 10
"""Least width of a printed column."""


@dataclass
class Table:
    """Figures of one kind: printed as they come, and kept.

    `columns` maps a heading to the format of its figures, as Python's `format` takes it; "<20" is
    text, at least so wide.
    """

    columns: dict[str, str]
    rows: list[list[str]] = field(default_factory=list)

    def row(self, *figures: object, note: str = "") -> None:
        """Print and keep one row; `note` is printed beside it, and not kept."""
        cells = [
            shown(figure, form) for figure, form in zip(figures, self.columns.values(), strict=True)
        ]
        if not self.rows:
            print("\n" + self._line(list(self.columns)))
        self.rows.append(cells)
        print(self._line(cells) + (f"  {note}" if note else ""), flush=True)

    def _line(self, cells: list[str]) -> str:
        line = ""
        for cell, (heading, form) in zip(cells, self.columns.items(), strict=True):
            width = max(WIDTH, len(heading) + 2)
            if form.startswith("<"):
                line += "  " + cell.ljust(max(width, int(form[1:])))
            else:
                line += cell.rjust(width)
        return line.rstrip()


def shown(figure: object, form: str) -> str:
    """A figure as text; what is not there is an empty cell, and text keeps to itself."""
    if figure is None or figure != figure:  # noqa: PLR0124 - NaN is not equal to itself
        return ""
    if isinstance(figure, str) or form.startswith("<"):
        return str(figure)
    if form.endswith("%"):
        return f"{100 * float(figure):{form[:-1] or '.0f'}}%"  # type: ignore[arg-type]
    return format(figure, form)


class Bench:
    """One run of one benchmark."""

    def __init__(self, about: str | None, *, quick: str) -> None:
        self.name = Path(sys.argv[0]).stem
        self.parser = argparse.ArgumentParser(
            description=about, formatter_class=argparse.RawDescriptionHelpFormatter
        )
        self.option("--quick", action="store_true", help=quick)
        self.parser.add_argument("--check", action="store_true", help="exit 1 when a bar is missed")
        self.parser.add_argument(
            "--out", type=Path, help="write the record here: a JSON file, or a folder of them"
        )
        self.tables: dict[str, Table] = {}
        self.said: list[str] = []
        self.bars: list[dict[str, object]] = []
        self._chosen: dict[str, object] = {}
        self._check = False
        self._out: Path | None = None
        self._begun = time.perf_counter()

    def option(self, *names: str, help: str = "", **settings: object) -> None:  # noqa: A002 - argparse's word
        """An option of this benchmark alone; its help may speak of percents."""
        told = help.replace("%", "%%")
        self.parser.add_argument(*names, help=told, **settings)  # type: ignore[arg-type]

    def options(self) -> argparse.Namespace:
        """What the command line says."""
        chosen = self.parser.parse_args()
        self._check = chosen.check
        self._out = chosen.out
        self._chosen = {
            name: value
            for name, value in vars(chosen).items()
            if name not in {"check", "out"} and isinstance(value, bool | int | float | str | list)
        }
        return chosen

    def table(self, name: str, columns: dict[str, str]) -> Table:
        """A new table, by the name under which it is kept."""
        self.tables[name] = Table(columns)
        return self.tables[name]

    def say(self, sentence: str) -> None:
        """A line in words, printed and kept."""
        self.said.append(sentence)
        print(sentence, flush=True)

    def bar(self, sentence: str, *, met: bool) -> bool:
        """A bar, and whether it is met."""
        self.bars.append({"bar": sentence, "met": bool(met)})
        return met

    @property
    def missed(self) -> list[str]:
        """The bars that were not met."""
        return [str(bar["bar"]) for bar in self.bars if not bar["met"]]

    def finish(self) -> NoReturn:
        """Print the verdict, write the record, and exit."""
        seconds = time.perf_counter() - self._begun
        missed = self.missed
        if self.bars:
            count = len(self.bars)
            verdict = (
                f"{len(missed)} of {count} bars missed:" if missed else f"all {count} bars met"
            )
            print("\n" + "\n  ".join([verdict, *missed]))
        print(f"{self.name}: {seconds:.0f} s")
        if self._out is not None:
            self._write(seconds)
        sys.exit(1 if missed and self._check else 0)

    def _write(self, seconds: float) -> None:
        assert self._out is not None  # noqa: S101 - the caller looked
        path = self._out if self._out.suffix == ".json" else self._out / f"{self.name}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        record = {
            "benchmark": self.name,
            "commit": commit(),
            "when": datetime.now(UTC).isoformat(timespec="seconds"),
            "machine": machine(),
            "options": self._chosen,
            "seconds": round(seconds, 1),
            "tables": {
                name: {"columns": list(table.columns), "rows": table.rows}
                for name, table in self.tables.items()
            },
            "said": self.said,
            "bars": self.bars,
        }
        text = json.dumps(record, indent=1, ensure_ascii=False)
        text = re.sub(r"\[[^\[\]{}]*\]", _on_one_line, text)
        path.write_text(text + "\n", encoding="utf-8")


def _on_one_line(part: re.Match[str]) -> str:
    """A list of plain values, such as a row of a table."""
    return re.sub(r"\s*\n\s*", " ", part[0]).replace("[ ", "[").replace(" ]", "]")


def commit() -> str:
    """The commit that is measured, and "changed" where the source differs from it."""
    home = Path(__file__).parents[1]

    def git(*words: str) -> str:
        done = subprocess.run(
            ["git", *words],  # noqa: S607
            cwd=home,
            capture_output=True,
            text=True,
            check=False,
        )
        return done.stdout.strip()

    changed = git("status", "--porcelain", "--", "src", "benchmarks/*.py", "experiments")
    return (git("rev-parse", "--short=12", "HEAD") or "unknown") + (", changed" if changed else "")


def machine() -> dict[str, object]:
    """What the figures were measured on, as far as it matters to them."""
    return {
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0))
        if hasattr(os, "sched_getaffinity")
        else os.cpu_count(),
        "system": platform.system(),
        "python": platform.python_version(),
        "numpy": version("numpy"),
    }


def _processor() -> str:
    about = Path("/proc/cpuinfo")
    if about.exists():
        for line in about.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.machine()


def peak_memory() -> float:
    """Largest resident size of this process in bytes.

    Linux's getrusage would count the parent's before exec as well.
    """
    status = Path("/proc/self/status")
    if status.exists():
        lines = status.read_text(encoding="ascii").splitlines()
        line = next(line for line in lines if line.startswith("VmHWM"))
        return float(line.split()[1]) * 1024
    import resource

    return float(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)  # bytes on macOS


def cpu_time() -> float:
    """User and system seconds of this process so far, all threads."""
    import resource

    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def measured_apart(script: str, *words: object) -> dict[str, float]:
    """Run `script --measure words…` as a process of its own with one BLAS thread.

    What it prints. A table is read by that process alone, unless it says otherwise.
    """
    command = [sys.executable, script, "--measure", *map(str, words)]
    threads = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
    done = subprocess.run(
        command,
        env=os.environ | dict.fromkeys((*threads, "TACIT_PROCESSES"), "1"),
        check=True,
        capture_output=True,
        text=True,
    )
    figures: dict[str, float] = json.loads(done.stdout)
    return figures
