"""Tables and figures of the simulated data, and of distances to the non-private posterior."""

from collections.abc import Mapping
from itertools import product
from typing import Any

import numpy as np
from scipy import stats

from experiments.model.printed import METHODS, NON_PRIVATE
from experiments.model.release import CALIBRATIONS
from experiments.settings import SimulatedSettings as Settings
from experiments.settings import record_of
from experiments.show import figures
from experiments.show.ahead import (
    KEYS,
    best_table,
    covered_table,
    data_of,
    informed_table,
    name_of,
    ratio_table,
)
from experiments.show.report import OURS, Columns, Report, lengths, run_as, shown
from experiments.show.summary import Mean, means, medians
from experiments.show.tables import Table, scientific

METRICS = {"estimation": "MSE of the posterior mean", "prediction": "prediction MSE"}


def simulated(
    columns: Columns,
    settings: Settings,
    times: Mapping[str, Any] | None = None,
    covered: Columns | None = None,
) -> Report:
    """Errors of estimation and prediction, and what the chains took where that was measured.

    `covered` are columns of our default alone, with the share of coefficients that intervals hold.
    """
    tables = [simulated_table(columns, calibration, settings) for calibration in CALIBRATIONS]
    pictures = {}
    for metric, calibration in product(METRICS, CALIBRATIONS):
        pictures[f"{name_of(settings)}-{metric}-{calibration}"] = picture_of(
            means(columns, KEYS, metric), metric, calibration, settings
        )
    tables += [
        bare_table(columns, settings),
        *(ratio_table(columns, metric, settings) for metric in METRICS),
        *(informed_table(columns, metric, settings) for metric in METRICS),
        best_table(columns, settings),
        *([] if covered is None else [covered_table(covered, settings)]),
        *([] if times is None else [times_table(times)]),
    ]
    return Report(tables, pictures)


def picture_of(
    errors: Mapping[tuple[Any, ...], Mean], metric: str, calibration: str, settings: Settings
) -> Any:  # noqa: ANN401 - a figure
    """One figure: a panel per d and J."""
    panels = {}
    floors = {}
    for d, holders in product(settings.columns, settings.holders):
        title = f"d = {d}, J = {holders}"
        panels[title] = panel_of(errors, calibration, d, holders, settings)
        floors[title] = errors["non-private", "honest", d, holders, np.inf].value
    return figures.figure_of(
        panels,
        len(settings.holders),
        figures.Words(
            across="ε",
            up=METRICS[metric],
            heading=f"{METRICS[metric]}, noise {calibration}, {data_of(settings)}",
            ticks=settings.epsilons,
        ),
        floors,
    )


def panel_of(
    found: Mapping[tuple[Any, ...], Mean],
    calibration: str,
    d: int,
    holders: int,
    settings: Settings,
) -> figures.Panel:
    """Lines of one panel.

    The paper's methods, and ours, which is honest whatever the others are.
    """
    panel: figures.Panel = {}
    for method in (*METHODS, OURS):
        own = "honest" if method == OURS else calibration
        name = run_as(method, own)
        points = {
            epsilon: found[name, own, d, holders, epsilon]
            for epsilon in settings.epsilons
            if (name, own, d, holders, epsilon) in found
        }
        if points:
            panel[method] = points
    return panel


def simulated_table(columns: Columns, calibration: str, settings: Settings) -> Table:
    """Means and medians at the middle ε, d and J by method."""
    epsilon = 1.0 if 1.0 in settings.epsilons else settings.epsilons[0]
    rows = []
    for metric in ("estimation", "prediction", "prediction_point"):
        average = means(columns, KEYS, metric)
        middle = medians(columns, KEYS, metric)
        for d, holders in product(settings.columns, settings.holders):
            keys: list[tuple[Any, ...]] = [
                (run_as(method, calibration), calibration, d, holders, epsilon)
                for method in METHODS
            ]
            keys += [
                (OURS, "honest", d, holders, epsilon),
                ("non-private", "honest", d, holders, np.inf),
            ]
            texts = [
                f"{scientific(average[key].value)} ({scientific(middle[key])})"
                if key in average
                else "–"
                for key in keys
            ]
            rows.append([metric.replace("_", ", "), str(d), str(holders), *texts])
    caption = (
        f"Simulated data, {data_of(settings)}, {calibration}, ε = {epsilon:g}: mean (median) over "
        f"{lengths(settings)}. {OURS} has its own release, honestly calibrated."
    )
    return Table(
        f"{name_of(settings)}-{calibration}",
        caption,
        ["error", "d", "J", *METHODS, OURS, "non-private"],
        rows,
    )


def times_table(times: Mapping[str, Any]) -> Table:
    """Seconds of the chains on the machine that ran them, with floors."""
    settings = record_of("simulated", times["settings"])
    keys = (("wall", "{:.1f}"), ("sampling", "{:.1f}"), ("floor", "{:.3f}"))
    rows = [
        [
            line["method"],
            line["name"],
            f"{line['chains']:,}",
            *(form.format(np.sum(line[key])) for key, form in keys),
        ]
        for line in times["lines"]
    ]
    caption = (
        f"Seconds of the chains on one {times['device']}: {settings.iterations:,} iterations each, "
        f"{times['total']:.0f} s in all with compilation, parts at the same time. The floor is by "
        "bytes: every problem read once and every state read and written once per iteration, at "
        "4.8 TB/s. What bounds the whole is the processor: every part is a process that imports "
        "jax and compiles; time hardly depends on d or J."
    )
    head = ["method", "", "chains", "wall", "sampling", "floor"]
    return Table(f"{name_of(settings)}-times", caption, head, rows)


def bare_table(columns: Columns, settings: Settings) -> Table:
    """Without privacy, beside the paper's values and theory.

    The published value is the error of one point estimate, so n times its prediction error has a
    chi-squared law of d degrees.
    """
    alone = {
        name: column[
            (columns["method"] == "non-private") & (columns["holders"] == settings.holders[0])
        ]
        for name, column in columns.items()
    }
    rows = []
    n = settings.rows
    for metric, d in product(("estimation", "prediction_point"), settings.columns):
        mean = means(alone, ("d",), metric)[d,]
        printed = NON_PRIVATE.get((metric.removesuffix("_point"), d), np.nan)
        theory = "depends on Σ"
        chance = "–"
        if metric == "prediction_point":
            low, high = stats.chi2.ppf([0.05, 0.95], d) / n
            theory = f"{scientific(d / n)} [{scientific(low)}, {scientific(high)}]"
            chance = f"{stats.chi2.sf(n * printed, d):.3f}"
        interval = f"[{scientific(mean.low)}, {scientific(mean.high)}]"
        row = [metric.replace("_", ", "), str(d), scientific(mean.value), interval, theory]
        rows.append([*row, scientific(printed), chance])
    caption = (
        f"Without privacy, error of the point estimate, {settings.runs} runs, {data_of(settings)}; "
        "in theory: mean and 90 % interval of one value."
    )
    head = ["error", "d", "mean", "90 % interval of it", "in theory", "in the paper"]
    return Table(f"{name_of(settings)}-non-private", caption, [*head, "chance of more"], rows)


FORMULAS = {
    "mmd_published": ("mmd", "MMD², formula of the published code"),
    "mmd": ("mmd-own", "MMD², kernel of width 0.1"),
}
"""Columns of distances: the name of their tables and figures, and what they are."""


def mmd(columns: Columns, settings: Settings) -> Report:
    """Distances to the non-private posterior, by both formulas."""
    tables = []
    pictures = {}
    d = int(columns["d"][0])
    for (column, (name, words)), calibration in product(FORMULAS.items(), CALIBRATIONS):
        average = means(columns, KEYS, column)
        panels = {
            f"d = {d}, J = {holders}": panel_of(average, calibration, d, holders, settings)
            for holders in settings.holders
        }
        pictures[f"{name}-{calibration}"] = figures.figure_of(
            panels,
            len(settings.holders),
            figures.Words(
                across="ε",
                up="MMD²",
                heading=f"{words}, noise {calibration}",
                ticks=settings.epsilons,
            ),
        )
        tables.append(mmd_table(panels, f"{name}-{calibration}", words, calibration, settings))
    return Report(tables, pictures)


def mmd_table(
    panels: Mapping[str, figures.Panel], name: str, words: str, calibration: str, settings: Settings
) -> Table:
    """Every J and ε by method."""
    named = [method for method in (*METHODS, OURS) if method != "ada-ssp"]
    rows = []
    for (title, panel), epsilon in product(panels.items(), settings.epsilons):
        cells = [shown(panel.get(method, {}).get(epsilon), scientific) for method in named]
        rows.append([title, f"{epsilon:g}", *cells])
    caption = (
        f"{words}, to the non-private posterior, {calibration}: mean over {lengths(settings)}."
    )
    return Table(name, caption, ["", "ε", *named], rows)
