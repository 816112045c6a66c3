"""Make a bundle: a folder from which Tacit is installed where there is no package index.

    python deploy/bundle.py dist/bundle [--extra flower --extra sql --extra sign]

It holds the wheel of this checkout, the wheels of everything it needs as constraints.txt pins them,
a list of all with their SHA-256, and install.sh, which takes nothing but what is on the list.
Wheels are for the Python that runs this (its minor version) and this kind of machine; those of
Linux run on Debian's and Red Hat's families alike.
"""

import argparse
import hashlib
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
INSTALL = """#!/bin/sh
# Installs Tacit from this folder alone into a virtual environment: sh install.sh [/opt/tacit]
# Debian, Ubuntu: apt-get install python3-venv.  Red Hat, Rocky, Fedora: dnf install python{minor}.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
prefix=${{1:-/opt/tacit}}
python=${{PYTHON:-python{minor}}}
fail() {{
    echo "$1" >&2
    exit 2
}}
command -v "$python" >/dev/null || fail "needs $python, for which these wheels are; set PYTHON"
(cd "$here" && sha256sum --quiet --check SHA256SUMS) || fail "the bundle was changed or is damaged"
"$python" -m venv "$prefix"
"$prefix/bin/pip" install --quiet --no-index --no-cache-dir --disable-pip-version-check \\
    --find-links "$here/wheels" --require-hashes --requirement "$here/requirements.txt"
"$prefix/bin/tacit" --version
"""


def pip(*words: str) -> None:
    """Run pip of this Python."""
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", *words]
    subprocess.run(command, check=True, cwd=ROOT)


def pins() -> Path:
    """The pins of constraints.txt without their hashes, which are of every kind of machine."""
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    kept = [line.split(" \\")[0] for line in lines if line and not line.startswith((" ", "#"))]
    path = Path(tempfile.mkdtemp()) / "pins.txt"
    path.write_text("\n".join(kept) + "\n", encoding="utf-8")
    return path


def digest(path: Path) -> str:
    """A file's SHA-256."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def requirement(wheel: Path) -> str:
    """A wheel as a line of requirements with its hash."""
    name, version = wheel.name.split("-")[:2]
    return f"{name}=={version} --hash=sha256:{digest(wheel)}"


def bundle(out: Path, extras: list[str]) -> None:
    """Fill the folder, which must not exist."""
    wheels = out / "wheels"
    wheels.mkdir(parents=True)
    pip("wheel", "--quiet", "--no-deps", "--wheel-dir", str(wheels), str(ROOT))
    (own,) = wheels.glob("tacit_dp-*.whl")
    wanted = f"{own}[{','.join(extras)}]"
    places = ("--find-links", str(wheels), "--dest", str(wheels))
    pip(
        "download",
        "--quiet",
        "--only-binary",
        ":all:",
        "--constraint",
        str(pins()),
        *places,
        wanted,
    )
    listed = sorted(wheels.glob("*.whl"))
    lines = "\n".join(requirement(wheel) for wheel in listed) + "\n"
    (out / "requirements.txt").write_text(lines, encoding="utf-8")
    minor = f"{sys.version_info.major}.{sys.version_info.minor}"
    (out / "install.sh").write_text(INSTALL.format(minor=minor), encoding="utf-8")
    (out / "install.sh").chmod(0o755)
    shutil.copy(ROOT / "docs/operate.md", out / "operate.md")
    shutil.copy(ROOT / "LICENSE", out / "LICENSE")
    sums = [path for path in sorted(out.rglob("*")) if path.is_file()]
    text = "".join(f"{digest(path)}  {path.relative_to(out)}\n" for path in sums)
    (out / "SHA256SUMS").write_text(text, encoding="utf-8")
    size = sum(path.stat().st_size for path in sums) / 2**20
    print(
        f"{out}: {len(listed)} wheels, {size:.0f} MB; sh install.sh on the machine without an index"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument(
        "--extra", action="append", help="extras of the package [flower, sql, sign]"
    )
    given = parser.parse_args()
    if given.out.exists():
        parser.error(f"{given.out} exists already: remove it or give another folder")
    bundle(given.out.absolute(), given.extra or ["flower", "sql", "sign"])
