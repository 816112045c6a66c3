"""Run times, and what the published noise gives."""

from itertools import product

import numpy as np

from experiments.settings import AuditSettings, RuntimesSettings
from experiments.show import figures
from experiments.show.report import Columns, Report
from experiments.show.summary import means
from experiments.show.tables import Table


def runtimes(columns: Columns, settings: RuntimesSettings) -> Report:
    """Time per iteration."""
    found = means(columns, ("method", "holders", "d"), "microseconds")
    methods = list(dict.fromkeys(columns["method"].tolist()))
    panels = {
        f"J = {holders}": {
            method: {d: found[method, holders, d] for d in settings.columns} for method in methods
        }
        for holders in settings.holders
    }
    words = figures.Words(
        across="d",
        up="µs per iteration",
        heading="Time per iteration, one chain on one core",
        ticks=[d for d in (1, 2, 3, 5, 10, 20) if d in settings.columns],
    )
    figure = figures.figure_of(panels, len(panels), words)
    shown = [d for d in (1, 2, 5, 10, 20) if d in settings.columns]
    rows = [
        [str(holders), str(d), *(f"{found[method, holders, d].value:.1f}" for method in methods)]
        for holders, d in product(settings.holders, shown)
    ]
    caption = (
        f"µs of CPU time per iteration, one chain on one core, n = {settings.rows:,} rows; what a "
        "run costs beside its iterations is "
        f"spread over {settings.iterations:,} of them."
    )
    return Report([Table("runtimes", caption, ["J", "d", *methods], rows)], {"runtimes": figure})


def audit(columns: Columns, settings: AuditSettings) -> Report:
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
        f"What the published noise gives. Last column: from {settings.draws:,} draws of each of "
        "two neighbouring tables, add-remove, "
        f"with {100 * settings.confidence:g} % confidence."
    )
    return Report([Table("audit", caption, head, rows)], {})
