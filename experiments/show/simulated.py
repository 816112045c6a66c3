"""Tables and figures of the simulated data, and of distances to the non-private posterior."""

from collections.abc import Mapping
from itertools import product
from typing import Any

import numpy as np

from experiments.model.printed import METHODS, NON_PRIVATE
from experiments.model.release import CALIBRATIONS
from experiments.settings import SimulatedSettings as Settings
from experiments.settings import record_of
from experiments.show import figures
from experiments.show.report import OURS, Columns, Report, lengths, shown
from experiments.show.summary import Mean, means
from experiments.show.tables import Table, scientific

METRICS = {"estimation": "MSE of the posterior mean", "prediction": "prediction MSE"}


def simulated(
    columns: Columns, settings: Settings, times: Mapping[str, Any] | None = None
) -> Report:
    """Errors of estimation and prediction, and what the chains took where that was measured."""
    keys = ("method", "calibration", "d", "holders", "epsilon")
    found = {metric: means(columns, keys, metric) for metric in (*METRICS, "prediction_point")}
    tables = [simulated_table(found, calibration, settings) for calibration in CALIBRATIONS]
    pictures = {}
    for metric, calibration in product(METRICS, CALIBRATIONS):
        panels, floors = {}, {}
        for d, holders in product(settings.columns, settings.holders):
            title = f"d = {d}, J = {holders}"
            panels[title] = panel_of(found[metric], calibration, d, holders, settings)
            floors[title] = found[metric]["non-private", "honest", d, holders, np.inf].value
        figure = figures.figure_of(panels, len(settings.holders), ("ε", METRICS[metric]), floors)
        pictures[f"simulated-{metric}-{calibration}"] = figure
    tables += [
        bare_table(columns, settings),
        ratio_table(found["prediction"], settings),
        *([] if times is None else [times_table(times)]),
    ]
    return Report(tables, pictures)


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
        points = {
            epsilon: found[method, own, d, holders, epsilon]
            for epsilon in settings.epsilons
            if (method, own, d, holders, epsilon) in found
        }
        if points:
            panel[method] = points
    return panel


def simulated_table(
    found: Mapping[str, Mapping[tuple[Any, ...], Mean]], calibration: str, settings: Settings
) -> Table:
    """Means at the middle ε, d and J by method."""
    epsilon = 1.0 if 1.0 in settings.epsilons else settings.epsilons[0]
    rows = []
    for metric, d, holders in product(
        ("estimation", "prediction", "prediction_point"), settings.columns, settings.holders
    ):
        keys = [(method, calibration, d, holders, epsilon) for method in METHODS]
        keys += [
            (OURS, "honest", d, holders, epsilon),
            ("non-private", "honest", d, holders, np.inf),
        ]
        cells = [shown(found[metric].get(key), scientific) for key in keys]
        rows.append([metric.replace("_", ", "), str(d), str(holders), *cells])
    caption = (
        f"Simulated data, {calibration}, ε = {epsilon:g}: mean over {lengths(settings)}. {OURS} "
        "has its own release, honestly calibrated."
    )
    return Table(
        f"simulated-{calibration}",
        caption,
        ["error", "d", "J", *METHODS, OURS, "non-private"],
        rows,
    )


def ratio_table(found: Mapping[tuple[Any, ...], Mean], settings: Settings) -> Table:
    """The best of the paper's methods over ours, at the same promise."""
    rows = []
    for d, holders in product(settings.columns, settings.holders):
        cells = []
        for epsilon in settings.epsilons:
            theirs = [
                found[key].value
                for method in METHODS
                if (key := (method, "honest", d, holders, epsilon)) in found
            ]
            ours = found.get((OURS, "honest", d, holders, epsilon))
            cells.append("–" if ours is None else f"{min(theirs) / ours.value:.1f}")
        rows.append([str(d), str(holders), *cells])
    caption = (
        f"The smallest prediction error of the paper's methods, honest, over that of {OURS}: above "
        f"1, {OURS} is ahead."
    )
    return Table(
        "simulated-ratio",
        caption,
        ["d", "J", *(f"ε = {epsilon:g}" for epsilon in settings.epsilons)],
        rows,
    )


def times_table(times: Mapping[str, Any]) -> Table:
    """Seconds of the chains on the machine that ran them, with floors."""
    keys = (("wall", "{:.1f}"), ("sampling", "{:.1f}"), ("floor", "{:.3f}"))
    rows = [
        [line["method"], line["name"], *(form.format(np.sum(line[key])) for key, form in keys)]
        for line in times["lines"]
    ]
    settings = record_of("simulated", times["settings"])
    count = times["chains"] * len(settings.holders)
    caption = (
        f"Seconds of the chains on one {times['device']}: {count:,} chains of "
        f"{settings.iterations:,} iterations per line, "
        f"{times['total']:.0f} s in all with compilation. The floor is by bytes: every problem "
        "read once and every state read and written "
        "once per iteration, at 4.8 TB/s. Between the two lies the launching of kernels: time "
        "hardly depends on d or J."
    )
    return Table("times", caption, ["method", "", "wall", "sampling", "floor"], rows)


def bare_table(columns: Columns, settings: Settings) -> Table:
    """Without privacy, beside the paper's values and theory."""
    alone = {
        name: column[
            (columns["method"] == "non-private") & (columns["holders"] == settings.holders[0])
        ]
        for name, column in columns.items()
    }
    rows = []
    for metric, d in product(METRICS, settings.columns):
        mean = means(alone, ("d",), metric)[d,]
        theory = (
            scientific(2 * d / settings.rows)
            if metric == "prediction"
            else "σ² tr Σ⁻¹/(nd): varies with Σ"
        )
        interval = f"[{scientific(mean.low)}, {scientific(mean.high)}]"
        rows.append(
            [
                metric,
                str(d),
                scientific(mean.value),
                interval,
                theory,
                scientific(NON_PRIVATE.get((metric, d), np.nan)),
            ]
        )
    caption = f"Without privacy, {settings.runs} runs."
    return Table(
        "simulated-non-private",
        caption,
        ["error", "d", "mean", "90 % interval", "in theory", "in the paper"],
        rows,
    )


def mmd(columns: Columns, settings: Settings) -> Report:
    """Distances to the non-private posterior."""
    found = means(columns, ("method", "calibration", "d", "holders", "epsilon"), "mmd")
    d = int(columns["d"][0])
    tables, pictures = [], {}
    for calibration in CALIBRATIONS:
        panels = {
            f"d = {d}, J = {holders}": panel_of(found, calibration, d, holders, settings)
            for holders in settings.holders
        }
        pictures[f"mmd-{calibration}"] = figures.figure_of(
            panels, len(settings.holders), ("ε", "MMD²")
        )
        named = [method for method in (*METHODS, OURS) if method != "ada-ssp"]
        rows = [
            [
                str(holders),
                f"{epsilon:g}",
                *(
                    shown(
                        panels[f"d = {d}, J = {holders}"].get(method, {}).get(epsilon), scientific
                    )
                    for method in named
                ),
            ]
            for holders, epsilon in product(settings.holders, settings.epsilons)
        ]
        caption = (
            f"MMD² to the non-private posterior, {calibration}, d = {d}: mean over "
            f"{lengths(settings)}."
        )
        tables.append(Table(f"mmd-{calibration}", caption, ["J", "ε", *named], rows))
    return Report(tables, pictures)
