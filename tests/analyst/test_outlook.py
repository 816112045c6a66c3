"""What more budget or more rows would bring, against simulation of just that.

Covers `tacit.analyst.posterior.outlook`, `tacit.analyst.posterior.pooled`.
"""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import tacit
from tacit.analyst.posterior.outlook import scenarios, widths
from tacit.analyst.posterior.posterior import Posterior
from tacit.demo.hospitals import STUDY, patients
from tacit.simulation import simulate


def fitted(rows: tuple[int, ...], epsilons: tuple[float, ...], seed: int = 0) -> Posterior:
    study = tacit.Study.from_toml(STUDY.replace("epsilon = 1.0", f"epsilon = {max(epsilons)}"))
    rng = np.random.default_rng(seed)
    releases = [
        simulate(study, patients(rng, n), rng, holder=str(k), epsilon=epsilon)
        for k, (n, epsilon) in enumerate(zip(rows, epsilons, strict=True))
    ]
    return tacit.fit(tacit.collect(releases, allow_simulated=True))


@pytest.mark.parametrize(
    ("change", "rows", "epsilons"),
    [
        ("every ε doubled", (4000, 8000), (2.0, 1.0)),
        ("every ε four times as large", (4000, 8000), (4.0, 2.0)),
        ("twice the rows", (8000, 16_000), (1.0, 0.5)),
    ],
)
def test_a_change_does_what_was_forecast(change, rows, epsilons):
    """Widths of five simulations each; one varies by 2 to 5 %, so their ratio is known to about 3
    %. Seeds are fixed.
    """
    before = [fitted((4000, 8000), (1.0, 0.5), seed) for seed in range(5)]
    after = [fitted(rows, epsilons, seed) for seed in range(5)]
    mean = [
        np.mean([widths(posterior, 0.9, "contrast") for posterior in found], axis=0)
        for found in (before, after)
    ]
    forecast = np.mean(
        [next(s.ratios for s in scenarios(found) if s.change == change) for found in before], axis=0
    )
    assert_allclose(forecast, mean[1] / mean[0], rtol=0.15)


def test_the_largest_epsilon_can_still_be_multiplied():
    assert all(
        np.isfinite(scenario.ratios).all() for scenario in scenarios(fitted((4000,), (100.0,)))
    )


def test_what_holders_differ_by_stays_whatever_is_spent():
    """Four holders with other slopes: without any noise the intervals would keep what
    `privacy_share` says is not privacy.
    """
    study, rng, releases = tacit.Study.from_toml(STUDY), np.random.default_rng(6), []
    for k, slope in enumerate((-0.1, -0.03, 0.03, 0.1)):
        table = patients(rng, 40_000)
        days = table["days"].to_numpy() + slope * (table["age"].to_numpy() - 58)
        table = table.set_column(table.schema.get_field_index("days"), "days", [days])
        releases.append(simulate(study, table, rng, holder=str(k)))
    found = tacit.fit(tacit.collect(releases, allow_simulated=True))
    assert "age" in found.holders().differ
    ratios = {scenario.change: scenario.ratios for scenario in scenarios(found)}
    assert_allclose(
        ratios["no privacy noise"], np.sqrt(1 - found.privacy_share("contrast")), rtol=0.15
    )
    assert ratios["four times the rows"].min() > ratios["no privacy noise"].min() - 0.1


def test_without_releases_there_is_nothing_to_forecast():
    found = fitted((4000,), (1.0,))
    assert scenarios(Posterior(found.study, "m", found.outcome, ())) == []
