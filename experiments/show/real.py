"""Tables of the public data: errors, the paper's beside them, and how chains mixed."""

from collections.abc import Mapping
from itertools import product
from typing import Any

import numpy as np

from experiments.model.printed import METHODS, REAL
from experiments.model.release import CALIBRATIONS
from experiments.settings import RealSettings as Settings
from experiments.show.report import OURS, Columns, Report, lengths, places, shown
from experiments.show.summary import Mean, mean_of, means
from experiments.show.tables import Table

TOLERANCE = 0.10  # of the paper's interval, within which a replicated mean may lie outside it


def real(columns: Columns, long: Columns, mixing: Columns | None, settings: Settings) -> Report:
    """Test errors, their intervals, the comparison with the paper, and mixing."""
    found = means(columns, ("set", "holders", "method", "calibration"), "error")
    names = [name for name in settings.sets if name in set(columns["set"].tolist())]
    cells = list(product(settings.holders, names))
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
            f"Test MSE, {calibration}, ε = {settings.epsilon:g}: mean over {lengths(settings)}."
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
    """fixed-s-fast in many runs.

    How far a mean over as few as the paper's lies from where it should, by chance.
    """
    rows, runs = [], settings.runs
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
    caption = (
        f"fixed-s-fast, as published, in {max(columns['run']) + 1:,} runs, and the standard "
        f"deviation of a mean over {runs}."
    )
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
    caption = (
        f"normal-x, as published, ε = {settings.epsilon:g}, one release: four chains by the "
        "paper's Metropolis steps and by gradient."
    )
    return Table("real-mixing", caption, head, rows)
