"""deploy/: the bundle for machines without a package index, and the containers built from it.

The bundle is installed without a network. The containers are built where buildah and a base image
can be had; else their steps are run in a clean root that debootstrap makes.
"""

import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CONTAINERFILE = ROOT / "deploy/Containerfile"
KNOWN = {"ARG", "FROM", "ENV", "COPY", "RUN", "USER", "VOLUME", "HEALTHCHECK", "CMD"}


def instructions():
    """The Containerfile's instructions: word and argument."""
    text = CONTAINERFILE.read_text(encoding="utf-8").replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    return [tuple(line.split(" ", 1)) for line in lines]


def test_the_containerfile_is_well_formed():
    words = [word for word, _ in instructions()]
    assert set(words) <= KNOWN
    stages = re.findall(r"FROM (\S+) AS (\w+)", CONTAINERFILE.read_text(encoding="utf-8"))
    assert [name for _, name in stages] == ["base", "site", "server"]
    assert {parent for parent, name in stages if name != "base"} == {"base"}
    users = [argument for word, argument in instructions() if word == "USER"]
    assert users == ["10001"], "nothing runs as root"
    for word, argument in instructions():
        if word == "COPY":
            source = next(part for part in shlex.split(argument) if not part.startswith("--"))
            assert source == "dist/bundle" or (ROOT / source).exists()
        if word in {"CMD", "VOLUME"}:
            assert json.loads(argument)


def test_no_instruction_reaches_for_a_network():
    runs = " ".join(argument for word, argument in instructions() if word == "RUN")
    assert not re.search(r"curl|wget|apt-get|dnf|pip install|https?:", runs)


def test_the_script_of_a_site_is_shell():
    subprocess.run(["sh", "-n", ROOT / "deploy/site.sh"], check=True)


def test_the_commands_in_the_containers_exist():
    from typer.main import get_command

    from tacit.cli import app

    federate = get_command(app).commands["federate"]
    texts = CONTAINERFILE.read_text(encoding="utf-8"), (ROOT / "deploy/site.sh").read_text("utf-8")
    named = set(re.findall(r'federate(?:", "| )([a-z]+)', "\n".join(texts)))
    assert named == {"node", "serve", "status", "link"}
    assert named <= set(federate.commands)


@pytest.fixture(scope="module")
def bundle(tmp_path_factory):
    out = tmp_path_factory.mktemp("bundle") / "bundle"
    made = subprocess.run(
        [sys.executable, ROOT / "deploy/bundle.py", out],
        capture_output=True,
        text=True,
        check=False,
    )
    if made.returncode != 0 and "No matching distribution" in made.stderr:
        pytest.skip("no package index can be reached")
    assert made.returncode == 0, made.stderr
    return out


@pytest.mark.slow
def test_a_bundle_installs_without_a_network_and_notices_a_change(bundle, tmp_path):
    alone = ["unshare", "--net"] if os.geteuid() == 0 else []
    environment = {"PATH": os.environ["PATH"], "PYTHON": sys.executable, "HOME": str(tmp_path)}
    install = [*alone, "sh", bundle / "install.sh", tmp_path / "opt"]
    done = subprocess.run(install, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("tacit ")
    shown = subprocess.run(
        [tmp_path / "opt/bin/tacit", "federate", "run", "--help"], capture_output=True, check=False
    )
    assert shown.returncode == 0
    wheel = next((bundle / "wheels").glob("typer-*.whl"))
    content = wheel.read_bytes()
    wheel.write_bytes(content + b"x")
    try:
        refused = subprocess.run(install, env=environment, capture_output=True, check=False)
        assert refused.returncode == 2
        assert b"changed or is damaged" in refused.stderr
    finally:
        wheel.write_bytes(content)


@pytest.mark.slow
def test_every_wheel_is_on_the_list(bundle):
    listed = (bundle / "requirements.txt").read_text()
    for wheel in (bundle / "wheels").iterdir():
        assert hashlib.sha256(wheel.read_bytes()).hexdigest() in listed


def clean_root(folder):
    """A Debian with Python and nothing else, or None where it cannot be made."""
    if shutil.which("debootstrap") is None or os.geteuid() != 0:
        return None
    made = subprocess.run(
        ["debootstrap", "--variant=minbase", "--include=python3-venv", "bookworm", folder],
        capture_output=True,
        check=False,
    )
    return folder if made.returncode == 0 else None


@pytest.mark.slow
def test_the_containers_are_built_in_a_clean_root(bundle, tmp_path):
    """With buildah from an image of a clean root; without it the steps in that root."""
    if sys.version_info[:2] != (3, 11):
        pytest.skip("the clean root has Python 3.11, and the bundle is for another")
    root = clean_root(tmp_path / "root")
    if root is None:
        pytest.skip("no clean root can be made here (debootstrap, as root)")
    shutil.copytree(bundle, root / "tmp/bundle")
    for word, argument in instructions():
        if word == "RUN":
            script = f"export PYTHON=python3.11; {argument}"
            step = subprocess.run(
                ["unshare", "--net", "chroot", root, "sh", "-c", script],
                capture_output=True,
                text=True,
                check=False,
                env={"PATH": "/opt/tacit/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
            )
            assert step.returncode == 0, (argument, step.stderr)
    asked = subprocess.run(
        ["chroot", "--userspec=10001", root, "/opt/tacit/bin/tacit", "federate", "link", "--help"],
        capture_output=True,
        text=True,
        check=False,
        env={"HOME": "/home/tacit", "PATH": "/opt/tacit/bin:/usr/sbin:/usr/bin:/bin"},
    )
    assert asked.returncode == 0, asked.stderr
    assert not (root / "tmp/bundle").exists()
