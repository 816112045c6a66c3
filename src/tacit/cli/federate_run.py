"""`tacit federate run`: a study from its start to the truth about its end."""

import json
from pathlib import Path
from typing import Annotated

import typer

from tacit.cli.options import Json
from tacit.errors import FederationError

SuperLink = Annotated[
    str,
    typer.Option(help="The SuperLink's name in Flower's configuration, $FLWR_HOME/config.toml."),
]


def run(
    app: Annotated[Path, typer.Argument(help="The project's folder app/.")],
    *,
    superlink: SuperLink = "tacit",
    config: Annotated[
        str, typer.Option(help="Run configuration to change, such as 'deadline=600.0'.")
    ] = "",
    away: Annotated[
        float, typer.Option(help="Seconds to wait for a SuperLink that goes away meanwhile.")
    ] = 600.0,
    as_json: Json = False,
) -> None:
    """Run a study, tell of every holder as it answers, and end with the truth: 0 if it was fitted.

    A study whose SuperLink is restarted meanwhile is started again; that costs nobody anything.

    Example: `tacit federate run stay/app`
    """
    from tacit.federation.server.control import Control
    from tacit.federation.server.run import Follow

    if not (app / "pyproject.toml").is_file():
        raise FederationError(
            f"{str(app)!r} is no Flower app: give the folder app/ that `tacit federate init` wrote"
        )

    def tell(line: str) -> None:
        typer.echo(line, err=as_json)

    end = Follow(Control(superlink), app, config, tell, away).run()
    if as_json:
        typer.echo(json.dumps(end))
    if end["outcome"] != "fitted":
        raise FederationError(f"nothing was fitted: {end['failure']}")
    typer.echo(f"fitted: posterior, summary, report and releases are in {end['out']}", err=as_json)
