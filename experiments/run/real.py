"""Public data.

Test errors at ε = 1 per set, J, method, calibration and run, and how well the chains of normal-x
mixed.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from experiments.model.data import Split, available, prepared, split
from experiments.model.priors import paper_prior, prior_for, random_scale
from experiments.model.release import (
    CALIBRATIONS,
    Budget,
    Calibration,
    Form,
    Standard,
    Statistics,
    noise_sds,
    noisy,
    standard_noise,
    statistics_of,
)
from experiments.run.chains import SAMPLERS, Plan, sample, stacked
from experiments.run.closed import (
    TEXT,
    ada_ssp_of,
    ada_ssp_text,
    fixed_s_fast_of,
    non_private_of,
)
from experiments.run.parts import Part, joined, part_of, record
from experiments.run.simulated import PAPER_SAMPLERS
from experiments.settings import RealSettings as Settings
from tacit.analyst.evidence import Evidence
from tacit.analyst.methods.method import Settings as SamplerSettings
from tacit.analyst.methods.normal_x import METHOD as NORMAL_X
from tacit.analyst.posterior.convergence import mixing
from tacit.analyst.posterior.laws import Draws

Report = Callable[[str], None]
Maker = Callable[[], Part]
SAMPLED = PAPER_SAMPLERS
LONG_RUNS = 20  # times the runs of the table


@lru_cache(maxsize=4)
def loaded(folder: Path, name: str) -> Split:
    """A set, read once."""
    return split(*prepared(folder, name))


def noise_of(settings: Settings, run: int, holders: int, d: int) -> Standard:
    """Noise of a run, the same for every method and calibration."""
    return standard_noise(np.random.default_rng([settings.seed, run, holders, d]), holders, d)


def budget_of(settings: Settings, rows: Split) -> Budget:
    """(ε, 1/n)."""
    return Budget(settings.epsilon, 1 / len(rows.y))


def labels(
    name: str, method: str, holders: int, cells: list[tuple[Calibration, int]]
) -> dict[str, Any]:
    """Columns that say which result is which."""
    calibrations, runs = zip(*cells, strict=True)
    return {
        "set": name,
        "holders": holders,
        "method": method,
        "calibration": np.array(calibrations),
        "run": np.array(runs),
    }


def cells_of(
    settings: Settings, calibrations: tuple[Calibration, ...] = CALIBRATIONS
) -> list[tuple[Calibration, int]]:
    """Every release of one set and J."""
    return list(product(calibrations, range(settings.runs)))


def sampled(
    name: str, rows: Split, method: str, settings: Settings, on_progress: Callable[[int], None]
) -> Part:
    """Errors of a sampler's posterior mean, all J."""
    parts = []
    kept = {}
    seconds = []
    for holders in settings.holders:
        plan = Plan(settings.iterations, settings.seed, on_progress)
        chains = sample(SAMPLERS[method], *problems_of(rows, method, holders, settings), plan)
        errors = np.array([rows.error(mean) for mean in chains.mean])
        own = labels(name, method, holders, cells_of(settings, SAMPLERS[method].calibrations))
        parts.append(record(own | {"error": errors, "acceptance": chains.acceptance[:, 0]}))
        kept[f"draws:{holders}"] = chains.thinned.astype(np.float32)
        seconds.append(chains.seconds)
    return joined(parts) | kept | {"seconds": np.array(seconds)}


def problems_of(rows: Split, method: str, holders: int, settings: Settings) -> tuple[Any, Any]:
    """The sampler's problems for one set and J, in the order of `cells_of`, and their units."""
    statistics, sampler = statistics_of(rows.x, rows.y, holders), SAMPLERS[method]
    cells = cells_of(settings, sampler.calibrations)
    evidences = [evidence_of(cell, sampler.form, statistics, rows, settings) for cell in cells]
    scale = np.eye(statistics.d)
    if method.endswith("-published"):
        scale = random_scale(settings.seed, statistics.d)
    priors = [prior_for(method, calibration, scale) for calibration, _ in cells]
    return stacked(sampler, evidences, priors, [statistics.response_bound] * len(cells))


def evidence_of(
    cell: tuple[Calibration, int],
    form: Form,
    statistics: Statistics,
    rows: Split,
    settings: Settings,
) -> Evidence:
    """The release of a cell."""
    budget = budget_of(settings, rows)
    noise = noise_of(settings, cell[1], statistics.holders, statistics.d)
    return noisy(statistics, noise_sds(cell[0], form, statistics, budget), noise, budget)


def closed(name: str, rows: Split, settings: Settings) -> Part:
    """Errors of the closed forms, of the package's default, and without privacy (run 0 alone)."""
    parts = []
    for holders in settings.holders:
        statistics, budget = statistics_of(rows.x, rows.y, holders), budget_of(settings, rows)
        prior = paper_prior(np.eye(statistics.d))
        cells = cells_of(settings)
        noises = [noise_of(settings, run, holders, statistics.d) for run in range(settings.runs)]
        fast = [
            rows.error(fixed_s_fast_of(c, statistics, noises[run], budget, prior).mean())
            for c, run in cells
        ]
        ada = [rows.error(ada_ssp_of(c, statistics, noises[run], budget)) for c, run in cells]
        text_cells = cells_of(settings, ("as-published",))
        text = [rows.error(ada_ssp_text(statistics, noises[run], budget)) for _, run in text_cells]
        own = default_errors(rows, holders, settings)
        mine = [("honest", run) for run in range(settings.runs)]
        floor = [rows.error(non_private_of(statistics, prior).mean())]
        for method, columns, errors in (
            ("fixed-s-fast", cells, fast),
            ("ada-ssp", cells, ada),
            (TEXT, text_cells, text),
            ("noise-aware", mine, own),
            ("non-private", mine[:1], floor),
        ):
            parts.append(
                record(
                    labels(name, method, holders, columns)
                    | {"error": np.array(errors), "acceptance": np.nan}
                )
            )
    return joined(parts)


def long_run(name: str, rows: Split, settings: Settings) -> Part:
    """fixed-s-fast as published in so many runs that chance is out of the question.

    The first are those of `closed`.
    """
    parts, budget = [], budget_of(settings, rows)
    for holders in settings.holders:
        statistics = statistics_of(rows.x, rows.y, holders)
        prior, runs = paper_prior(np.eye(statistics.d)), range(LONG_RUNS * settings.runs)
        noises = (noise_of(settings, run, holders, statistics.d) for run in runs)
        errors = np.array(
            [
                rows.error(fixed_s_fast_of("as-published", statistics, noise, budget, prior).mean())
                for noise in noises
            ]
        )
        parts.append(
            record({"set": name, "holders": holders, "run": np.array(runs), "error": errors})
        )
    return joined(parts)


def default_errors(rows: Split, holders: int, settings: Settings) -> list[float]:
    """Errors of the default release and method."""
    from experiments.run.ours import default_study, posterior_of  # not where only chains are run

    study = default_study(rows.x, 1.0, holders, *budget_of(settings, rows))
    generators = (
        np.random.default_rng([settings.seed, run, holders, 1]) for run in range(settings.runs)
    )
    return [
        rows.error(posterior_of(study, rows.x, rows.y, holders, rng).mean()[-rows.x.shape[1] :])
        for rng in generators
    ]


def mixed(name: str, rows: Split, holders: int, settings: Settings) -> Part:
    """R-hat and effective sizes of normal-x by both samplers.

    Four chains of one release, as published.
    """
    statistics = statistics_of(rows.x, rows.y, holders)
    evidence = evidence_of(("as-published", 0), "pair", statistics, rows, settings)
    both = ("metropolis", "gradient")
    lines = [
        {"set": name, "holders": holders, "sampler": sampler}
        | diagnosed(evidence, rows, sampler, settings)
        for sampler in both
    ]
    return joined([record(line) for line in lines])


def diagnosed(
    evidence: Evidence,
    rows: Split,
    sampler: Any,  # noqa: ANN401
    settings: Settings,
) -> dict[str, float]:
    """Worst R-hat and effective size over θ and σ²; test error of the mean, by chain and of all."""
    half = settings.mixing(sampler) // 2
    prior = prior_for("normal-x", "as-published", np.eye(evidence.d))
    draws = NORMAL_X.fit(
        evidence,
        prior,
        SamplerSettings(draws=half, warmup=half, seed=settings.seed, sampler=sampler),
    )
    if not isinstance(draws, Draws):
        raise TypeError
    found = mixing(np.concatenate([draws.theta, np.log(draws.noise_variance)[..., None]], axis=-1))
    each = [rows.error(chain.mean(axis=0)) for chain in draws.theta]
    return {
        "kept": float(half),
        "bulk": float(found.bulk.min()),
        "rhat": float(found.rhat.max()),
        "error": rows.error(draws.mean()),
        "smallest_error": min(each),
        "largest_error": max(each),
    }


def run_parts(
    folder: Path, out: Path, settings: Settings, methods: Sequence[str], report: Report
) -> dict[str, list[Part]]:
    """Part by part.

    The closed forms, the named samplers, "mixing" where named, and what else is there already.

    Sets whose files are not there are left out.
    """
    names = [name for name in settings.sets if name in available(folder)]
    found: dict[str, list[Part]] = {"errors": [], "long": [], "mixing": []}

    def add(kind: str, path: Path, make: Maker, *, named: bool = True) -> None:
        if named or path.exists():
            report(path.stem)
            found[kind].append(part_of(path, settings, make))

    for name in names:
        add(
            "errors",
            out / f"{name}-closed.npz",
            lambda name=name: closed(name, loaded(folder, name), settings),
        )
        add(
            "long",
            out / f"{name}-long.npz",
            lambda name=name: long_run(name, loaded(folder, name), settings),
        )
    for method, name in product(SAMPLED, names):
        add(
            "errors",
            chain_path(out, name, method),
            chain_maker(folder, name, method, settings),
            named=method in methods,
        )
    for name, holders in product(names, settings.holders):
        path, make = (
            out / f"{name}-mixing-j{holders}.npz",
            partial(mixed, name, holders=holders, settings=settings),
        )
        add(
            "mixing",
            path,
            lambda name=name, make=make: make(loaded(folder, name)),
            named="mixing" in methods,
        )
    return found


def chain_path(out: Path, name: str, method: str) -> Path:
    """Where a sampler's part lies."""
    return out / f"{name}-{method}.npz"


def chain_maker(
    folder: Path,
    name: str,
    method: str,
    settings: Settings,
    on_progress: Callable[[int], None] = lambda _: None,
) -> Maker:
    """What makes a sampler's part."""
    return lambda: sampled(name, loaded(folder, name), method, settings, on_progress)
