"""Results piece by piece.

A part is one file, written whole, so that a killed run goes on where it stopped.

A part holds columns of equal length (`record:NAME`), arrays of its own, and the settings it was
made with, as JSON. NumPy alone reads and writes it, since the machine that computes may have no
more.
"""

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from experiments.settings import Settings

Part = dict[str, Any]
RECORD = "record:"


class PartError(Exception):
    """A part that cannot be used."""


def record(columns: Mapping[str, Any]) -> Part:
    """Columns, scalars repeated, as a part."""
    length = max(np.size(column) for column in columns.values())
    return {
        RECORD + name: np.broadcast_to(np.asarray(column), (length,))
        for name, column in columns.items()
    }


def joined(parts: list[Part]) -> Part:
    """Columns of several parts, one after the other."""
    return {
        name: np.concatenate([part[name] for part in parts])
        for name in parts[0]
        if name.startswith(RECORD)
    }


def columns_of(part: Part) -> dict[str, Any]:
    """The columns by name."""
    return {
        name.removeprefix(RECORD): column
        for name, column in part.items()
        if name.startswith(RECORD)
    }


def load(path: Path) -> Part:
    """Read a part."""
    with np.load(path, allow_pickle=False) as file:
        return {name: file[name] for name in file.files}


def save(path: Path, part: Part) -> None:
    """Write a part under another name and move it into place."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_suffix(".tmp.npz")
    np.savez_compressed(beside, **part)
    os.replace(beside, path)  # noqa: PTH105 - the one call that is atomic everywhere


def part_of(path: Path, settings: Settings, make: Callable[[], Part]) -> Part:
    """The part at a path.

    Read where it is there and was made with these settings, made and written where it is not.
    """
    text = json.dumps(asdict(settings), sort_keys=True)
    if path.exists():
        part = load(path)
        if str(part["settings"]) != text:
            raise PartError(f"{path}: made with other settings; choose another --out, or remove it")
        return part
    part = make() | {"settings": np.array(text)}
    save(path, part)
    return part
