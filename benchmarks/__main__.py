"""Run every benchmark, one after the other, and keep what each printed in `benchmarks/results`.

    python benchmarks [--quick] [--check] [--data DIR] [NAME ...]

`accuracy` and `real_tables` need the UCI files in DIR and are left out without it. With --quick nothing is kept.
"""

import argparse
import subprocess
import sys
from pathlib import Path

from frame import RESULTS

HERE = Path(__file__).parent
NAMES = sorted(path.stem for path in HERE.glob("*.py") if path.stem not in {"frame", "__main__"})
NEEDS_DATA = {"accuracy", "real_tables"}


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
        print(f"== {name}", flush=True)
        words = ["--check"] if options.check else []
        words += ["--quick"] if options.quick else ["--out", str(RESULTS)]
        words += ["--data", str(options.data)] if name in NEEDS_DATA else []
        done = subprocess.run([sys.executable, str(HERE / f"{name}.py"), *words], check=False)
        if done.returncode:
            failed.append(name)
    print(f"failed: {', '.join(failed)}" if failed else "all done")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
