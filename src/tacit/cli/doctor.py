"""`tacit doctor`: whether this installation is in order, and what it can do."""

import json
import platform
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version

import typer

from tacit.cli.options import Json, LedgerFile
from tacit.errors import TacitError

OURS = "tacit-dp"
FOREIGN = "tacit"
CORE = ("numpy", "scipy", "pyarrow", "opendp", "pydantic", "typer", "rich")
EXTRAS = {
    "sampling": (("jax", "arviz-stats"), "the sampled methods"),
    "arviz": (("arviz",), "posteriors for ArviZ"),
    "plots": (("matplotlib",), "plots of a posterior, and pictures of a plan"),
    "sign": (("cryptography",), "signed releases"),
    "desk": (("starlette", "uvicorn"), "the officer's page, `tacit desk`"),
    "sklearn": (("scikit-learn",), "the scikit-learn estimator"),
    "tables": (("python-calamine", "pyreadstat"), "files of Excel, Stata, SPSS and SAS"),
    "sql": (("adbc-driver-postgresql", "duckdb"), "tables from databases"),
    "spark": (("pyspark",), "tables on Spark"),
    "flower": (("flwr",), "federation over Flower"),
}


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at: whether it is in order, and what was seen."""

    what: str
    ok: bool
    seen: str


def doctor(ledger: LedgerFile = None, *, as_json: Json = False) -> None:
    """Check versions, the noise generator, the sampling engine and the ledger.

    The exit code is 1 if anything needed is broken.

    Example: `tacit doctor --ledger ledger.db`
    """
    from tacit.holder.ledger import default_path

    needed = [_packages(), _name(), _noise(), _ledger(ledger or default_path())]
    optional = [_extra(name) for name in EXTRAS] + [_engine()]
    if as_json:
        facts = {"needed": list(map(asdict, needed)), "optional": list(map(asdict, optional))}
        typer.echo(json.dumps(facts))
    else:
        for finding in needed:
            typer.echo(f"{'ok     ' if finding.ok else 'BROKEN '} {finding.what}: {finding.seen}")
        for finding in optional:
            typer.echo(f"{'ok     ' if finding.ok else 'absent '} {finding.what}: {finding.seen}")
    if not all(finding.ok for finding in needed):
        raise typer.Exit(1)


def _packages() -> Finding:
    versions = {name: _version(name) for name in (OURS, *CORE)}
    words = ", ".join(f"{name} {number or 'missing'}" for name, number in versions.items())
    return Finding(
        "versions",
        ok=None not in versions.values(),
        seen=f"Python {platform.python_version()}, {words}",
    )


def _name() -> Finding:
    """Another project owns the name `tacit` on the package index; its files would replace ours."""
    foreign = _version(FOREIGN)
    if foreign is None:
        return Finding("name", ok=True, seen=f"no other project's {FOREIGN} is installed beside it")
    return Finding(
        "name",
        ok=False,
        seen=(
            f"the distribution {FOREIGN} {foreign} is installed, which is another project's and "
            f"may have replaced this one's files: pip uninstall {FOREIGN}, "
            f"then pip install --force-reinstall {OURS}"
        ),
    )


def _noise() -> Finding:
    try:
        from tacit.privacy.noise import check_sampler, sampler_name

        check_sampler()
    except (TacitError, ImportError, OSError) as error:
        return Finding("noise", ok=False, seen=str(error))
    return Finding("noise", ok=True, seen=sampler_name())


def _ledger(path: object) -> Finding:
    from pathlib import Path

    from tacit.holder.ledger import Ledger

    place = Path(str(path))
    if not place.exists():
        return Finding("ledger", ok=True, seen=f"none yet at {place}: the first release makes it")
    try:
        accounts = Ledger(place).accounts()
    except TacitError as error:
        return Finding("ledger", ok=False, seen=str(error))
    lost = sum(
        charge.release is None and charge.batches is None
        for account in accounts
        for charge in account.charges
    )
    charges = sum(len(account.charges) for account in accounts)
    return Finding(
        "ledger",
        ok=True,
        seen=(
            f"{place}: whole; {len(accounts)} data sets, {charges} charges, "
            f"{lost} of them without a release"
        ),
    )


def _extra(name: str) -> Finding:
    packages, purpose = EXTRAS[name]
    versions = {package: _version(package) for package in packages}
    if None in versions.values():
        return Finding(name, ok=False, seen=f"{purpose}: pip install '{OURS}[{name}]'")
    words = ", ".join(f"{package} {number}" for package, number in versions.items())
    return Finding(name, ok=True, seen=f"{purpose}: {words}")


def _engine() -> Finding:
    try:
        import jax

        devices = jax.devices()
    except ImportError:
        return Finding("engine", ok=False, seen="nothing to sample with: `sampling` is absent")
    except RuntimeError as error:
        return Finding("engine", ok=False, seen=f"no device to sample on ({type(error).__name__})")
    names = ", ".join(f"{device.device_kind} ({device.platform})" for device in devices)
    return Finding("engine", ok=True, seen=f"samples on {names}")


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
