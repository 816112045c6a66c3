"""What an experiment shows, and how its numbers are written."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from experiments.settings import RealSettings, SimulatedSettings
from experiments.show import figures
from experiments.show.summary import Mean
from experiments.show.tables import Table

Columns = Mapping[str, Any]
OURS = "noise-aware"
INFORMED = "noise-aware, paper's prior"
PUBLISHED = {
    "normal-x": "normal-x-published",
    "bernstein-sheldon": "bernstein-sheldon-published",
}
"""Samplers of the published code, which stand for a method where it is shown as published."""


def run_as(method: str, calibration: str) -> str:
    """The name under which a method was run in a calibration."""
    return PUBLISHED.get(method, method) if calibration == "as-published" else method


@dataclass(frozen=True)
class Report:
    """Tables, and figures by name."""

    tables: list[Table]
    figures: dict[str, Any]

    def save(self, out: Path) -> None:
        """All of it."""
        for table in self.tables:
            table.save(out / "tables")
        for name, figure in self.figures.items():
            figures.save(figure, out / "figures", name)


def lengths(settings: SimulatedSettings | RealSettings) -> str:
    """How much was run, for a caption."""
    return f"{settings.runs} runs, {settings.iterations:,} iterations"


def shown(mean: Mean | None, form: Callable[[float], str]) -> str:
    """A mean as text; a dash where a method has not been run."""
    return "–" if mean is None else form(mean.value)


def places(value: float) -> str:
    """Four decimal places, as the paper prints."""
    return f"{value:.4f}"
