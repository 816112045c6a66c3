"""`tacit key`: a holder's signing key."""

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(help="Make a key to sign releases with.", no_args_is_help=True)


@app.callback()
def _group() -> None:
    pass


@app.command()
def new(
    out: Annotated[Path, typer.Option(help="File for the private key; it stays with the holder.")],
) -> None:
    """Write a new Ed25519 private key and print its public key, which the analyst should have.

    Example: `tacit key new --out north.key`
    """
    from tacit.release.signature import new_key

    public = new_key(out)
    typer.echo(f"private key: {out} (keep it)\npublic key:  {public} (give it to the analyst)")
