"""The league's own arithmetic, and one cell of it from a made table.

Covers `benchmarks/league.py`, `benchmarks/competitors/table.py` and
`benchmarks/competitors/ours.py`.
"""

import dataclasses
from pathlib import Path

import numpy as np
import pytest

REPOSITORY = Path(__file__).parents[2]


@pytest.fixture
def league(monkeypatch):
    monkeypatch.syspath_prepend(REPOSITORY / "benchmarks")
    import league

    return league


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(1)
    x = rng.uniform(0, 10, (600, 2))
    y = 3 + x @ [1.0, -2.0] + rng.normal(0, 1, 600)
    (tmp_path / "real").mkdir()
    np.savetxt(tmp_path / "real" / "made.csv", np.column_stack([x, y]), delimiter=",")
    return tmp_path


def outcome(league, fixed, *, least_squares=0.9, epsilon=1.0, table="a", setting="1"):
    cell = league.Cell(Path(), table, setting, epsilon, 2, hindsight=False)
    return league.Outcome(
        cell,
        least_squares,
        mean_alone=-0.5,
        fixed=fixed,
        worst=fixed,
        seconds=dict.fromkeys(fixed, 0.1),
        refused=dict.fromkeys(fixed, 1),
    )


def test_ranks_count_those_that_are_ahead(league):
    name = league.OWN[0]
    one = outcome(league, {name: 0.5, "b": 0.7, "c": 0.5, "d": -3.0})
    assert [one.rank(key) for key in (name, "b", "c", "d")] == [2, 1, 2, 4]
    assert one.best_other() == ("b", 0.7)


def test_means_have_a_floor(league):
    assert league.mean([0.5, -9.0]) == pytest.approx(-0.25)


@pytest.mark.parametrize(("ours", "near"), [(0.5, "0%"), (0.695, "100%"), (0.8, "100%")])
def test_where_we_lose_is_listed_and_counted(league, monkeypatch, ours, near):
    monkeypatch.setattr("sys.argv", ["league.py"])
    bench = league.Bench("", quick="")
    outcomes = [outcome(league, {league.OWN[0]: ours, "b": 0.7})]
    league.report_losses(bench, outcomes)
    assert len(bench.tables["lost"].rows) == (0 if ours >= 0.7 else 1)
    assert f"({near})" in bench.said[0]
    assert bench.bars[0]["met"] == (near == "100%")
    assert bench.bars[1]["met"]


def test_an_r_squared_below_zero_is_a_bar_missed(league, monkeypatch):
    monkeypatch.setattr("sys.argv", ["league.py"])
    bench = league.Bench("", quick="")
    league.report_losses(bench, [outcome(league, {league.OWN[0]: -0.03, "b": -1.0})])
    assert [bar["met"] for bar in bench.bars] == [True, False]


def test_cells_whose_mean_alone_is_too_noisy_are_listed(league, monkeypatch):
    monkeypatch.setattr("sys.argv", ["league.py"])
    bench = league.Bench("", quick="")
    fixed = {league.JUDGED: 0.3, league.ONE_VISIT.name: -0.4, "b": 0.1}
    league.report_lowest(bench, [outcome(league, fixed)])
    assert bench.tables["lowest"].rows == [
        ["a", "1", "1", "-0.500", "0.000", "0.300", "-0.400", "0.100"],
    ]


def test_the_mean_alone_has_the_noise_of_every_holder(league, folder):
    """Where noise decides, a flat line is off by 0.67 of its sd in the median."""
    table = league.table_of(folder, "made")
    budget = league.Budget(0.02, 1e-6)
    apart = table.mean_alone(table.holders("10"), budget)
    summed = table.mean_alone(table.holders("10-sum"), budget)
    sd = 2 / budget.mu / 480
    assert apart < summed < 0
    assert -summed == pytest.approx((0.67 * sd) ** 2 / table.y.var(), rel=0.5)


def test_no_private_mean_is_above_its_floor_on_average(league, folder):
    """Means drawn as tables have them, told under Gaussian noise, weighed against what is usual."""
    table = league.table_of(folder, "made")
    holders = table.holders("10")
    budget = league.Budget(0.1, 1e-6)
    rng = np.random.default_rng(4)
    means = rng.normal(0, 0.3, 20_000)
    sd = 2 / budget.mu * np.sqrt(10) / holders.n
    told = (means + rng.normal(0, sd, len(means))) * 0.3**2 / (0.3**2 + sd**2)
    variance = table.y[table.parts[1]].var()
    best = -np.mean((told - means) ** 2) / variance
    floor = table.mean_floor(holders, budget)
    assert floor == pytest.approx(best, rel=0.05)
    assert floor < table.mean_floor(table.holders("10-sum"), budget) < 0


@pytest.mark.parametrize("setting", ["1", "10", "10-sum"])
def test_a_cell_is_measured(league, folder, setting):
    cell = league.Cell(folder, "made", setting, 10.0, 1, hindsight=False)
    measured = league.measure(cell)
    assert measured.least_squares > 0.95
    assert measured.ours > 0.8
    assert measured.ours < 1
    names = set(measured.fixed)
    assert {"AdaSSP", "boosted AdaSSP", "Hessian mixing", "gradient descent"} <= names
    assert ("TukeyEM" in names) == (setting != "10-sum")


def test_holders_part_the_rows_that_are_not_held_out(league, folder):
    table = league.table_of(folder, "made")
    train, test = table.parts
    assert np.array_equal(np.sort(np.concatenate([train, test])), np.arange(600))
    holders = table.holders("10")
    assert [len(y) for y in holders.responses] == [48] * 10
    assert np.abs(holders.designs[0]).max() <= 1
    assert table.score(None) < 0.2


def test_hindsight_takes_the_best_of_the_grid(league, folder):
    """The median over splits of the best setting, not the best of each split."""
    whole = league.table_of(folder, "made")
    tables = [dataclasses.replace(whole, split=split) for split in range(3)]
    pairs = [(table, table.holders("1")) for table in tables]
    budget = league.Budget(1.0, 1e-6)

    def fit(rng, holders, budget, settings):
        del rng, holders, budget
        return league.ours.Line(np.array([settings, 0.0, 0.0]))

    means = (-1.0, *(float(np.mean(table.y[table.parts[1]])) for table in tables), 1.0)
    medians = [
        np.median([table.score(league.ours.Line(np.array([mean, 0.0, 0.0]))) for table in tables])
        for mean in means
    ]
    entry = league.Competitor("toy", fit, 0.0, means)
    best = league.best_of(entry, pairs, budget)
    assert best == pytest.approx(max(medians), abs=1e-12)
    assert best < 0


def test_every_run_splits_a_table_anew(league, folder):
    whole = league.table_of(folder, "made")
    parts = [dataclasses.replace(whole, split=split).parts for split in (0, 0, 1)]
    assert np.array_equal(parts[0][1], parts[1][1])
    assert not np.array_equal(parts[0][1], parts[2][1])


def test_tables_of_many_rows_have_a_third_of_the_runs(league):
    assert [league.runs_of(rows, 35) for rows in (500, 5000, 5001)] == [35, 35, 11]
    assert league.runs_of(50_000, 2) == 2
