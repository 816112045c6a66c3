"""Who is ahead on simulated data, cell by cell, and how often our intervals hold."""

import math
from collections.abc import Mapping
from itertools import product
from typing import Any

import numpy as np

from experiments.model.printed import METHODS
from experiments.settings import SimulatedSettings as Settings
from experiments.show.report import INFORMED, OURS, Columns
from experiments.show.summary import cells, means, medians
from experiments.show.tables import Table

KEYS = ("method", "calibration", "d", "holders", "epsilon")
WORSE = 0.95
"""A ratio below which ours is worse by more than a twentieth."""
Cells = dict[tuple[int, int, float], tuple[float, float]]
"""By d, J and ε: of means, and of medians."""


def name_of(settings: Settings) -> str:
    """First word of tables' and figures' names."""
    return "one" if settings.one_data_set else "simulated"


def data_of(settings: Settings) -> str:
    """Which data, for captions."""
    return "one data set" if settings.one_data_set else "data drawn anew in every run"


def ratios_of(columns: Columns, metric: str, method: str, settings: Settings) -> Cells:
    """The best of the paper's methods over one of ours, at the same promise."""
    average = {key: mean.value for key, mean in means(columns, KEYS, metric).items()}
    middle = medians(columns, KEYS, metric)
    ratios: Cells = {}
    for d, holders, epsilon in product(settings.columns, settings.holders, settings.epsilons):
        place = "honest", d, holders, epsilon
        if (method, *place) in average:
            ratios[d, holders, epsilon] = (
                advantage(average, method, place),
                advantage(middle, method, place),
            )
    return ratios


def advantage(
    errors: Mapping[tuple[Any, ...], float], method: str, place: tuple[Any, ...]
) -> float:
    """The smallest error of the paper's methods over one of ours."""
    theirs = [errors[key] for each in METHODS if (key := (each, *place)) in errors]
    return min(theirs) / errors[(method, *place)]


def behind(ratios: Cells, kind: int) -> list[tuple[int, int, float]]:
    """Cells in which ours is worse by more than a twentieth: of means (0), or of medians (1)."""
    return [place for place, both in ratios.items() if both[kind] < WORSE]


def counted(ratios: Cells) -> str:
    """How many cells there are, and in how many ours is behind."""
    if not ratios:
        return "none was run"
    means_behind, medians_behind = (len(behind(ratios, kind)) for kind in (0, 1))
    return (
        f"of {len(ratios)} cells, below {WORSE}: {means_behind} by means and {medians_behind} by "
        "medians"
    )


def by_cell(settings: Settings, texts: Mapping[tuple[int, int, float], str]) -> list[list[str]]:
    """Rows by d and J, a column per ε."""
    return [
        [
            str(d),
            str(holders),
            *(texts.get((d, holders, epsilon), "–") for epsilon in settings.epsilons),
        ]
        for d, holders in product(settings.columns, settings.holders)
    ]


def head_of(settings: Settings) -> list[str]:
    """Head of a table with a column per ε."""
    return ["d", "J", *(f"ε = {epsilon:g}" for epsilon in settings.epsilons)]


def ratio_texts(ratios: Cells) -> dict[tuple[int, int, float], str]:
    """Of means, and of medians in brackets."""
    return {place: "{:.1f} ({:.1f})".format(*both) for place, both in ratios.items()}


def kind_of(metric: str) -> str:
    """How a table of ratios is called."""
    return "ratio" if metric == "prediction" else f"ratio-{metric}"


def ratio_table(columns: Columns, metric: str, settings: Settings) -> Table:
    """The best of the paper's methods over ours, at the same promise: of means, and of medians."""
    ratios = ratios_of(columns, metric, OURS, settings)
    caption = (
        f"The smallest {metric} error of the paper's methods, honest, over that of {OURS}: of "
        f"means, and of medians over runs in brackets. Above 1, {OURS} is ahead; {counted(ratios)}."
    )
    return Table(
        f"{name_of(settings)}-{kind_of(metric)}",
        caption,
        head_of(settings),
        by_cell(settings, ratio_texts(ratios)),
    )


def informed_table(columns: Columns, metric: str, settings: Settings) -> Table:
    """The same where ours has the paper's prior, and which cells that prior alone decides."""
    ratios = ratios_of(columns, metric, INFORMED, settings)
    plain = ratios_of(columns, metric, OURS, settings)
    ahead = set(ratios) - set(behind(ratios, 0))
    by_prior = [place for place in behind(plain, 0) if place in ahead]
    places = "; ".join("d = {}, J = {}, ε = {:g}".format(*place) for place in by_prior)
    caption = (
        f"The same of {metric} errors where ours has the paper's prior, θ ~ N(0, 0.0263 I) in the "
        "data's units, and takes holders for alike, as the paper's methods do, on the same "
        f"releases as above; {counted(ratios)}. Cells in which {OURS} is behind by means with its "
        f"own prior and ahead with theirs, so that the prior alone decides: {places or 'none'}."
    )
    return Table(
        f"{name_of(settings)}-{kind_of(metric)}-informed",
        caption,
        head_of(settings),
        by_cell(settings, ratio_texts(ratios)),
    )


def best_table(columns: Columns, settings: Settings) -> Table:
    """Which of the paper's methods predicts best, honest."""
    average = {key: mean.value for key, mean in means(columns, KEYS, "prediction").items()}
    texts = {}
    for place in product(settings.columns, settings.holders, settings.epsilons):
        errors = {
            method: average[key]
            for method in METHODS
            if (key := (method, "honest", *place)) in average
        }
        texts[place] = min(errors, key=errors.__getitem__)
    caption = (
        "Of the paper's methods the one with the smallest mean prediction error, honest, "
        f"{data_of(settings)}; ada-ssp gives a point, which has no spread to count."
    )
    return Table(f"{name_of(settings)}-best", caption, head_of(settings), by_cell(settings, texts))


def covered_table(columns: Columns, settings: Settings) -> Table:
    """How many coefficients the 90 % intervals of our default hold."""
    shares = {
        (d, holders, epsilon): share
        for (method, _, d, holders, epsilon), share in cells(columns, KEYS, "covered").items()
        if method == OURS
    }
    errors = [float(np.std(share)) / math.sqrt(len(share)) for share in shares.values()]
    everywhere = float(np.mean(np.concatenate(list(shares.values()))))
    caption = (
        f"Coefficients that the 90 % intervals of {OURS} hold, in per cent, {data_of(settings)}, "
        f"{settings.runs} runs; {100 * everywhere:.0f} % over all cells. A cell's standard error "
        f"over runs is up to {100 * max(errors):.0f}; cells of a row have the same draws of noise."
    )
    texts = {place: f"{100 * float(np.mean(share)):.0f}" for place, share in shares.items()}
    return Table(
        f"{name_of(settings)}-covered", caption, head_of(settings), by_cell(settings, texts)
    )
