"""`tacit demo`: the whole story on built-in data."""

from pathlib import Path
from typing import Annotated

import typer


def demo(out: Annotated[Path, typer.Option(help="Folder for everything the demonstration writes; it must not exist yet.")]) -> None:
    """Let three invented hospitals publish to an analyst, with the same commands that real ones would use.

    Example: `tacit demo --out demo`
    """
    from tacit.cli.fit import fit
    from tacit.cli.ledger import show
    from tacit.cli.predict import predict
    from tacit.cli.publish import publish
    from tacit.cli.report import report
    from tacit.cli.study import check
    from tacit.demonstration import RESIDUAL_SD, TRUTH, write_hospitals, write_new_patients
    from tacit.errors import TableError

    try:
        out.mkdir(parents=True)
    except FileExistsError:
        message = f"{str(out)!r} exists already: choose another --out, or remove it"
        raise TableError(message) from None
    except OSError as error:
        message = f"cannot make the folder {str(out)!r}: {error.strerror}"
        raise TableError(message) from None
    tables = write_hospitals(out)
    study = out / "study.toml"
    analyst = out / "analyst"
    analyst.mkdir()
    _say(f"1. The hospitals and the analyst agree on a study.\n$ tacit study check {study}")
    check(study)
    _say("2. Each hospital publishes where its rows lie. Only the JSON file leaves the house.")
    for holder, table in tables.items():
        release, ledger = analyst / f"{holder}.json", table.parent / "ledger.db"
        typer.echo(f"$ tacit publish {study} {table} --holder {holder} --out {release} --ledger {ledger}")
        publish(study, [str(table)], holder=holder, out=release, ledger=ledger)
        typer.echo()
    _say(f"3. This is all that left the first hospital ({analyst / 'north.json'}), its study left out:")
    typer.echo(_without_study((analyst / "north.json").read_text(encoding="utf-8")))
    first = tables["north"].parent / "ledger.db"
    _say(f"4. And this is its own record of what was spent.\n$ tacit ledger show --ledger {first}")
    show(first)
    posterior = analyst / "posterior.parquet"
    _say(f"5. The analyst infers the coefficients from the three files alone.\n$ tacit fit {analyst} --out {posterior}")
    fit([analyst], out=posterior)
    truth = ", ".join(f"{name} {value:g}" for name, value in TRUTH.items())
    typer.echo(f"\nThe data were made with: {truth}; residual sd {RESIDUAL_SD:g}.")
    patients, predictions, page = analyst / "new-patients.csv", analyst / "predictions.csv", analyst / "report.html"
    write_new_patients(patients)
    _say("6. For new patients, the analyst predicts how long they will stay.")
    typer.echo(f"$ tacit predict {posterior} {patients} --out {predictions} --keep patient")
    predict(posterior, [str(patients)], out=predictions, keep=["patient"])
    _say(f"7. And writes a page for everybody.\n$ tacit report {posterior} --out {page}")
    report(posterior, out=page)
    _say(f"Open {page} in a browser; {analyst / 'north.json'} and {study} show what crossed the wall, and on what terms.")


def _say(text: str) -> None:
    typer.echo(typer.style(f"\n{text}", bold=True))


def _without_study(text: str) -> str:
    begin = text.index('  "study": {')
    return text[:begin] + text[text.index("\n  },\n", begin) + 6 :]
