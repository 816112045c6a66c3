"""Run every benchmark, one after the other, and keep what each printed in `benchmarks/results`.

    python benchmarks [--quick] [--check] [--data DIR] [NAME ...]

`accuracy`, `families_table`, `league`, `one_visit`, `real_holders`, `real_tables` and `visits` need
the UCI files in DIR, and are left out without it.
With --quick nothing is kept.
"""

import argparse
import subprocess
import sys
from pathlib import Path

from frame import RESULTS

HERE = Path(__file__).parent
NAMES = sorted(
    path.stem
    for path in HERE.glob("[a-z]*.py")
    if "\ndef main() -> None:\n" in path.read_text(encoding="utf-8")
)
NEEDS_DATA = {
    *("accuracy", "families_table", "league", "one_visit", "real_holders", "real_tables", "visits")
}
VARIANTS: dict[str, dict[str, list[str]]] = {
    "coverage": {"": [], "-add-remove": ["--relation", "add-remove"]},
    "mixing": {"": [], "-nuts": ["--nuts"]},
    "robustness": {"": [], "-intercept-2": ["--intercept", "2"]},
    "accuracy": {"": ["--beijing"]},
}
"""Benchmarks that are run more than once: the end of the record's name, and the options."""
ONCE: dict[str, list[str]] = {"": []}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(NAMES))
    parser.add_argument("--quick", action="store_true", help="each under a minute; nothing is kept")
    parser.add_argument("--check", action="store_true", help="exit 1 when any bar is missed")
    parser.add_argument("--data", type=Path, help="the folder of the UCI files")
    options = parser.parse_args()
    if unknown := set(options.names) - set(NAMES):
        parser.error(f"no benchmark is called {', '.join(sorted(unknown))}")
    failed = []
    for name in options.names or NAMES:
        if name in NEEDS_DATA and options.data is None:
            print(f"== {name}: left out, it needs --data", flush=True)
            continue
        for variant, words in VARIANTS.get(name, ONCE).items():
            print(f"== {name}{variant}", flush=True)
            command = [sys.executable, str(HERE / f"{name}.py"), *words]
            command += ["--check"] if options.check else []
            kept = str(RESULTS / f"{name}{variant}.json")
            command += ["--quick"] if options.quick else ["--out", kept]
            command += ["--data", str(options.data)] if name in NEEDS_DATA else []
            if subprocess.run(command, check=False).returncode:
                failed.append(f"{name}{variant}")
    print(f"failed: {', '.join(failed)}" if failed else "all done")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
