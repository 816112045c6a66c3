"""Tables of the public data: errors, the paper's beside them, and how chains mixed."""

import math
from collections.abc import Mapping
from itertools import product
from typing import Any

import numpy as np
from scipy import stats

from experiments.model.printed import METHODS, REAL
from experiments.model.release import CALIBRATIONS
from experiments.settings import RealSettings as Settings
from experiments.show.report import OURS, Columns, Report, lengths, places, run_as, shown
from experiments.show.summary import Array, Mean, cells, mean_of, means
from experiments.show.tables import Table

TOLERANCE = 0.10  # of the paper's interval, within which a replicated mean may lie outside it


KEYS = ("set", "holders", "method", "calibration")
PRINTED_PLACES = 1e-4
"""The paper prints four places."""
UNLIKELY = 0.01
CONVERGED = 1.05
"""R-hat above which a chain by itself still drifts."""


def real(
    columns: Columns,
    long: Columns,
    mixing: Columns | None,
    chains: Columns | None,
    settings: Settings,
) -> Report:
    """Test errors, their intervals, the comparison with the paper, and how chains mixed."""
    errors = means(columns, KEYS, "error")
    names = [name for name in settings.sets if name in set(columns["set"].tolist())]
    where = list(product(settings.holders, names))
    tables = []
    for calibration in CALIBRATIONS:
        tables += error_tables(errors, calibration, where, settings)
    tables += [
        compared(cells(columns, KEYS, "error"), where),
        variants(errors, where, settings),
        long_table(long, where, settings),
    ]
    if chains is not None:
        tables.append(convergence_table(chains, settings))
    if mixing is not None:
        tables.append(mixing_table(mixing, settings))
    return Report(tables, {})


def error_tables(
    errors: Mapping[tuple[Any, ...], Mean],
    calibration: str,
    where: list[tuple[int, str]],
    settings: Settings,
) -> list[Table]:
    """Means, and the intervals of the means."""
    values = []
    intervals = []
    for holders, name in where:
        keys = [(name, holders, run_as(method, calibration), calibration) for method in METHODS]
        listed = [errors.get(key) for key in (*keys, (name, holders, OURS, "honest"))]
        floor = errors[name, holders, "non-private", "honest"]
        values.append([str(holders), name, *(shown(mean, places) for mean in [*listed, floor])])
        limits = ["–" if mean is None else f"[{mean.low:.4f}, {mean.high:.4f}]" for mean in listed]
        intervals.append([str(holders), name, *limits])
    head = ["J", "set", *METHODS, OURS]
    caption = f"Test MSE, {calibration}, ε = {settings.epsilon:g}: mean over {lengths(settings)}."
    about = f"90 % intervals of those means, {calibration}."
    return [
        Table(f"real-{calibration}", caption, [*head, "non-private"], values),
        Table(f"real-{calibration}-intervals", about, head, intervals),
    ]


def compared(errors: Mapping[tuple[Any, ...], Array], where: list[tuple[int, str]]) -> Table:
    """Our replication as published beside what the paper prints."""
    rows = []
    for (holders, name), method in product(where, METHODS):
        own = errors.get((name, holders, run_as(method, "as-published"), "as-published"))
        theirs = REAL.get((name, holders, method))
        if own is None or theirs is None:
            continue
        ours = mean_of(own)
        chance = same_probability(own, theirs)
        shown_chance = f"{chance:.2g}" if chance >= UNLIKELY else f"**{chance:.1e}**"
        texts = [
            f"{ours.value:.4f}",
            f"{theirs.value:.4f}",
            f"[{theirs.low:.4f}, {theirs.high:.4f}]",
        ]
        rows.append([str(holders), name, method, *texts, verdict(ours, theirs), shown_chance])
    head = ["J", "set", "method", "replicated", "printed", "printed interval", "replicated mean is"]
    caption = (
        "As published, beside the paper's table. Last column: two-sided probability of so large a "
        "difference if both are means of 50 runs of the same thing; below 1 % in bold."
    )
    return Table("real-compared", caption, [*head, "chance"], rows)


def same_probability(errors: Array, printed: Mean) -> float:
    """Two-sided probability that our runs' mean and the printed one differ so much by chance.

    The printed interval is Student's, of 50 runs; numbers are rounded to four places.
    """
    runs = 50
    theirs = max(printed.high - printed.low, PRINTED_PLACES) / 2 / stats.t.ppf(0.95, runs - 1)
    ours = errors.std(ddof=1) / np.sqrt(len(errors))
    error = math.sqrt(theirs**2 + ours**2 + PRINTED_PLACES**2 / 12)
    return float(2 * stats.t.sf(abs(errors.mean() - printed.value) / error, runs - 1))


def variants(
    errors: Mapping[tuple[Any, ...], Mean], where: list[tuple[int, str]], settings: Settings
) -> Table:
    """What the published samplers and the text's budget make, beside our samplers' means."""
    pairs = {
        "normal-x, published chain": "normal-x-published",
        "normal-x, our chain": "normal-x",
        "bernstein-sheldon, published chain": "bernstein-sheldon-published",
        "bernstein-sheldon, our chain": "bernstein-sheldon",
        "ada-ssp, ε/3 each": "ada-ssp",
        "ada-ssp, 2ε/3 + ε/3": "ada-ssp-text",
    }
    rows = [
        [
            str(holders),
            name,
            *(
                shown(errors.get((name, holders, method, "as-published")), places)
                for method in pairs.values()
            ),
        ]
        for holders, name in where
    ]
    caption = (
        f"On the same published noise: the published code's chains and ours, and ada-ssp with the "
        f"code's budget and the text's; mean over {lengths(settings)}."
    )
    return Table("real-variants", caption, ["J", "set", *pairs], rows)


def convergence_table(columns: Columns, settings: Settings) -> Table:
    """Of the chains behind the table as published: split R-hat and effective size."""
    rhat = cells(columns, KEYS, "rhat")
    effective = cells(columns, KEYS, "effective")
    rows = []
    for (name, holders, method, calibration), values in rhat.items():
        sizes = effective[name, holders, method, calibration]
        share = float(np.mean(values > CONVERGED))
        figures = [f"{np.median(values):.2f}", f"{100 * share:.0f} %", f"{np.median(sizes):.0f}"]
        rows.append([name, str(holders), method, calibration, *figures])
    caption = (
        f"Every chain of {settings.iterations:,} iterations by itself, from 100 draws of its "
        f"second half: median split R-hat over runs, share of runs above {CONVERGED:g}, and median "
        "effective size of the 100, worst coefficient."
    )
    head = ["set", "J", "sampler", "noise", "R-hat", f"above {CONVERGED:g}", "effective of 100"]
    return Table("real-convergence", caption, head, rows)


def long_table(columns: Columns, where: list[tuple[int, str]], settings: Settings) -> Table:
    """fixed-s-fast in many runs.

    How far a mean over as few as the paper's lies from where it should, by chance.
    """
    rows, runs = [], settings.runs
    for holders, name in where:
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
