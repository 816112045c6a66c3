"""tacit.federation.flower: the one door to Flower, and what a next version would break.

Covers `tacit.federation.flower`, `tacit.federation.client.supernode`.
"""

import ast
import importlib
import json
import os
import re
import subprocess
import sys
import time
from importlib.metadata import version
from pathlib import Path

import pytest

import tacit
from tacit.federation import flower
from tacit.federation.flower import SUPPORTED

SOURCE = Path(tacit.__file__).parent
DOOR = SOURCE / "federation/flower.py"
PROMISED = {"flwr.app", "flwr.clientapp", "flwr.serverapp"}
"""What Flower promises to keep."""
COMMANDS = ("flwr", "flower-superlink", "flower-supernode")
PARTS = {
    "flwr.supernode.start_client_internal": ("time",),
    "flwr.supernode.fleet_http_connection": ("HEARTBEAT_DEFAULT_INTERVAL",),
    "flwr.supercore.heartbeat": ("HEARTBEAT_DEFAULT_INTERVAL",),
    "flwr.superlink.routers.fleet.node_auth": (
        "SYSTEM_TIME_TOLERANCE",
        "TIMESTAMP_TOLERANCE",
        "authenticate_node",
    ),
    "flwr.supercore.superexec.run_superexec": ("_TASK_POLL_INTERVAL_ENV",),
    "flwr.supercore.constant": ("FLWR_DISABLE_UPDATE_CHECK",),
}
"""What the door puts something of its own in the place of, or sets from outside."""
OPTIONS = {
    "flower-superlink": (
        "--host",
        "--port",
        "--ssl-ca-certfile",
        "--ssl-certfile",
        "--ssl-keyfile",
        "--enable-supernode-auth",
        "--database",
        "--disable-runtime-dependency-installation",
    ),
    "flower-supernode": (
        "--superlink",
        "--root-certificates",
        "--auth-supernode-private-key",
        "--isolation",
        "--host",
        "--port",
        "--superexec-auth-secret-file",
    ),
}
"""Options that services depend on, of commands that the door does not go through."""


def imports(path):
    """Every (module, name) that a file imports, wherever in it."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield from ((node.module, alias.name) for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from ((alias.name, None) for alias in node.names)


def of_flower(path):
    return [(module, name) for module, name in imports(path) if module.split(".")[0] == "flwr"]


def test_what_flower_does_not_promise_is_used_in_one_file():
    others = [path for path in SOURCE.rglob("*.py") if path != DOOR]
    strays = {
        f"{path.relative_to(SOURCE)}: {module}"
        for path in others
        for module, _ in of_flower(path)
        if module not in PROMISED
    }
    assert strays == set()


def test_the_version_installed_is_one_that_was_tried():
    assert ".".join(version("flwr").split(".")[:2]) in SUPPORTED


def test_pyproject_pins_what_was_tried():
    text = (SOURCE.parents[1] / "pyproject.toml").read_text(encoding="utf-8")
    low, high = re.search(r'"flwr>=1\.(\d+),<1\.(\d+)"', text).groups()
    assert [f"1.{minor}" for minor in range(int(low), int(high))] == list(SUPPORTED)


def broken_imports():
    """What the door asks of the Flower that is found, and is not there."""
    missing = []
    for module, name in of_flower(DOOR):
        try:
            found = importlib.import_module(module)
            if name is not None and not hasattr(found, name):
                importlib.import_module(f"{module}.{name}")
        except ImportError as error:
            missing.append(f"from {module} import {name}: {error}")
    return missing


def broken_parts():
    """What the door replaces, and is not there."""
    missing = []
    for module, names in PARTS.items():
        try:
            part = importlib.import_module(module)
        except ImportError as error:
            missing.append(f"{module}: {error}")
            continue
        missing += [f"{module}.{name}" for name in names if not hasattr(part, name)]
    return missing


def broken_options():
    """Options of Flower's commands that are gone."""
    missing = []
    for command, options in OPTIONS.items():
        run = [sys.executable, "-c", _COMMAND.format(command=command), "--help"]
        shown = subprocess.run(run, capture_output=True, text=True, check=False).stdout
        missing += [f"{command} {option}" for option in options if option not in shown]
    return missing


_COMMAND = """
import sys
import time
from importlib.metadata import entry_points
sys.argv[0] = {command!r}
(entry,) = {{e for e in entry_points(group="console_scripts") if e.name == {command!r}}}
entry.load()()
"""


_VERDICT = """
import json
import test_flower
verdict = test_flower.broken_imports() + test_flower.broken_parts() + test_flower.broken_options()
print(json.dumps(verdict))
"""


def test_the_door_opens_with_the_flower_that_is_installed():
    assert broken_imports() == []
    assert broken_parts() == []


def test_a_supernode_rests_longer_while_nothing_comes(monkeypatch):
    """It only ever calls `sleep`, and with the rests that are known."""
    text = Path(importlib.import_module("flwr.supernode.start_client_internal").__file__)
    used = set(re.findall(r"\btime\.(\w+\(.*?\))", text.read_text(encoding="utf-8")))
    assert used == {"sleep(3)", "sleep(0.5)"}
    slept = []
    monkeypatch.setattr(time, "sleep", slept.append)
    clock = flower._Clock()
    for seconds in [3] * 20 + [0.5, 3]:
        clock.sleep(seconds)
    assert slept[0] == flower.RESTS[0]
    assert slept[19] == flower.RESTS[1]
    assert slept[-2:] == [0.5, flower.RESTS[0]]


@pytest.mark.slow
def test_commands_have_the_options_that_services_use():
    assert broken_options() == []


def offered():
    """Minor versions that the index offers, from the oldest supported on; None without an index."""
    command = [sys.executable, "-m", "pip", "index", "versions", "flwr"]
    asked = subprocess.run(command, capture_output=True, text=True, check=False)
    versions = re.search(r"Available versions: (.*)", asked.stdout)
    if versions is None:
        return None
    newest = {}
    for text in versions[1].split(", "):
        newest.setdefault(".".join(text.split(".")[:2]), text)
    oldest = tuple(map(int, SUPPORTED[0].split(".")))
    return {
        minor: text for minor, text in newest.items() if tuple(map(int, minor.split("."))) >= oldest
    }


@pytest.mark.slow
def test_every_supported_minor_version_and_what_the_next_one_breaks(tmp_path, capsys):
    """Each is installed beside this environment, and asked for all that the door uses."""
    versions = offered()
    if versions is None:
        pytest.skip("no package index can be reached")
    verdicts = {}
    for minor, text in sorted(versions.items()):
        place = tmp_path / minor
        install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps"]
        subprocess.run([*install, "--target", str(place), f"flwr=={text}"], check=True)
        paths = os.pathsep.join([str(place), str(SOURCE.parent), str(Path(__file__).parent)])
        asked = subprocess.run(
            [sys.executable, "-c", _VERDICT],
            capture_output=True,
            text=True,
            check=False,
            env=os.environ | {"PYTHONPATH": paths},
        )
        said = asked.stdout.strip().splitlines()
        verdicts[minor] = json.loads(said[-1]) if said else [asked.stderr.strip()[-300:]]
    with capsys.disabled():
        for minor, broken in verdicts.items():
            words = "; ".join(broken) or "everything that Tacit uses is there"
            sys.stdout.write(f"\nFlower {minor}: {words}\n")
    assert [verdicts[minor] for minor in SUPPORTED] == [[]] * len(SUPPORTED)
