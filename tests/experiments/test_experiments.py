"""A small version of every experiment, from the command line to the page, numbers checked."""

import json
import re
import resource
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
from pyarrow import parquet
from small_settings import SMALL

from experiments import __main__ as command
from experiments import settings
from experiments.model.data import FILES
from experiments.model.design import simulated_rows
from experiments.model.printed import METHODS
from experiments.run import compute, own, real
from experiments.run.parts import columns_of
from experiments.run.simulated_closed import own_part
from experiments.show.page import write_page
from experiments.show.tables import Table

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.xdist_group("paper")  # one process runs them all once


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    """Everything, once."""
    folder = tmp_path_factory.mktemp("paper")
    rng = np.random.default_rng(1)
    x = rng.normal(size=(4000, 4))
    np.savetxt(
        folder / FILES["PowerPlant"],
        np.column_stack([x, x @ [1.0, -0.5, 0.3, 0.2] + 0.3 * rng.normal(size=4000)]),
        delimiter=",",
    )
    core = SMALL

    def small(name, *, quick=False, runs=None, seed=0):
        del quick
        changed = core[name] | ({} if runs is None else {"runs": runs}) | {"seed": seed}
        return settings.record_of(name, changed)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(command, "settings_of", small)
        patch.setattr(compute, "settings_of", small)
        compute.main(["simulated", "--out", str(folder / "parts" / "simulated")])
        for name in ("audit", "simulated", "mmd", "runtimes"):
            assert command.main([name, "--out", str(folder)]) == 0
        assert command.main(["one", "--out", str(folder), "--methods", "fixed-s"]) == 0
        assert (
            command.main(
                ["real", "--out", str(folder), "--data", str(folder), "--methods", "fixed-s"]
            )
            == 0
        )
    return folder


def column(out, name, value, **where):
    table = parquet.read_table(out / f"{name}.parquet").to_pydict()
    chosen = np.all([np.array(table[key]) == wanted for key, wanted in where.items()], axis=0)
    return np.array(table[value])[chosen]


def test_every_cell_is_there(out):
    for method in ("normal-x", "fixed-s", "fixed-s-fast", "bernstein-sheldon", "ada-ssp"):
        for calibration in ("as-published", "honest"):
            assert (
                len(
                    column(
                        out,
                        "simulated",
                        "estimation",
                        method=method,
                        calibration=calibration,
                        epsilon=1.0,
                    )
                )
                == 8
            )
    for method in ("fixed-s", "fixed-s-fast", "ada-ssp"):
        assert len(column(out, "real", "error", method=method, calibration="as-published")) == 6
    for method in ("noise-aware", "noise-aware, paper's prior"):
        assert len(column(out, "simulated", "estimation", method=method)) == 16


def test_the_default_stands_beside_itself_with_the_papers_prior(out):
    """One prior says little beside 20,000 rows, so both are near; a wrong one would not be.

    Coverage is printed as the parts have it: of 16 fits of two slopes all but 8 cover, fewer once
    in 10,000 times where they cover 90 %.
    """
    plain, informed = (
        column(out, "simulated", "prediction_point", method=method, epsilon=10.0)
        for method in ("noise-aware", "noise-aware, paper's prior")
    )
    assert np.median(informed) < 5 * np.median(plain)
    tables = out / "tables"
    caption = (tables / "simulated-ratio-estimation-informed.md").read_text().splitlines()[0]
    assert "of 2 cells, below 0.95: 0 by means and 0 by medians" in caption
    assert caption.endswith("so that the prior alone decides: none.")
    best = (tables / "simulated-best.md").read_text()
    assert sum(best.count(f"| {method} ") for method in METHODS) == 2
    part = np.load(out / "parts" / "simulated" / "noise-aware-d2-j2.npz")
    told = part["covered"][part["record:method"] == "noise-aware"]
    assert told.sum() >= 8
    assert f"{100 * told.mean():.0f} % over all" in (tables / "simulated-covered.md").read_text()


def test_parts_of_the_default_are_made_side_by_side_as_one_by_one(out, tmp_path, monkeypatch):
    made = settings.record_of("one", SMALL["one"] | {"seed": 0})
    monkeypatch.setattr(own, "settings_of", lambda _name, **_options: made)
    path = Path(own.made(tmp_path, own.Task("one", d=2, holders=1), quick=True))
    again = own_part(2, 1, made)
    with np.load(path) as part:
        assert np.array_equal(part["record:estimation"], again["record:estimation"])
        assert str(part["settings"]) == json.dumps(asdict(made), sort_keys=True)
    monkeypatch.undo()
    tasks = own.tasks_of(out, quick=False)
    assert [task.set for task in tasks].count("PowerPlant") == 1
    assert len(tasks) == 13


def test_without_privacy_the_errors_are_those_of_theory(out):
    """n times twice the point error is d + chi-squared(d) on average over 8 runs.

    Sd 2d·√(2/16) relative; five are allowed.
    """
    n, d, runs = 20_000, 2, 8
    prediction = column(out, "simulated", "prediction", method="non-private")
    assert n * prediction.mean() == pytest.approx(2 * d, abs=5 * np.sqrt(2 * d / runs))
    point = column(out, "simulated", "prediction_point", method="non-private")
    assert n * (prediction - point) == pytest.approx(d, rel=0.05)  # the posterior's own spread
    expected = [
        np.trace(np.linalg.inv(simulated_rows(0, d, run, 10)[2].covariance)) / (n * d)
        for run in range(runs)
    ]
    ratio = column(out, "simulated", "estimation", method="non-private") / expected
    assert 0.1 < np.median(ratio) < 4


def test_honest_noise_costs_accuracy_and_a_large_epsilon_buys_it_back(out):
    for method in ("fixed-s", "fixed-s-fast", "normal-x"):
        published, honest = (
            column(
                out, "simulated", "prediction", method=method, calibration=calibration, epsilon=1.0
            )
            for calibration in ("as-published", "honest")
        )
        assert np.median(published) < np.median(honest)
        assert np.median(
            column(
                out, "simulated", "prediction", method=method, calibration="honest", epsilon=10.0
            )
        ) < np.median(honest)


def test_the_sampler_agrees_with_the_closed_form_where_both_know_the_same(out):
    """fixed-s and fixed-s-fast differ in σ² alone, which matters little on these data."""
    chain, closed = (
        column(out, "real", "error", method=method, calibration="as-published")
        for method in ("fixed-s", "fixed-s-fast")
    )
    assert chain.mean() == pytest.approx(closed.mean(), rel=0.05)


def test_the_default_is_nearest_to_the_floor_on_public_data(out):
    floor = column(out, "real", "error", method="non-private")[0]
    own = column(out, "real", "error", method="noise-aware").mean()
    assert (
        floor <= own < column(out, "real", "error", method="fixed-s", calibration="honest").mean()
    )


def test_one_data_set_serves_all_runs(out):
    """Without privacy there is then one answer, and its error is the same in every run."""
    assert len(set(column(out, "one", "estimation", method="non-private").tolist())) == 1
    assert len(set(column(out, "simulated", "estimation", method="non-private").tolist())) == 8
    assert len(set(column(out, "one", "estimation", method="fixed-s").tolist())) == 8


def test_pictures_name_their_noise_and_tick_every_epsilon(out):
    for calibration in ("as-published", "honest"):
        text = (out / "figures" / f"simulated-prediction-{calibration}.svg").read_text()
        assert f"noise {calibration}, data drawn anew" in text
        ticks = re.findall(r">([0-9.]+)</text>", text)
        assert {"1", "10"} <= set(ticks)


def test_published_samplers_stand_for_their_methods_as_published(out):
    table = (out / "tables" / "simulated-as-published.md").read_text().splitlines()[-1]
    published = column(
        out,
        "simulated",
        "prediction_point",
        method="normal-x-published",
        calibration="as-published",
        epsilon=1.0,
    )
    assert f"{published.mean():.2e} ({np.median(published):.2e})" in table
    assert not len(
        column(out, "simulated", "estimation", method="normal-x-published", calibration="honest")
    )


def test_mmd_falls_with_epsilon(out):
    low, high = (
        column(out, "mmd", "mmd", method="fixed-s", calibration="honest", epsilon=epsilon).mean()
        for epsilon in (1.0, 10.0)
    )
    assert 0 <= high < low < 2
    low, high = (
        column(
            out, "mmd", "mmd_published", method="fixed-s", calibration="honest", epsilon=epsilon
        ).mean()
        for epsilon in (1.0, 10.0)
    )
    assert high < low


def test_run_times_are_measured_for_both_forms(out):
    assert np.all(column(out, "runtimes", "microseconds", d=1) > 0)
    assert len(column(out, "runtimes", "microseconds", d=1)) == 4


def test_the_same_seed_gives_the_same_numbers_and_a_part_is_written_whole(out):
    part = out / "parts" / "simulated" / "fixed-s-d2.npz"
    with np.load(part) as file:
        before = file["record:estimation"]
        made = settings.record_of("simulated", json.loads(str(file["settings"])))
    again = compute.simulated.chains_part("fixed-s", 2, made, lambda _: None)
    assert np.array_equal(before, again["record:estimation"])
    assert not list(out.rglob("*.tmp.npz"))


def test_a_part_of_other_settings_is_refused(out, capsys):
    assert command.main(["audit", "--quick", "--out", str(out)]) == 2
    assert "made with other settings" in capsys.readouterr().err


def test_the_page_holds_tables_and_figures(out, tmp_path):
    text = write_page(out, tmp_path).read_text()
    assert "{{" not in text
    assert (out / "tables" / "real-compared.md").read_text().rstrip() in text
    assert "](paper/model.svg)" in text
    assert (tmp_path / "paper" / "model.svg").stat().st_size > 1000
    for link in (
        "simulated-prediction-honest",
        "mmd-as-published",
        "runtimes",
        "one-prediction-honest",
    ):
        assert f"](paper/{link}.svg)" in text
        assert (tmp_path / "paper" / f"{link}.svg").stat().st_size > 1000
        assert (out / "figures" / f"{link}.png").exists()


def test_tables_are_latex_too(out):
    text = (out / "tables" / "audit.tex").read_text()
    assert text.count("\\\\") == 2
    assert "$\\varepsilon$" in text
    assert Table("t", "50 % & more", ["a_b"], [["1"]]).latex().count("\\%") == 1


@pytest.mark.slow
def test_both_samplers_of_normal_x_are_diagnosed(out):
    longer = {"seed": 0, "mixing_metropolis": 2000, "mixing_gradient": 2000}
    made = settings.record_of("real", SMALL["real"] | longer)
    columns = columns_of(real.mixed("PowerPlant", real.loaded(out, "PowerPlant"), 5, made))
    rhat = dict(zip(columns["sampler"].tolist(), columns["rhat"].tolist(), strict=True))
    assert rhat["gradient"] < 1.02
    assert rhat["gradient"] < rhat["metropolis"]
    assert np.all(columns["smallest_error"] <= columns["largest_error"])


@pytest.mark.slow
@pytest.mark.parametrize("name", ["audit", "runtimes", "simulated", "one", "mmd", "real"])
def test_the_quick_version_of_each_ends_within_five_minutes(out, name, tmp_path):
    """In processor seconds, as `python -m experiments NAME --quick`; real on a made set."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [sys.executable, "-m", "experiments", name, "--quick", "--out", tmp_path, "--data", out],
        cwd=ROOT,
        check=False,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert done.returncode == 0
    seconds = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    assert seconds < 300
