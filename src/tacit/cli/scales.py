"""`tacit scales`: from all holders' scales to the second stage's study."""

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tacit.cli.options import AllowSimulated, Json, TrustedKeys
from tacit.errors import StudyError

if TYPE_CHECKING:
    from tacit.study import Feature

_TOLD = {"name", "range", "typical"}


def scales(
    releases: Annotated[
        list[Path],
        typer.Argument(help="Releases of scales, one per holder (`tacit publish --stage scales`)."),
    ],
    out: Annotated[Path, typer.Option(help="File for the second stage's study.")],
    trusted_key: TrustedKeys = None,
    *,
    allow_simulated: AllowSimulated = False,
    as_json: Json = False,
) -> None:
    """Fix each column's typical interval from all holders' scales, for the second stage's study.

    It depends on the given files alone: any holder who has them can make the study again and
    compare.

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
        facts = {
            "study": str(out),
            "hash": study.hash,
            "epsilon": study.epsilon,
            "delta": study.delta,
            "columns": [column.model_dump(include=_TOLD) for column in columns],
        }
        typer.echo(json.dumps(facts))
        return
    typer.echo(_table(columns))
    typer.echo(
        f"\n{out}: the study of the second stage, epsilon = {study.epsilon:.4g} "
        f"at delta = {study.delta:g}; publish for it next"
    )


def _table(columns: "list[Feature]") -> str:
    from tacit.analyst.posterior.text_table import text_table

    rows = [["column", "range", "typical"]]
    rows += [
        [column.name, _interval(column.range), _interval(column.typical) or "the whole range"]
        for column in columns
    ]
    return text_table(rows)


def _interval(bounds: tuple[float, float] | None) -> str:
    return "" if bounds is None else f"{bounds[0]:g} .. {bounds[1]:g}"
