"""`tacit follow`: the posterior of streams, kept current."""

import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tacit.cli.options import AllowSimulated, Json, Prior, Probability, TrustedKeys
from tacit.cli.stopping import Stopped, pause, stopping

if TYPE_CHECKING:
    from rich.console import RenderableType

    from tacit.analyst.follow import Follower
    from tacit.analyst.posterior.summary import Summary


def follow(
    logs: Annotated[list[Path], typer.Argument(help="Release logs, one for each holder's stream.")],
    out: Annotated[
        Path | None,
        typer.Option(help="File for the posterior (Parquet), written anew after each look."),
    ] = None,
    method: Annotated[
        str, typer.Option(help="noise-aware, exact-fixed-s or fixed-s-fast.")
    ] = "noise-aware",
    prior: Prior = "weak",
    probability: Probability = 0.9,
    every: Annotated[
        float, typer.Option(min=0.05, help="Seconds between two looks at the logs.")
    ] = 1.0,
    trusted_key: TrustedKeys = None,
    *,
    once: Annotated[
        bool, typer.Option("--once", help="Show the posterior of what is there now, and stop.")
    ] = False,
    allow_simulated: AllowSimulated = False,
    as_json: Json = False,
) -> None:
    """Keep the posterior current while streams go on.

    Batches are added up as they are logged, at a cost that does not grow. The result is that of
    `tacit fit` over the same logs. Ctrl-C ends it.

    Example: `tacit follow north.log south.log --out posterior.parquet`
    """
    from tacit.analyst.follow import Follower
    from tacit.files import refuse_overwriting, refuse_unwritable

    if out is not None:
        refuse_unwritable(out)
        refuse_overwriting(out, logs)
    follower = Follower(
        logs, method=method, prior=prior, allow_simulated=allow_simulated, trusted_keys=trusted_key
    )
    with stopping() as stopped:
        views = _views(follower, probability, out, None if once else every, stopped)
        if not (once or as_json) and sys.stdout.isatty():
            _live(follower, views)
            return
        for summary in views:
            typer.echo(
                json.dumps(_facts(follower) | summary.to_dict())
                if as_json
                else _words(follower, summary)
            )


def _views(
    follower: "Follower",
    probability: float,
    out: Path | None,
    every: float | None,
    stopped: Stopped,
) -> Iterator["Summary"]:
    """A summary after each look that found new batches; one alone where `every` is None."""
    while not stopped():
        if follower.update() or every is None:
            posterior = follower.posterior()
            if out is not None:
                posterior.save(out)
            yield posterior.summary(probability)
        if every is None:
            return
        pause(every, stopped)


def _facts(follower: "Follower") -> dict[str, Any]:
    streams = [
        {"holder": one.holder, "batches": one.batches, "rows": one.n, "epsilon": one.epsilon}
        for one in follower.streams
    ]
    return {"streams": streams, "lost": follower.lost}


def _state(follower: "Follower") -> str:
    """Batches, rows and ε on one line."""
    streams = follower.streams
    rows = sum(one.n or 0 for one in streams)
    epsilons = ", ".join(sorted({f"{one.epsilon:g}" for one in streams}))
    lost = f" ({follower.lost} lost)" if follower.lost else ""
    many = "stream" if len(streams) == 1 else "streams"
    batches = sum(one.batches for one in streams)
    return (
        f"{batches} batches{lost} of {len(streams)} {many}, {rows:,.0f} rows, epsilon = {epsilons}"
    )


def _words(follower: "Follower", summary: "Summary") -> str:
    return f"{time.strftime('%H:%M:%S')}  {_state(follower)}\n{summary}\n"


def _live(follower: "Follower", views: Iterator["Summary"]) -> None:
    from rich.console import Console
    from rich.live import Live

    with Live(
        "waiting for the first batch; Ctrl-C ends", console=Console(), auto_refresh=False
    ) as live:
        for summary in views:
            live.update(_picture(follower, summary), refresh=True)


def _picture(follower: "Follower", summary: "Summary") -> "RenderableType":
    """The estimates as a table, each with its interval drawn to the scale of all of them."""
    from rich.markup import escape
    from rich.table import Table

    table = Table(
        title=_state(follower),
        caption=(
            f"{summary.method}, {summary.probability:.0%} intervals; "
            f"{time.strftime('%H:%M:%S')}; Ctrl-C ends"
        ),
    )
    for heading in ("", "mean", "low", "high"):
        table.add_column(heading, justify="right" if heading else "left")
    table.add_column("interval (┊ is 0)")
    for row in summary.rows:
        table.add_row(
            escape(row.name),
            f"{row.mean:.4g}",
            f"{row.low:.4g}",
            f"{row.high:.4g}",
            _bar(row.low, row.mean, row.high),
        )
    return table


WIDTH = 33


def _bar(low: float, mean: float, high: float) -> str:
    """An interval as ├──●──┤ on an axis from −a to a, a its far end, with 0 in the middle as ┊."""
    reach = max(abs(low), abs(high), 1e-300)
    cells = [" "] * WIDTH
    begin, middle, end = (round((at / reach + 1) / 2 * (WIDTH - 1)) for at in (low, mean, high))
    cells[begin : end + 1] = "─" * (end + 1 - begin)
    cells[WIDTH // 2] = "┊" if cells[WIDTH // 2] == " " else "┼"
    cells[begin] = "├"
    cells[end] = "┤"
    cells[middle] = "●"
    return "".join(cells)
