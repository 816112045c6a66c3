"""deploy/: the bundle for machines without a package index, and the form of the Containerfile.

The bundle is installed without a network. The containers are built and run in
tests/federation/test_containers.py.
"""

import hashlib
import json
import os
import re
import shlex
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
    again = subprocess.run(install, env=environment, capture_output=True, text=True, check=False)
    assert again.returncode == 0, "an upgrade is installed over what is there"
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
