"""`tacit plan`: how wide intervals will be, before anybody publishes."""

import json
import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from tacit.cli.options import Json, StudyFile
from tacit.cli.progress import talks_bar
from tacit.errors import StudyError, TacitError

if TYPE_CHECKING:
    from tacit.imagined import Guess
    from tacit.plan import Forecast
    from tacit.study import Study


EXPLAINED = 0.5
EXPLAINED_BY_FAMILY = 0.2
"""Shares that features are guessed to explain: of a response, and of what stands behind answers."""
Rows = Annotated[
    str | None,
    typer.Option(
        help="Rows of each holder, as 12000,8000,5000; they take the place of the study's "
        "planned_rows. [default: those]"
    ),
]
Budgets = Annotated[
    str | None, typer.Option(help="Budgets to compare, as 0.5,1,2. [default: the study's]")
]
Width = Annotated[
    float | None,
    typer.Option(
        help="Find the epsilon at which each slope, as a share of response range over "
        "feature range, is this well known."
    ),
]
Explained = Annotated[
    float | None,
    typer.Option(
        min=0,
        max=0.99,
        help="Guess: share of the response's variance that features explain. "
        "[default: 0.5; 0.2 of a family's]",
    ),
]
Family = Annotated[
    Literal["logistic", "probit", "poisson"] | None,
    typer.Option(help="Forecast log-odds or log-rates, of a response of 0/1 or a count."),
]
Rate = Annotated[
    float | None,
    typer.Option(
        help="Guess, with --family: share of ones, or mean count. [default: a fifth of the range]"
    ),
]
Fill = Annotated[
    float | None,
    typer.Option(
        min=0.01,
        max=1,
        help="Guess: share of their (typical) ranges that features fill. "
        "[default: 0.55 of a range, all of a typical one, 0 and 1 for a range of 0 to 1, and "
        "a band]",
    ),
]
Spread = Annotated[
    float | None,
    typer.Option(
        min=0,
        max=1,
        help="Guess: sd of every slope between holders, as a share of response range over "
        "feature range. [default: holders are alike]",
    ),
]
PerPerson = Annotated[
    float,
    typer.Option(
        help="Rows that a person has on average, in a study with a person: so many count as one."
    ),
]
Visits = Annotated[
    int | None,
    typer.Option(
        min=1,
        max=12,
        help="Forecast so many visits. [default: the study's, or what its rule says]",
    ),
]
Picture = Annotated[
    Path | None,
    typer.Option(help="Also draw it, to a .svg or .png file (needs tacit-dp[plots])."),
]
WIDTH = 80
"""Of the tables that are printed."""


def plan(
    study: StudyFile,
    rows: Rows = None,
    epsilon: Budgets = None,
    width: Width = None,
    r_squared: Explained = None,
    fill: Fill = None,
    spread: Spread = None,
    rows_per_person: PerPerson = 1.0,
    family: Family = None,
    rate: Rate = None,
    visits: Visits = None,
    picture: Picture = None,
    *,
    as_json: Json = False,
) -> None:
    """Forecast the width of each coefficient's 90 % interval, and how much of it is privacy noise.

    Only public quantities go in: the study, the numbers of rows, and a guess of the signal.

    Example: `tacit plan study.toml --rows 12000,8000,5000 --epsilon 0.5,1,2 --width 0.1`
    """
    from tacit.imagined import Guess
    from tacit.plan import Plan, planned_for
    from tacit.study import Study

    stated = Study.load(study)
    holders = _persons(stated, rows, rows_per_person)
    agreement = planned_for(stated, holders, visits)
    _check_width(width, family)
    budgets = _numbers(epsilon, "--epsilon", "0.5,1,2") if epsilon else [agreement.epsilon]
    if r_squared is None:
        r_squared = EXPLAINED if family is None else EXPLAINED_BY_FAMILY
    guess = Guess(r_squared=r_squared, fill=fill, spread=spread, family=family, rate=rate)
    with talks_bar() as on_talk:
        imagined = Plan(agreement, holders, guess, on_talk)
        forecasts = [imagined.forecast(budget) for budget in budgets]
        needed = None if width is None else imagined.epsilon_for(width)
    if picture is not None:
        _draw(forecasts, picture)
    if as_json:
        facts = {"forecasts": [_facts(each) for each in forecasts], "epsilon_for_width": needed}
        typer.echo(json.dumps(facts))
        return
    typer.echo("\n".join(_guessed(guess, agreement)))
    if stated.planned_rows not in ((), agreement.planned_rows):
        typer.echo(_replanned(stated, agreement))
    if (told := _visits(agreement, forecasts)) is not None:
        typer.echo(f"visits:  {told}")
    typer.echo()
    typer.echo(_table(forecasts))
    for sentence in _verdicts(forecasts):
        typer.echo(f"\n{sentence}")
    if width is not None:
        typer.echo(f"\n{_answer(width, needed, spread)}")
    if picture is not None:
        typer.echo(f"\n{picture}: the same as a picture")


def _check_width(width: float | None, family: str | None) -> None:
    if width is None:
        return
    if not 0 < width < math.inf:
        raise StudyError(f"--width must be above 0, such as 0.1; got {width:g}")
    if family is not None:
        raise StudyError("--width goes with a straight line: compare budgets by --epsilon instead")


def _persons(study: "Study", rows: str | None, rows_per_person: float) -> list[int]:
    """Each holder's number of persons: as asked for, or as the study plans it."""
    from tacit.plan import persons_of

    if rows is not None:
        counts = [int(count) for count in _numbers(rows, "--rows", "12000,8000,5000")]
        return persons_of(study, counts, rows_per_person)
    if rows_per_person != 1:
        raise StudyError(
            "--rows-per-person goes with --rows: planned_rows of a study with a person are persons"
        )
    return list(study.planned_rows)


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


def _facts(forecast: "Forecast") -> dict[str, Any]:
    widths = forecast.widths.tolist()
    shares = forecast.privacy_share.tolist()
    return {
        "epsilon": forecast.epsilon,
        "widths": dict(zip(forecast.names, widths, strict=True)),
        "narrow": dict(zip(forecast.names, forecast.narrow.tolist(), strict=True)),
        "wide": dict(zip(forecast.names, forecast.wide.tolist(), strict=True)),
        "privacy_share": dict(zip(forecast.names, shares, strict=True)),
        "verdict": forecast.verdict,
        "visits": forecast.visits,
    }


def _guessed(guess: "Guess", study: "Study") -> list[str]:
    """What the table below rests on."""
    filled = "0.55 of their ranges, or all of their typical intervals"
    if guess.fill is not None:
        filled = f"{guess.fill:g} of their (typical) ranges"
    lines = [
        "expected width of 90 % intervals, in user units (share of variance due to privacy noise)",
        f"guessed: R² {guess.r_squared:g}, and that features fill {filled}",
    ]
    if guess.fill is None:
        lines.append("         (between: all of them, and a quarter with responses spread wider)")
    if any(map(guess.is_answer, study.features)):
        lines.append("         or are answers of 0 and 1 where that is their range")
    lines.append("         with a long tail, and neighbours that correlate, as on public tables")
    if guess.spread is not None:
        lines.append(f"         and that slopes differ between holders with sd {guess.spread:g}")
    if guess.family is not None:
        rate = study.response.range[1] / 5 if guess.rate is None else guess.rate
        lines.append(f"         and a {guess.family} response with mean {rate:g}")
    return lines


def _replanned(stated: "Study", agreement: "Study") -> str:
    """That rows were asked for which the study does not plan."""
    told, asked = (", ".join(map(str, each.planned_rows)) for each in (stated, agreement))
    return f"rows:    the study plans {told}; this is a study that states planned_rows = [{asked}]"


def _visits(study: "Study", forecasts: list["Forecast"]) -> str | None:
    """How many visits there are, and why; at other budgets there may be others."""
    from tacit.study.words import visits

    counts = [each.visits for each in forecasts]
    if len(set(counts)) == 1:
        return visits(study)
    pairs = [f"{each.visits} at epsilon = {each.epsilon:g}" for each in forecasts]
    return ", ".join(pairs)


def _table(forecasts: list["Forecast"]) -> str:
    """The forecasts side by side, in as many tables below each other as 80 columns ask for."""
    for abreast in range(len(forecasts), 1, -1):
        starts = range(0, len(forecasts), abreast)
        tables = [_side_by_side(forecasts[first : first + abreast]) for first in starts]
        if all(len(line) <= WIDTH for table in tables for line in table.splitlines()):
            return "\n\n".join(tables)
    return "\n\n".join(_side_by_side([each]) for each in forecasts)


def _side_by_side(forecasts: list["Forecast"]) -> str:
    from tacit.analyst.posterior.text_table import text_table

    rows = [["", *(f"epsilon = {each.epsilon:g}" for each in forecasts)]]
    for k, name in enumerate(forecasts[0].names):
        rows.append([name, *(_cell(each, k) for each in forecasts)])
    return text_table(rows)


def _cell(forecast: "Forecast", k: int) -> str:
    """A width, its band where there is one, and how much of it is privacy's."""
    width = f"{forecast.widths[k]:.3g}"
    if forecast.wide[k] > forecast.narrow[k]:
        width += f" [{forecast.narrow[k]:.2g} to {forecast.wide[k]:.2g}]"
    return f"{width} ({100 * forecast.privacy_share[k]:.0f} %)"


def _verdicts(forecasts: list["Forecast"]) -> list[str]:
    """What `fit` would say, at each ε at which it would say something."""
    return [f"at epsilon = {each.epsilon:g}: {each.verdict}" for each in forecasts if each.verdict]


def _answer(width: float, needed: float | None, spread: float | None) -> str:
    more = "holders, or rows," if spread else "rows"
    enough = f"no epsilon up to 20 is enough: more {more} are needed"
    if needed is not None:
        enough = f"epsilon = {needed:.3g} is enough"
    return f"for every slope known to {width:g} of (response range / feature range): {enough}"


def _draw(forecasts: list["Forecast"], path: Path) -> None:
    """Bars: each slope's scaled width at each ε, split into sampling and privacy."""
    import numpy as np

    with _axes(path, len(forecasts[0].names)) as panel:
        names = forecasts[0].names[-len(forecasts[0].scaled_widths) :]
        places = np.arange(len(names))
        thick = 0.8 / len(forecasts)
        for k, forecast in enumerate(forecasts):
            at = places + (k - (len(forecasts) - 1) / 2) * thick
            panel.barh(
                at,
                forecast.scaled_widths,
                0.9 * thick,
                color=f"C{k}",
                alpha=0.4,
                label=f"ε = {forecast.epsilon:g}",
            )
            panel.barh(at, forecast.scaled_sampling, 0.9 * thick, color=f"C{k}")
        panel.set_yticks(places, names)
        panel.invert_yaxis()
        panel.set_xlabel(
            "width of the 90 % interval, scaled units (solid: what sampling alone would leave)"
        )
        panel.legend(frameon=False)


@contextmanager
def _axes(path: Path, rows: int) -> Iterator[Any]:
    """An axes that is saved to `path` when the block ends; tall enough for `rows` lines."""
    if path.suffix not in {".svg", ".png", ".pdf"}:
        raise TacitError(f"a picture's name must end in .svg, .png or .pdf; got {path.name!r}")
    try:
        from matplotlib.figure import Figure
    except ModuleNotFoundError:
        raise TacitError("pictures need matplotlib: pip install 'tacit-dp[plots]'") from None
    figure = Figure(figsize=(8, 1.5 + 0.5 * rows), layout="constrained")
    panel = figure.add_subplot()
    panel.spines[["top", "right"]].set_visible(False)
    yield panel
    try:
        figure.savefig(path, dpi=150)
    except OSError as error:
        raise TacitError(f"cannot write {str(path)!r}: {error.strerror}") from None
