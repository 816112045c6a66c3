"""`tacit study`: write the agreement, and see what it implies."""

import json
import os
import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from tacit.cli.options import WIDTH, Dataset, Json, LedgerFile, StudyFile, wrapped
from tacit.errors import StudyError

if TYPE_CHECKING:
    from tacit.privacy.mechanism import Mechanism, Noise
    from tacit.study import Study
    from tacit.study.words import Fact

app = typer.Typer(help="Write a study, and see what it implies.", no_args_is_help=True)


@app.command()
def new(
    response: Annotated[
        list[str] | None,
        typer.Option(
            help="The response and its public range, as days:0..30. Repeat it where one release "
            "is to serve several."
        ),
    ] = None,
    columns: Annotated[
        list[str] | None,
        typer.Option(
            help="A feature: age:18..100 (numeric) or sex:female|male (categorical). Repeat it."
        ),
    ] = None,
    formula: Annotated[
        str | None,
        typer.Option(help="Terms over the columns, as 'days ~ age * sex + poly(bmi, 2)'."),
    ] = None,
    person: Annotated[
        str | None,
        typer.Option(help="The column that says whose a row is, where persons have several rows."),
    ] = None,
    planned_rows: Annotated[
        list[int] | None,
        typer.Option(
            help="Rows that a holder will have: several visits may then correct a first answer. "
            "Repeat it for further holders."
        ),
    ] = None,
    out: Annotated[Path, typer.Option(help="The file to write.")] = Path("study.toml"),
    name: Annotated[str, typer.Option(help="Name of the study.")] = "my-study",
    epsilon: Annotated[float, typer.Option(help="Budget epsilon.")] = 1.0,
    delta: Annotated[
        float, typer.Option(help="Budget delta: well below one over the number of persons.")
    ] = 1e-6,
    relation: Annotated[
        Literal["replace-one", "add-remove"],
        typer.Option(help="What is protected; add-remove keeps the number of rows private too."),
    ] = "replace-one",
    missing: Annotated[
        Literal["drop", "impute", "refuse"], typer.Option(help="What missing values become.")
    ] = "drop",
    typical: Annotated[
        list[str] | None,
        typer.Option(help="Where most values of a column lie, as age:30..80. Repeat it."),
    ] = None,
    holder: Annotated[
        list[str] | None, typer.Option(help="A holder that is expected to publish. Repeat it.")
    ] = None,
) -> None:
    """Write a commented study file; without options, it asks at the terminal.

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
    if response is None and columns is None and sys.stdin.isatty():
        from tacit.cli.study_questions import ask_budget, ask_columns, ask_rows

        asked, columns = ask_columns()
        response = [asked]
        epsilon, delta = ask_budget(epsilon, delta)
        planned_rows = planned_rows or ask_rows()
    if not response or not columns:
        raise StudyError(
            "give --response, as days:0..30, and --columns, as age:18..100; at a terminal, give "
            "neither, and you are asked"
        )
    agreed = {
        "relation": relation,
        "missing": missing,
        "holders": tuple(holder or ()),
        "person": person,
        "planned_rows": tuple(planned_rows or ()),
    }
    text = study_text(name, epsilon, delta, response, columns, formula, typical=typical, **agreed)
    write_whole(out, text)
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


@app.command()
def dossier(
    study: StudyFile,
    out: Annotated[
        Path, typer.Option(help="Where to write: this name with .html, .md and .json at its end.")
    ] = Path("dossier"),
    ledger: LedgerFile = None,
    dataset: Dataset = None,
    curator: Annotated[str | None, typer.Option(help="Who holds the rows.")] = None,
    purpose: Annotated[str | None, typer.Option(help="What the study is for.")] = None,
    *,
    as_json: Json = False,
) -> None:
    """Write what an ethics board or data-protection officer asks for, from study and ledger.

    Three files: a page to print, the same as Markdown, and an entry for a registry of deployments
    as JSON. They tell the guarantee in words and figures, what was spent so far, the mechanism and
    its proofs, who is trusted, and what is not covered, in the order of NIST SP 800-226. Nothing in
    them depends on a row.

    Example: `tacit study dossier study.toml --out length-of-stay`
    """
    from tacit.files import refuse_overwriting, refuse_unwritable
    from tacit.holder.dossier import dossier_of, write_dossier
    from tacit.holder.ledger import Ledger, default_path
    from tacit.study import Study

    book = Ledger(ledger or default_path())
    for ending in (".html", ".md", ".json"):
        place = out.with_name(out.name + ending)
        refuse_unwritable(place)
        refuse_overwriting(place, [study, book.path])
    agreement = Study.load(study)
    written = write_dossier(
        dossier_of(agreement, book, dataset, curator=curator, purpose=purpose), out
    )
    if as_json:
        typer.echo(json.dumps({"study": agreement.hash, "files": list(map(str, written))}))
        return
    for path in written:
        typer.echo(str(path))


def _facts(study: "Study") -> dict[str, Any]:
    from tacit.study.words import best_guess, noise_of_averaging

    mechanism = study.mechanism()
    asked = mechanism if study.visit_count == 1 else _last_visit(study)
    is_one = study.visit_count == 1
    return {
        "name": study.name,
        "hash": study.hash,
        "columns": study.columns,
        "d": study.d,
        "relation": study.relation,
        "epsilon": study.epsilon,
        "delta": study.delta,
        "mu": mechanism.mu,
        "visits": study.visit_count,
        "row_radius": study.row_radius if is_one else None,
        "response_bound": study.response_bound if is_one else None,
        "response_weight": study.response_weight if is_one else None,
        "sensitivity": asked.sensitivity,
        "multiplier": asked.multiplier,
        "noise": vars(asked.noise),
        "average": study.release.average,
        "average_noise": noise_of_averaging(study),
        "best_guess": best_guess(mechanism.mu),
    }


def words(study: "Study") -> str:
    """What a study implies, for a person to read."""
    from tacit.study import words as explanation

    mechanism = study.mechanism()
    lines = [
        f"study {study.name!r}  {study.hash}",
        "",
        *(line for fact in explanation.facts(study) for line in _fact_lines(fact)),
        *_noise_words(study),
        "",
        wrapped("what an attacker can learn: " + " ".join(explanation.attack(mechanism.mu, study))),
    ]
    return "\n".join(lines)


def _fact_lines(fact: "Fact") -> list[str]:
    """A fact behind its name, in as many lines as it needs."""
    return textwrap.wrap(
        f"{fact.name:<9} {fact.sentence}",
        WIDTH,
        subsequent_indent=" " * 10,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _noise_words(study: "Study") -> list[str]:
    """The noise on each part, and beside it what one row adds at most."""
    if study.visit_count > 1:
        last = _last_visit(study)
        scale = "at a correction, of rows and residuals of 1 at most"
        return [f"noise     standard deviation {scale}:", *_noise_lines(last.noise)]
    one_row = ""
    if study.release.average == 1:
        radius = study.row_radius
        one_row = f" (one row adds at most {radius**2:.3g} to X'X, {radius:.3g} to X'y)"
    return [f"noise     standard deviation{one_row}:", *_noise_lines(study.mechanism().noise)]


def _last_visit(study: "Study") -> "Mechanism":
    """The mechanism of the last of several visits, in rows and residuals of at most 1."""
    from tacit.study.visits import visit_mechanism

    return visit_mechanism(study, study.visit_count, (study.epsilon, study.delta))


def _noise_lines(noise: "Noise") -> list[str]:
    """The noise on each part, a line each."""
    lines = [
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
