"""Settings of every experiment: a record each, filled from its TOML file.

`--quick`, `--runs` and `--seed` are applied on the way. A field that the record does not know, or
that the file leaves out, is an error.
"""

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "settings"
NAMES = tuple(sorted(path.stem for path in FOLDER.glob("*.toml")))


@dataclass(frozen=True)
class SimulatedSettings:
    """Errors on simulated data, against ε."""

    rows: int
    columns: tuple[int, ...]
    holders: tuple[int, ...]
    epsilons: tuple[float, ...]
    runs: int
    iterations: int
    gradient_iterations: int
    one_data_set: bool  # one set of rows for all runs, as in the paper, or rows drawn anew
    seed: int = 0


@dataclass(frozen=True)
class RealSettings:
    """Test errors on public data."""

    sets: tuple[str, ...]
    holders: tuple[int, ...]
    epsilon: float
    runs: int
    iterations: int
    mixing_metropolis: int
    mixing_gradient: int
    seed: int = 0

    def mixing(self, sampler: str) -> int:
        """Iterations of the chains whose mixing is judged."""
        return self.mixing_gradient if sampler == "gradient" else self.mixing_metropolis


@dataclass(frozen=True)
class RuntimesSettings:
    """Time per iteration, against d."""

    columns: tuple[int, ...]
    holders: tuple[int, ...]
    rows: int
    iterations: int
    repeats: int
    seed: int = 0


@dataclass(frozen=True)
class AuditSettings:
    """What the published noise really gives."""

    epsilons: tuple[float, ...]
    deltas: tuple[float, ...]
    draws: int
    confidence: float
    seed: int = 0


@dataclass(frozen=True)
class MmdSettings:
    """Distance to the non-private posterior."""

    bandwidth: float
    seed: int = 0


Settings = SimulatedSettings | RealSettings | RuntimesSettings | AuditSettings | MmdSettings
KINDS: dict[str, type[Settings]] = {
    "simulated": SimulatedSettings,
    "one": SimulatedSettings,
    "real": RealSettings,
    "runtimes": RuntimesSettings,
    "audit": AuditSettings,
    "mmd": MmdSettings,
}


def settings_of(name: str, *, quick: bool = False, runs: int | None = None, seed: int = 0) -> Any:  # noqa: ANN401 - that of the name
    """The settings by name."""
    fields = tomllib.loads((FOLDER / f"{name}.toml").read_text(encoding="utf-8"))
    changed = fields.pop("quick", {})
    if quick:
        fields |= changed
    if runs is not None and "runs" in fields:
        fields["runs"] = runs
    return record_of(name, fields | {"seed": seed})


def record_of(name: str, fields: dict[str, Any]) -> Any:  # noqa: ANN401 - that of the name
    """The record of an experiment from plain values; lists become tuples."""
    values = {
        field: tuple(value) if isinstance(value, list) else value for field, value in fields.items()
    }
    return KINDS[name](**values)
