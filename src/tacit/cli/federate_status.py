"""`tacit federate status`: what needs a person, at a site or at the server."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tacit.cli.federate_run import SuperLink
from tacit.cli.options import Json
from tacit.errors import FederationError

if TYPE_CHECKING:
    from tacit.federation.status import Status

NEEDS_A_PERSON = 3
"""Exit code where something needs a person."""


def status(
    place: Annotated[
        Path,
        typer.Argument(help="At a site its policy, holder.toml; at the server the folder app/."),
    ],
    *,
    as_json: Json = False,
    metrics: Annotated[
        int | None,
        typer.Option(help="Serve /metrics, /status and /health on this port of loopback."),
    ] = None,
    superlink: SuperLink = "tacit",
    folder: Annotated[
        Path, typer.Option(help="At the server: folder with its certificates.")
    ] = Path("/etc/tacit"),
    state: Annotated[
        Path, typer.Option(help="At the server: folder of the SuperLink's database.")
    ] = Path("/var/lib/tacit"),
) -> None:
    """Say who is connected, waits, is deaf, refused or out of budget; exit code 3 if any needs you.

    Also versions, clocks and the days that certificates have left. A line that needs a person
    begins with an exclamation mark and names the command that mends it.

    Example: `tacit federate status /etc/tacit/holder.toml`
    """
    from tacit.federation.status import healthy, in_json, in_words, serve_status

    def look() -> "Status":
        return _status(place, superlink, folder, state)

    if metrics is not None:
        server = serve_status(look, metrics)
        typer.echo(f"http://127.0.0.1:{metrics}/metrics, /status and /health; interrupt to stop")
        server.serve_forever()
    seen = look()
    typer.echo(in_json(seen) if as_json else in_words(seen))
    if not healthy(seen):
        raise typer.Exit(NEEDS_A_PERSON)


def _status(place: Path, superlink: str, folder: Path, state: Path) -> "Status":
    if place.is_dir():
        from tacit.federation.server.control import Control
        from tacit.federation.server.health import server_status

        return server_status(place, Control(superlink), folder, state)
    if not place.exists():
        raise FederationError(
            f"there is no {str(place)!r}: give the site's policy, or the server's folder app/"
        )
    from tacit.federation.client.health import site_status

    return site_status(place)
