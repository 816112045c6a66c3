"""`tacit exchange`: studies and releases by stick or mail, for machines that no network joins."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tacit.cli.options import Json, TrustedKeys
from tacit.errors import SignatureError

if TYPE_CHECKING:
    from tacit.release.parcel import Standing

app = typer.Typer(
    help="Carry studies and releases in signed files, where no network is.", no_args_is_help=True
)


@app.command()
def pack(
    out: Annotated[Path, typer.Argument(help="The parcel to write.")],
    files: Annotated[
        list[Path],
        typer.Argument(help="Studies, releases, visits' places, questions."),
    ],
    sender: Annotated[str, typer.Option(help="Who sends it.")],
    key: Annotated[Path, typer.Option(help="Private key to sign it with (see `tacit key new`).")],
    expect: Annotated[
        list[str] | None,
        typer.Option(help="A holder who is to publish about the studies in it. Repeat it."),
    ] = None,
    into: Annotated[
        Path | None, typer.Option(help="Folder in which replies will be unpacked.")
    ] = None,
) -> None:
    """Pack studies and releases into one signed file; anything else, such as a table, is refused.

    Example: `tacit exchange pack round1.parcel study.toml --sender analyst --key analyst.key
    --expect north --expect south --into round1`
    """
    from tacit.files import refuse_overwriting, refuse_unwritable
    from tacit.release.parcel import Parcel, remember

    refuse_unwritable(out)
    refuse_overwriting(out, files)
    parcel = Parcel.of(sender, files, key, expect or ())
    parcel.save(out)
    if into is not None:
        remember(parcel, into)
    for item in parcel.items:
        typer.echo(f"{item.kind:<8} {item.name}")
    typer.echo(f"{out}: signed by {sender!r} with {parcel.public_key}")


@app.command()
def unpack(
    parcels: Annotated[list[Path], typer.Argument(help="Parcels that arrived.")],
    into: Annotated[Path, typer.Option(help="Folder to unpack into; one below it per sender.")],
    trusted_key: TrustedKeys = None,
    *,
    as_json: Json = False,
) -> None:
    """Unpack parcels whose signatures fit, and list who is still missing from which study.

    Example: `tacit exchange unpack north.parcel south.parcel --into round1`
    """
    from tacit.release.parcel import Parcel
    from tacit.release.parcel import standings as standings_in
    from tacit.release.parcel import unpack as unpack_parcel

    trusted = _by_name(trusted_key or [])
    arrived = [Parcel.load(path) for path in parcels]
    for parcel in arrived:
        parcel.check_sender(trusted)
    written = [path for parcel in arrived for path in unpack_parcel(parcel, into)]
    standings = standings_in(into)
    if as_json:
        studies = [asdict(standing) for standing in standings]
        typer.echo(json.dumps({"written": [str(path) for path in written], "studies": studies}))
        return
    for parcel in arrived:
        vouched = "trusted" if trusted else "nobody vouches for it: compare it by telephone"
        typer.echo(f"from {parcel.sender!r}, key {parcel.public_key} ({vouched})")
    for path in written:
        typer.echo(f"  {path}")
    for standing in standings:
        typer.echo(_words(standing))


@app.command()
def missing(
    folder: Annotated[Path, typer.Argument(help="Folder that parcels were unpacked into.")],
    *,
    as_json: Json = False,
) -> None:
    """List who has published about each study in a folder, and who is still missing.

    Example: `tacit exchange missing round1`
    """
    from tacit.release.parcel import standings as standings_in

    standings = standings_in(folder)
    if as_json:
        typer.echo(json.dumps([asdict(standing) for standing in standings]))
        return
    for standing in standings:
        typer.echo(_words(standing))
    if not standings:
        typer.echo("no study lies there")


def _words(standing: "Standing") -> str:
    published = ", ".join(standing.published) or "nobody"
    missing_names = ", ".join(standing.missing) or "nobody"
    return f"study {standing.study!r}: published by {published}; missing: {missing_names}"


def _by_name(keys: list[str]) -> dict[str, str]:
    pairs = [text.partition("=") for text in keys]
    if not all(name and key for name, _, key in pairs):
        raise SignatureError("--trusted-key must be name=KEY")
    return {name: key for name, _, key in pairs}
