"""Tables and figures of each experiment, from its columns."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from experiments import figures
from experiments.printed import METHODS, NON_PRIVATE, REAL
from experiments.release import CALIBRATIONS
from experiments.summary import Mean, mean_of, means
from experiments.tables import Table, scientific

Columns = Mapping[str, Any]
Settings = dict[str, Any]
TOLERANCE = 0.10  # of the paper's interval, within which a replicated mean may lie outside it
METRICS = {"estimation": "MSE of the posterior mean", "prediction": "prediction MSE"}
OURS = "noise-aware"


@dataclass(frozen=True)
class Report:
    """What an experiment shows."""

    tables: list[Table]
    figures: dict[str, Any]  # by name

    def save(self, out: Path) -> None:
        """All of it."""
        for table in self.tables:
            table.save(out / "tables")
        for name, figure in self.figures.items():
            figures.save(figure, out / "figures", name)


def lengths(settings: Settings) -> str:
    """How much was run, for a caption."""
    return f"{settings['runs']} runs, {settings['iterations']:,} iterations"


def shown(mean: Mean | None, form: Callable[[float], str]) -> str:
    """A mean as text; a dash where a method has not been run."""
    return "–" if mean is None else form(mean.value)


def places(value: float) -> str:
    """Four decimal places, as the paper prints."""
    return f"{value:.4f}"


# Simulated data.


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
        for d, holders in product(settings["columns"], settings["holders"]):
            title = f"d = {d}, J = {holders}"
            panels[title] = panel_of(found[metric], calibration, d, holders, settings)
            floors[title] = found[metric]["non-private", "honest", d, holders, np.inf].value
        figure = figures.figure_of(panels, len(settings["holders"]), ("ε", METRICS[metric]), floors)
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
    """Lines of one panel: the paper's methods, and ours, which is honest whatever the others are."""
    panel: figures.Panel = {}
    for method in (*METHODS, OURS):
        own = "honest" if method == OURS else calibration
        points = {
            epsilon: found[method, own, d, holders, epsilon]
            for epsilon in settings["epsilons"]
            if (method, own, d, holders, epsilon) in found
        }
        if points:
            panel[method] = points
    return panel


def simulated_table(
    found: Mapping[str, Mapping[tuple[Any, ...], Mean]], calibration: str, settings: Settings
) -> Table:
    """Means at the middle ε, d and J by method."""
    epsilon = 1.0 if 1.0 in settings["epsilons"] else settings["epsilons"][0]
    rows = []
    for metric, d, holders in product(
        ("estimation", "prediction", "prediction_point"), settings["columns"], settings["holders"]
    ):
        keys = [(method, calibration, d, holders, epsilon) for method in METHODS]
        keys += [
            (OURS, "honest", d, holders, epsilon),
            ("non-private", "honest", d, holders, np.inf),
        ]
        cells = [shown(found[metric].get(key), scientific) for key in keys]
        rows.append([metric.replace("_", ", "), str(d), str(holders), *cells])
    caption = f"Simulated data, {calibration}, ε = {epsilon:g}: mean over {lengths(settings)}. {OURS} has its own release, honestly calibrated."
    return Table(
        f"simulated-{calibration}",
        caption,
        ["error", "d", "J", *METHODS, OURS, "non-private"],
        rows,
    )


def ratio_table(found: Mapping[tuple[Any, ...], Mean], settings: Settings) -> Table:
    """The best of the paper's methods over ours, at the same promise."""
    rows = []
    for d, holders in product(settings["columns"], settings["holders"]):
        cells = []
        for epsilon in settings["epsilons"]:
            theirs = [
                found[key].value
                for method in METHODS
                if (key := (method, "honest", d, holders, epsilon)) in found
            ]
            ours = found.get((OURS, "honest", d, holders, epsilon))
            cells.append("–" if ours is None else f"{min(theirs) / ours.value:.1f}")
        rows.append([str(d), str(holders), *cells])
    caption = f"The smallest prediction error of the paper's methods, honest, over that of {OURS}: above 1, {OURS} is ahead."
    return Table(
        "simulated-ratio",
        caption,
        ["d", "J", *(f"ε = {epsilon:g}" for epsilon in settings["epsilons"])],
        rows,
    )


def times_table(times: Mapping[str, Any]) -> Table:
    """Seconds of the chains on the machine that ran them, with floors."""
    keys = (("wall", "{:.1f}"), ("sampling", "{:.1f}"), ("floor", "{:.3f}"))
    rows = [
        [line["method"], line["name"], *(form.format(np.sum(line[key])) for key, form in keys)]
        for line in times["lines"]
    ]
    settings = times["settings"]
    count = times["chains"] * len(settings["holders"])
    caption = (
        f"Seconds of the chains on one {times['device']}: {count:,} chains of {settings['iterations']:,} iterations per line, "
        f"{times['total']:.0f} s in all with compilation. The floor is by bytes: every problem read once and every state read and written "
        "once per iteration, at 4.8 TB/s. Between the two lies the launching of kernels: time hardly depends on d or J."
    )
    return Table("times", caption, ["method", "", "wall", "sampling", "floor"], rows)


def bare_table(columns: Columns, settings: Settings) -> Table:
    """Without privacy, beside the paper's values and theory."""
    alone = {
        name: column[
            (columns["method"] == "non-private") & (columns["holders"] == settings["holders"][0])
        ]
        for name, column in columns.items()
    }
    rows = []
    for metric, d in product(METRICS, settings["columns"]):
        mean = means(alone, ("d",), metric)[d,]
        theory = (
            scientific(2 * d / settings["rows"])
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
    caption = f"Without privacy, {settings['runs']} runs."
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
            for holders in settings["holders"]
        }
        pictures[f"mmd-{calibration}"] = figures.figure_of(
            panels, len(settings["holders"]), ("ε", "MMD²")
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
            for holders, epsilon in product(settings["holders"], settings["epsilons"])
        ]
        caption = f"MMD² to the non-private posterior, {calibration}, d = {d}: mean over {lengths(settings)}."
        tables.append(Table(f"mmd-{calibration}", caption, ["J", "ε", *named], rows))
    return Report(tables, pictures)


# Public data.


def real(columns: Columns, long: Columns, mixing: Columns | None, settings: Settings) -> Report:
    """Test errors, their intervals, the comparison with the paper, and mixing."""
    found = means(columns, ("set", "holders", "method", "calibration"), "error")
    names = [name for name in settings["sets"] if name in set(columns["set"].tolist())]
    cells = list(product(settings["holders"], names))
    tables = []
    for calibration in CALIBRATIONS:
        means_, intervals = [], []
        for holders, name in cells:
            keys = [
                *((name, holders, method, calibration) for method in METHODS),
                (name, holders, OURS, "honest"),
            ]
            listed = [found.get(key) for key in keys]
            floor = found[name, holders, "non-private", "honest"]
            means_.append([str(holders), name, *(shown(mean, places) for mean in [*listed, floor])])
            intervals.append(
                [
                    str(holders),
                    name,
                    *(
                        "–" if mean is None else f"[{mean.low:.4f}, {mean.high:.4f}]"
                        for mean in listed
                    ),
                ]
            )
        head = ["J", "set", *METHODS, OURS]
        caption = (
            f"Test MSE, {calibration}, ε = {settings['epsilon']:g}: mean over {lengths(settings)}."
        )
        tables.append(Table(f"real-{calibration}", caption, [*head, "non-private"], means_))
        tables.append(
            Table(
                f"real-{calibration}-intervals",
                f"90 % intervals of those means, {calibration}.",
                head,
                intervals,
            )
        )
    mixed = [] if mixing is None else [mixing_table(mixing, settings)]
    return Report([*tables, compared(found, cells), long_table(long, cells, settings), *mixed], {})


def compared(found: Mapping[tuple[Any, ...], Mean], cells: list[tuple[int, str]]) -> Table:
    """Our replication as published beside what the paper prints."""
    rows = []
    for (holders, name), method in product(cells, METHODS):
        if (name, holders, method, "as-published") not in found or (
            name,
            holders,
            method,
        ) not in REAL:
            continue
        ours, theirs = found[name, holders, method, "as-published"], REAL[name, holders, method]
        rows.append(
            [
                str(holders),
                name,
                method,
                f"{ours.value:.4f}",
                f"{theirs.value:.4f}",
                f"[{theirs.low:.4f}, {theirs.high:.4f}]",
                verdict(ours, theirs),
            ]
        )
    head = ["J", "set", "method", "replicated", "printed", "printed interval", "replicated mean is"]
    return Table("real-compared", "As published, beside the paper's table.", head, rows)


def long_table(columns: Columns, cells: list[tuple[int, str]], settings: Settings) -> Table:
    """fixed-s-fast in many runs: how far a mean over as few as the paper's lies from where it should, by chance."""
    rows, runs = [], settings["runs"]
    for holders, name in cells:
        if (name, holders, "fixed-s-fast") not in REAL:
            continue
        errors = columns["error"][(columns["set"] == name) & (columns["holders"] == holders)]
        ours, theirs = mean_of(errors), REAL[name, holders, "fixed-s-fast"]
        chance = errors.std() / np.sqrt(runs)
        printed = [
            places(theirs.value),
            f"[{theirs.low:.4f}, {theirs.high:.4f}]",
            verdict(ours, theirs),
        ]
        rows.append([str(holders), name, places(ours.value), places(chance), *printed])
    caption = f"fixed-s-fast, as published, in {max(columns['run']) + 1:,} runs, and the standard deviation of a mean over {runs}."
    head = [
        "J",
        "set",
        "mean",
        f"sd of a mean over {runs}",
        "printed",
        "printed interval",
        "mean is",
    ]
    return Table("real-long", caption, head, rows)


def verdict(ours: Mean, theirs: Mean) -> str:
    """Where our mean lies, at the four places that are printed."""
    value = round(ours.value, 4)
    if theirs.low <= value <= theirs.high:
        return "inside"
    if (1 - TOLERANCE) * theirs.low <= value <= (1 + TOLERANCE) * theirs.high:
        return "within 10 %"
    return "**outside**"


def mixing_table(columns: Columns, settings: Settings) -> Table:
    """R-hat and effective sizes of normal-x by both samplers."""
    rows = [
        [
            str(holders),
            name,
            sampler,
            f"{kept:.0f}",
            f"{bulk:.0f}",
            f"{rhat:.3f}",
            f"{error:.4f}",
            f"{low:.4f} – {high:.4f}",
        ]
        for name, holders, sampler, kept, bulk, rhat, error, low, high in zip(
            *(column.tolist() for column in columns.values()), strict=True
        )
    ]
    head = [
        "J",
        "set",
        "sampler",
        "draws × 4 chains",
        "least effective size",
        "R-hat",
        "test MSE, all chains",
        "each chain",
    ]
    caption = f"normal-x, as published, ε = {settings['epsilon']:g}, one release: four chains by the paper's Metropolis steps and by gradient."
    return Table("real-mixing", caption, head, rows)


# Run times, and the audit.


def runtimes(columns: Columns, settings: Settings) -> Report:
    """Time per iteration."""
    found = means(columns, ("method", "holders", "d"), "microseconds")
    methods = list(dict.fromkeys(columns["method"].tolist()))
    panels = {
        f"J = {holders}": {
            method: {d: found[method, holders, d] for d in settings["columns"]}
            for method in methods
        }
        for holders in settings["holders"]
    }
    figure = figures.figure_of(panels, len(panels), ("d", "µs per iteration"))
    shown = [d for d in (1, 2, 5, 10, 20) if d in settings["columns"]]
    rows = [
        [str(holders), str(d), *(f"{found[method, holders, d].value:.1f}" for method in methods)]
        for holders, d in product(settings["holders"], shown)
    ]
    caption = (
        f"µs of CPU time per iteration, one chain on one core, n = {settings['rows']:,} rows; what a run costs beside its iterations is "
        f"spread over {settings['iterations']:,} of them."
    )
    return Report([Table("runtimes", caption, ["J", "d", *methods], rows)], {"runtimes": figure})


def audit(columns: Columns, settings: Settings) -> Report:
    """The ε that the published noise gives."""
    rows = []
    for values in zip(*(columns[name].tolist() for name in columns), strict=True):
        line = dict(zip(columns, values, strict=True))
        numbers = [
            f"{line[name]:.2f}"
            for name in ("published", "needed", "add_remove", "replace_one", "replace_one_most")
        ]
        measured = f"{line['measured']:.2f}" if np.isfinite(line["measured"]) else ""
        rows.append([f"{line['delta']:.3g}", f"{line['epsilon']:g}", *numbers, measured])
    head = [
        "δ",
        "nominal ε",
        "published multiplier",
        "needed",
        "ε, add-remove",
        "ε, replace-one, Y ≪ X",
        "ε, replace-one, at most",
        "ε exceeds (draws)",
    ]
    caption = (
        f"What the published noise gives. Last column: from {settings['draws']:,} draws of each of two neighbouring tables, add-remove, "
        f"with {100 * settings['confidence']:g} % confidence."
    )
    return Report([Table("audit", caption, head, rows)], {})
