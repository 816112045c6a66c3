"""`tacit scales`: from all holders' scales to the second stage's study."""

import json
import os
from pathlib import Path
from typing import Annotated

import typer

from tacit.cli.options import Json
from tacit.errors import StudyError


def scales(
    releases: Annotated[
        list[Path],
        typer.Argument(help="Releases of scales, one per holder (`tacit publish --stage scales`)."),
    ],
    out: Annotated[Path, typer.Option(help="File for the second stage's study.")],
    trusted_key: Annotated[
        list[str] | None,
        typer.Option(help="Public key: take releases signed by one of these only."),
    ] = None,
    *,
    allow_simulated: Annotated[
        bool, typer.Option("--allow-simulated", help="Take releases with seeded noise.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Fix each column's typical interval from all holders' scales, and write the study of the second stage.

    It depends on the given files alone: any holder who has them can make the study again and compare.

    Example: `tacit scales north.scales.json south.scales.json --out study2.toml`
    """
    from tacit.analyst.typical import fix_scales
    from tacit.files import write_whole
    from tacit.release.scales import ScalesRelease
    from tacit.study.toml import study_toml

    if os.path.lexists(out):
        raise StudyError(f"{str(out)!r} exists already: choose another --out, or remove it")
    loaded = [ScalesRelease.load(path) for path in releases]
    study = fix_scales(loaded, allow_simulated=allow_simulated, trusted_keys=trusted_key)
    write_whole(out, study_toml(study))
    asked = {feature.name for feature in loaded[0].study.scaled}
    columns = [feature for feature in study.features if feature.name in asked]
    if as_json:
        found = [
            {"name": column.name, "range": column.range, "typical": column.typical}
            for column in columns
        ]
        typer.echo(
            json.dumps(
                {
                    "study": str(out),
                    "hash": study.hash,
                    "epsilon": study.epsilon,
                    "delta": study.delta,
                    "columns": found,
                }
            )
        )
        return
    rows = [("column", "range", "typical")]
    rows += [
        (column.name, _interval(column.range), _interval(column.typical) or "the whole range")
        for column in columns
    ]
    widths = [max(len(row[k]) for row in rows) for k in range(2)]
    for name, bounds, typical in rows:
        typer.echo(f"{name:<{widths[0]}}  {bounds:<{widths[1]}}  {typical}")
    typer.echo(
        f"\n{out}: the study of the second stage, epsilon = {study.epsilon:.4g} at delta = {study.delta:g}; publish for it next"
    )


def _interval(bounds: tuple[float, float] | None) -> str:
    return "" if bounds is None else f"{bounds[0]:g} .. {bounds[1]:g}"
