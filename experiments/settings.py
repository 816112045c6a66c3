"""Settings of an experiment: its TOML file, with `--quick`, `--runs` and `--seed` applied."""

import tomllib
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "settings"
NAMES = tuple(sorted(path.stem for path in FOLDER.glob("*.toml")))


def settings_of(
    name: str, *, quick: bool = False, runs: int | None = None, seed: int = 0
) -> dict[str, Any]:
    """The settings by name; plain values."""
    settings = tomllib.loads((FOLDER / f"{name}.toml").read_text(encoding="utf-8"))
    changed = settings.pop("quick", {})
    if quick:
        settings |= changed
    if runs is not None:
        settings["runs"] = runs
    return settings | {"seed": seed}
