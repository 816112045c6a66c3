"""`tacit fit` and `tacit summary`: from releases to a posterior, and what it says."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from tacit.cli.options import (
    AllowSimulated,
    Json,
    PosteriorFile,
    Prior,
    Probability,
    TrustedKeys,
    WithoutImplausible,
    wrapped,
)

if TYPE_CHECKING:
    from tacit.analyst.collection import Collection
    from tacit.analyst.posterior.posterior import Posterior
from tacit.errors import PosteriorError

Releases = Annotated[
    list[Path], typer.Argument(help="Release files, release logs of streams, or folders of them.")
]
MethodName = Annotated[str | None, typer.Option(help="Method by one of the names above.")]
Sampler = Annotated[
    Literal["gradient", "metropolis", "pseudo-marginal"],
    typer.Option(
        help="How normal-x samples: Hamiltonian Monte Carlo, the 2023 paper's kernel, or one that "
        "estimates the likelihood; the first mixes best."
    ),
]
NoiseVariance = Annotated[
    float | None,
    typer.Option(help="Residual variance, in scaled units, where a method holds it fixed."),
]
Holders = Annotated[
    Literal["differ", "common", "separate"],
    typer.Option(
        help="May holders differ (noise-aware, from three on); are they alike; or each alone."
    ),
]
Family = Annotated[
    Literal["logistic", "probit", "poisson"] | None,
    typer.Option(help="For a response of 0/1, or a count: coefficients as log-odds, or log-rates."),
]
Only = Annotated[
    list[str] | None,
    typer.Option(help="Fit these terms alone, as in `--only age,sex`; the releases serve it too."),
]
ResponseName = Annotated[
    str | None, typer.Option(help="Of a study of several responses: which one.")
]
Without = Annotated[
    list[str] | None, typer.Option(help="Fit all terms but these, as in `--without bmi`.")
]


def fit(
    releases: Releases,
    out: Annotated[Path, typer.Option(help="File for the posterior (Parquet).")],
    method: MethodName = None,
    prior: Prior = "weak",
    chains: Annotated[int, typer.Option(help="Chains of a sampler.")] = 4,
    draws: Annotated[int, typer.Option(help="Draws to keep, per chain.")] = 1000,
    warmup: Annotated[int, typer.Option(help="Iterations of warm-up, per chain.")] = 1000,
    seed: Annotated[int, typer.Option(help="Seed of the sampler.")] = 0,
    sampler: Sampler = "gradient",
    noise_variance: NoiseVariance = None,
    holders: Holders = "differ",
    family: Family = None,
    only: Only = None,
    without: Without = None,
    response: ResponseName = None,
    trusted_key: TrustedKeys = None,
    *,
    allow_simulated: AllowSimulated = False,
    without_implausible: WithoutImplausible = False,
    as_json: Json = False,
) -> None:
    """Infer the coefficients from releases, and save the posterior.

    Methods: noise-aware (the default), exact-fixed-s, fixed-s-fast (computed); normal-x, fixed-s,
    bernstein-sheldon (sampled); ada-ssp (a point). docs/methods.md says when which.

    Example: `tacit fit north.json south.json east.json --method fixed-s --out posterior.parquet`
    """
    from tacit.analyst.collection import collect, release_files
    from tacit.analyst.fit import DEFAULT_METHOD
    from tacit.analyst.fit import fit as fit_collection
    from tacit.analyst.methods.method import Settings
    from tacit.cli.progress import draws_bar
    from tacit.files import refuse_overwriting, refuse_unwritable

    refuse_unwritable(out)
    refuse_overwriting(out, [file for place in releases for file in release_files(place)])
    collection = collect(
        releases,
        allow_simulated=allow_simulated,
        trusted_keys=trusted_key,
        without_implausible=without_implausible,
    )
    with draws_bar() as on_progress:
        settings = Settings(
            chains=chains,
            draws=draws,
            warmup=warmup,
            seed=seed,
            noise_variance=noise_variance,
            sampler=sampler,
            on_progress=on_progress,
        )
        posterior = fit_collection(
            collection,
            method or DEFAULT_METHOD,
            prior=prior,
            holders=holders,
            family=family,
            settings=settings,
            only=only or (),
            without=without or (),
            response=response,
        )
    posterior.save(out)
    _tell(posterior, collection, out, as_json=as_json)


def _tell(posterior: "Posterior", collection: "Collection", out: Path, *, as_json: bool) -> None:
    """Say what was inferred, from what, and what was left out."""
    overview = posterior.summary()
    if as_json:
        facts = {
            "posterior": str(out),
            "left_out": collection.left_out,
            "absent": collection.absent,
            "unexpected": collection.unexpected,
        }
        typer.echo(json.dumps(facts | overview.to_dict()))
        return
    count = "1 holder" if len(collection.releases) == 1 else f"{len(collection.releases)} holders"
    typer.echo(f"{out}: the posterior; `tacit summary {out}` shows this again")
    typer.echo(
        f"study {collection.study.name!r}, {count}; response {posterior.asked.response.name!r}\n"
    )
    for names, state in (
        (collection.absent, "expected by the study, and missing"),
        (collection.unexpected, "not expected by the study"),
    ):
        if names:
            typer.echo(wrapped(f"{state}: {', '.join(names)}") + "\n")
    for reason in collection.left_out:
        typer.echo(f"left out, as implausible: {reason}")
    typer.echo(str(overview))


def summary(
    posterior: PosteriorFile,
    probability: Probability = 0.9,
    units: Annotated[
        Literal["user", "scaled", "contrast", "standardised"],
        typer.Option(
            help="The user's units; the study's own; the response's, over a feature's whole "
            "range; or standard deviations."
        ),
    ] = "user",
    *,
    by_holder: Annotated[
        bool, typer.Option("--by-holder", help="Add each holder's own coefficients.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Show a posterior: mean, sd, interval and diagnostics of each coefficient, and a verdict.

    Example: `tacit summary posterior.parquet --interval 0.95`
    """
    from tacit.analyst.posterior.posterior import Posterior

    overview = Posterior.load(posterior).summary(probability, units)
    if as_json:
        typer.echo(json.dumps(overview.to_dict()))
        return
    typer.echo(str(overview))
    if by_holder:
        if overview.holders is None:
            raise PosteriorError(
                "--by-holder: this posterior takes holders to be alike; "
                "fit three or more with --holders differ"
            )
        typer.echo(f"\n{overview.holders.table()}")
