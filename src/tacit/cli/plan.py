"""`tacit plan`: how wide intervals will be, before anybody publishes."""

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tacit.cli.options import Json
from tacit.errors import StudyError

if TYPE_CHECKING:
    from tacit.plan import Forecast


def plan(
    study: Annotated[Path, typer.Argument(help="The study file.")],
    rows: Annotated[str, typer.Option(help="Rows of each holder, as 12000,8000,5000.")],
    epsilon: Annotated[
        str | None, typer.Option(help="Budgets to compare, as 0.5,1,2. [default: the study's]")
    ] = None,
    width: Annotated[
        float | None,
        typer.Option(
            help="Find the epsilon at which each slope, as a share of response range over feature range, is this well known."
        ),
    ] = None,
    r_squared: Annotated[
        float,
        typer.Option(
            min=0, max=0.99, help="Guess: share of the response's variance that features explain."
        ),
    ] = 0.3,
    fill: Annotated[
        float,
        typer.Option(
            min=0.01, max=1, help="Guess: share of their typical intervals that features fill."
        ),
    ] = 1.0,
    spread: Annotated[
        float | None,
        typer.Option(
            min=0,
            max=1,
            help="Guess: sd of every slope between holders, as a share of response range over "
            "feature range. [default: holders are alike]",
        ),
    ] = None,
    picture: Annotated[
        Path | None, typer.Option(help="Also draw it, to a .svg or .png file (needs tacit[plots]).")
    ] = None,
    *,
    as_json: Json = False,
) -> None:
    """Forecast the width of each coefficient's 90 % interval, and how much of it is privacy noise.

    Only public quantities go in: the study, the numbers of rows, and a guess of the signal.

    Example: `tacit plan study.toml --rows 12000,8000,5000 --epsilon 0.5,1,2 --width 0.1`
    """
    from tacit.plan import Guess, epsilon_for, forecast
    from tacit.study import Study

    agreement = Study.load(study)
    holders = [int(count) for count in _numbers(rows, "--rows", "12000,8000,5000")]
    if width is not None and not 0 < width < math.inf:
        raise StudyError(f"--width must be above 0, such as 0.1; got {width:g}")
    budgets = _numbers(epsilon, "--epsilon", "0.5,1,2") if epsilon else [agreement.epsilon]
    guess = Guess(r_squared=r_squared, fill=fill, spread=spread)
    forecasts = forecast(agreement, holders, budgets, guess)
    needed = epsilon_for(agreement, holders, width, guess) if width is not None else None
    if picture is not None:
        _draw(forecasts, picture)
    if as_json:
        facts = [
            {
                "epsilon": f.epsilon,
                "widths": _named(f),
                "privacy_share": dict(zip(f.names, f.privacy_share, strict=True)),
            }
            for f in forecasts
        ]
        typer.echo(json.dumps({"forecasts": facts, "epsilon_for_width": needed}))
        return
    typer.echo(
        "expected width of 90 % intervals, in user units (share of their variance due to privacy noise)"
    )
    typer.echo(
        f"guessed: R² {r_squared:g}, and that features fill {fill:g} of their typical intervals"
    )
    if spread is not None:
        typer.echo(f"         and that slopes differ between holders with sd {spread:g}")
    typer.echo()
    typer.echo(_table(forecasts))
    if width is not None:
        answer = f"epsilon = {needed:.3g} is enough" if needed is not None else _not_enough(spread)
        typer.echo(
            f"\nfor every slope known to {width:g} of (response range / feature range): {answer}"
        )
    if picture is not None:
        typer.echo(f"\n{picture}: the same as a picture")


def _not_enough(spread: float | None) -> str:
    more = "rows are" if not spread else "holders, or rows, are"
    return f"no epsilon up to 20 is enough: more {more} needed"


def _numbers(text: str, option: str, example: str) -> list[float]:
    try:
        numbers = [float(part) for part in text.split(",")]
    except ValueError:
        numbers = [math.nan]
    if not all(map(math.isfinite, numbers)):
        raise StudyError(
            f"{option} must be numbers with commas between, such as {example}; got {text!r}"
        )
    return numbers


def _named(found: "Forecast") -> dict[str, float]:
    return dict(zip(found.names, found.widths.tolist(), strict=True))


def _table(forecasts: list["Forecast"]) -> str:
    names = forecasts[0].names
    cells = [["", *(f"epsilon = {f.epsilon:g}" for f in forecasts)]]
    cells += [
        [name, *(f"{f.widths[k]:.3g} ({100 * f.privacy_share[k]:.0f} %)" for f in forecasts)]
        for k, name in enumerate(names)
    ]
    wide = [max(len(line[k]) for line in cells) for k in range(len(cells[0]))]
    return "\n".join(
        "  ".join(
            [line[0].ljust(wide[0]), *(c.rjust(w) for c, w in zip(line[1:], wide[1:], strict=True))]
        )
        for line in cells
    )


def _draw(forecasts: list["Forecast"], path: Path) -> None:
    """Bars: each slope's scaled width at each ε, split into sampling and privacy."""
    import numpy as np

    from tacit.cli.picture import axes

    with axes(path, len(forecasts[0].names)) as panel:
        names = forecasts[0].names[-len(forecasts[0].scaled_widths) :]
        places = np.arange(len(names))
        thick = 0.8 / len(forecasts)
        for k, found in enumerate(forecasts):
            at = places + (k - (len(forecasts) - 1) / 2) * thick
            panel.barh(
                at,
                found.scaled_widths,
                0.9 * thick,
                color=f"C{k}",
                alpha=0.4,
                label=f"ε = {found.epsilon:g}",
            )
            panel.barh(at, found.scaled_sampling, 0.9 * thick, color=f"C{k}")
        panel.set_yticks(places, names)
        panel.invert_yaxis()
        panel.set_xlabel(
            "width of the 90 % interval, scaled units (solid: what sampling alone would leave)"
        )
        panel.legend(frameon=False)
