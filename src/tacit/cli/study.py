"""`tacit study`: write the agreement, and see what it implies."""

import json
import os
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tacit.cli.options import Json, StudyFile
from tacit.errors import StudyError

if TYPE_CHECKING:
    from tacit.privacy.mechanism import Noise
    from tacit.study import Study

app = typer.Typer(help="Write a study, and see what it implies.", no_args_is_help=True)


@app.command()
def new(
    response: Annotated[
        str, typer.Option(help="The response and its public range, as days:0..30.")
    ],
    columns: Annotated[
        list[str],
        typer.Option(
            help="A feature: age:18..100 (numeric) or sex:female|male (categorical). Repeat it."
        ),
    ],
    formula: Annotated[
        str | None,
        typer.Option(help="Terms over the columns, as 'days ~ age * sex + poly(bmi, 2)'."),
    ] = None,
    out: Annotated[Path, typer.Option(help="The file to write.")] = Path("study.toml"),
    name: Annotated[str, typer.Option(help="Name of the study.")] = "my-study",
    epsilon: Annotated[float, typer.Option(help="Budget epsilon.")] = 1.0,
    delta: Annotated[
        float, typer.Option(help="Budget delta: well below one over the number of persons.")
    ] = 1e-6,
) -> None:
    """Write a commented study file.

    Ranges and levels are public knowledge that all holders agree on. They are never read off data:
    that would leak it.

    Without a formula each column is a term of its own. With one, products, polynomials and
    functions of columns get their limits from the public ranges too.

    Example: `tacit study new --response days:0..30 --columns age:18..100 --columns "sex:f|m"`

    With a formula: the same, and `--formula "days ~ age * sex"`.
    """
    from tacit.cli.study_template import study_text
    from tacit.files import write_whole

    if os.path.lexists(out):
        raise StudyError(f"{str(out)!r} exists already: choose another --out, or remove it")
    write_whole(out, study_text(name, epsilon, delta, response, columns, formula))
    typer.echo(
        f"{out}: edit it, agree on it, then see what it implies with `tacit study check {out}`"
    )


@app.command()
def check(study: StudyFile, *, as_json: Json = False) -> None:
    """Explain what a study implies: columns, sensitivity, noise, and what an attacker could learn.

    Example: `tacit study check study.toml`
    """
    from tacit.study import Study

    agreement = Study.load(study)
    typer.echo(json.dumps(_facts(agreement)) if as_json else words(agreement))


def _facts(study: "Study") -> dict[str, Any]:
    from tacit.study.words import best_guess, noise_of_averaging

    mechanism = study.mechanism()
    stages = None
    if study.scales_share is not None:
        stages = dict(zip(("scales", "statistics"), study.stages, strict=True))
    return {
        "name": study.name,
        "hash": study.hash,
        "columns": study.columns,
        "d": study.d,
        "relation": study.relation,
        "epsilon": study.epsilon,
        "delta": study.delta,
        "mu": mechanism.mu,
        "row_radius": study.row_radius,
        "response_bound": study.response_bound,
        "response_weight": study.response_weight,
        "sensitivity": mechanism.sensitivity,
        "multiplier": mechanism.multiplier,
        "noise": vars(mechanism.noise),
        "average": study.release.average,
        "average_noise": noise_of_averaging(study),
        "best_guess": best_guess(mechanism.mu),
        "stages": stages,
    }


def words(study: "Study") -> str:
    """What a study implies, for a person to read."""
    from tacit.study import words as explanation

    mechanism = study.mechanism()
    lines = [
        f"study {study.name!r}  {study.hash}",
        "",
        f"columns   d = {study.d}: {', '.join(study.columns)}",
        f"rows      {explanation.shrinking(study)}",
        *_averaging_words(study),
        f"missing   {explanation.missing(study)}",
        f"count     {explanation.count(study)}",
        *_stage_words(study),
        *_sum_words(study),
        "",
        (
            f"guarantee epsilon = {study.epsilon:g}, delta = {study.delta:g}, "
            f"for {explanation.neighbours(study)} (mu = {mechanism.mu:.4g})"
        ),
        (
            f"          sensitivity {mechanism.sensitivity:.4g}, "
            f"noise multiplier {mechanism.multiplier:.4g}"
        ),
        *_noise_words(study, mechanism.noise),
        "",
        *textwrap.wrap(
            "what an attacker can learn: " + " ".join(explanation.attack(mechanism.mu)), 120
        ),
    ]
    return "\n".join(lines)


def _averaging_words(study: "Study") -> list[str]:
    """What averaging does, where rows are averaged."""
    from tacit.study import words as explanation

    if study.release.average == 1:
        return []
    sentence = f"average   {explanation.averaging(study)}"
    return textwrap.wrap(sentence, 120, subsequent_indent=" " * 10)


def _stage_words(study: "Study") -> list[str]:
    """How the budget is divided, where there are two stages."""
    if study.scales_share is None:
        return []
    first, second = study.stages
    return [
        (
            f"stages    two, together the guarantee below: scales at epsilon = {first:.4g}, "
            f"statistics at {second:.4g}"
        ),
        (
            "          (publish --stage scales; `tacit scales` then writes the second stage's "
            "study, whose noise is its own)"
        ),
    ]


def _sum_words(study: "Study") -> list[str]:
    """What a secure sum asks of its holders, and what the sum's noise will be."""
    agreed = study.secure_sum
    if agreed is None:
        return []
    most = study.summed(len(agreed.holders)).noise.xtx_diagonal
    return [
        (
            f"sum       one secure sum of {len(agreed.holders)} holders instead of a release "
            "of each; nobody sees a part of it:"
        ),
        f"          {', '.join(agreed.holders)}",
        (
            f"          at least {agreed.least} must stay to the end, "
            f"of whom at most {agreed.colluding} may collude with the server"
        ),
        "          each adds a share of noise: honest ones together make up the noise below,",
        f"          and all of them make {most:.4g} on the diagonal of X'X",
    ]


def _noise_words(study: "Study", noise: "Noise") -> list[str]:
    """The noise on each part, and beside it what one row adds at most."""
    one_row = ""
    if study.release.average == 1:
        radius = study.row_radius
        one_row = f" (one row adds at most {radius**2:.3g} to X'X, {radius:.3g} to X'y)"
    lines = [
        f"noise     standard deviation{one_row}:",
        f"  X'X on the diagonal      {noise.xtx_diagonal:.4g}",
        f"  X'X off the diagonal     {noise.xtx_off_diagonal:.4g}",
        f"  X'y                      {noise.xty:.4g}",
        f"  y'y                      {noise.yty:.4g}"
        if noise.yty
        else "  y'y                      not published",
    ]
    if noise.eigenvalue:
        lines.append(f"  smallest eigenvalue      {noise.eigenvalue:.4g}")
    return lines
