"""From scales to the second stage's study: right where something can be learnt, the range where
not, the same bytes always.

Covers `tacit.analyst.typical`, `tacit.release.scales`.
"""

import math
import tomllib

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tacit.analyst.typical import fix_scales
from tacit.errors import ReleaseError, SignatureError
from tacit.privacy.gaussian import compose, mu_of
from tacit.simulation import simulate_scales
from tacit.study import Study
from tacit.study.form import LARGEST_ENTRY
from tacit.study.toml import study_toml

FEATURES = [
    {"name": "narrow", "range": [0, 1000]},
    {"name": "even", "range": [-3, 7]},
    {"name": "kind", "levels": ["a", "b"], "other": "c"},
    {"name": "stated", "range": [0, 10], "typical": [1, 2]},
]


def study_of(features=FEATURES, **fields):
    document = {
        "name": "s",
        "epsilon": 20.0,
        "delta": 1e-6,
        "scales_share": 0.1,
        "response": {"name": "y", "range": [0, 1]},
    }
    return Study.from_document(document | {"features": features} | fields)


STUDY = study_of()


def rows_of(rng, rows=5000, centre=300.0, sd=20.0):
    return {
        "narrow": rng.normal(centre, sd, rows),
        "even": rng.uniform(-3, 7, rows),
        "kind": rng.choice(["a", "b"], rows),
        "stated": rng.uniform(0, 10, rows),
        "y": rng.uniform(size=rows),
    }


def scales_of(study=STUDY, seed=0, holders=("north", "south"), **budget):
    rng = np.random.default_rng(seed)
    return [
        simulate_scales(study, rows_of(rng), rng, holder=holder, **budget) for holder in holders
    ]


RELEASES = scales_of()
FIXED = fix_scales(RELEASES, allow_simulated=True)


def test_a_narrow_column_is_found_and_an_even_one_keeps_its_range():
    narrow, even, kind, stated = FIXED.features
    assert narrow.typical == pytest.approx(
        (300 - 20 * math.sqrt(3), 300 + 20 * math.sqrt(3)), abs=8
    )
    assert narrow.range == (0, 1000)
    assert even.typical is None
    assert (kind, stated) == STUDY.features[2:]


def test_the_rest_of_the_study_is_as_agreed_and_the_budget_what_is_left():
    assert (FIXED.epsilon, FIXED.delta, FIXED.scales_share) == (STUDY.stages[1], STUDY.delta, None)
    spent = compose([mu_of(RELEASES[0].epsilon, STUDY.delta), FIXED.mechanism().mu])
    assert spent <= mu_of(STUDY.epsilon, STUDY.delta)
    assert spent == pytest.approx(mu_of(STUDY.epsilon, STUDY.delta), rel=1e-9)
    same = ("name", "relation", "intercept", "missing", "response")
    assert [getattr(FIXED, field) for field in same] == [getattr(STUDY, field) for field in same]
    assert FIXED.release == STUDY.resolved().release


def test_the_same_documents_in_any_order_give_the_same_bytes():
    again = fix_scales(RELEASES[::-1], allow_simulated=True)
    assert study_toml(again) == study_toml(FIXED)
    assert again.hash == FIXED.hash
    other = fix_scales(scales_of(seed=1), allow_simulated=True)
    assert FIXED.stage_one != other.stage_one


def test_a_signature_does_not_matter_to_the_study(tmp_path):
    from tacit.release.signature import load_key, new_key, sign

    public = new_key(tmp_path / "key")
    keys = {release.holder: public for release in RELEASES}
    signed = [sign(release, load_key(tmp_path / "key")) for release in RELEASES]
    assert fix_scales(signed, allow_simulated=True, trusted_keys=keys) == FIXED
    with pytest.raises(SignatureError, match="not signed by that holder's trusted key"):
        fix_scales([signed[0], RELEASES[1]], allow_simulated=True, trusted_keys=keys)


def test_documents_that_do_not_belong_together_are_refused():
    with pytest.raises(ReleaseError, match="simulated"):
        fix_scales(RELEASES)
    with pytest.raises(ReleaseError, match="at least one"):
        fix_scales([])
    with pytest.raises(ReleaseError, match="holder 'north' is there twice"):
        fix_scales([RELEASES[0], RELEASES[0]], allow_simulated=True)
    with pytest.raises(ReleaseError, match="different studies"):
        fix_scales(
            [RELEASES[0], *scales_of(study_of(name="other"), holders=["west"])],
            allow_simulated=True,
        )


def test_where_noise_hides_everything_the_range_stands():
    """Ten rows at a tenth of ε = 0.1: the noise on each sum is in the hundreds."""
    study = study_of(epsilon=0.1)
    rng = np.random.default_rng(0)
    for seed in range(20):
        release = simulate_scales(study, rows_of(rng, 10), np.random.default_rng(seed), holder="h")
        fixed = fix_scales([release], allow_simulated=True)
        assert [feature.typical for feature in fixed.features] == [None, None, None, (1, 2)]


def test_a_column_of_one_value_gets_an_interval_as_wide_as_the_noise_allows():
    study = study_of([{"name": "x", "range": [0, 100]}])
    [release] = (
        simulate_scales(
            study, {"x": [30.0] * 4000, "y": [0.5] * 4000}, np.random.default_rng(3), holder="h"
        ),
    )
    low, high = fix_scales([release], allow_simulated=True).features[0].typical
    assert low < 30 < high
    assert 0.5 < high - low < 20


def test_a_noisy_holder_counts_for_little():
    """One of two spends ε = 0.01: added up plainly its noise would drown the other's sums."""
    clear, *_ = scales_of()
    noisy = simulate_scales(
        STUDY,
        rows_of(np.random.default_rng(5)),
        np.random.default_rng(5),
        holder="noisy",
        epsilon=0.01,
    )
    low, high = fix_scales([clear, noisy], allow_simulated=True).features[0].typical
    assert (low, high) == pytest.approx((265, 335), abs=12)


def test_skewed_columns_stay_within_their_range():
    study = study_of([{"name": "x", "range": [0, 1000]}])
    rng = np.random.default_rng(0)
    release = simulate_scales(
        study, {"x": rng.exponential(10, 20_000), "y": rng.uniform(size=20_000)}, rng, holder="h"
    )
    low, high = fix_scales([release], allow_simulated=True).features[0].typical
    assert low == 0
    assert 15 < high < 80


@pytest.mark.parametrize(
    "bounds", [(-1e150, 1e150), (0, 1e-140), (1e9, 1e9 + 10), (-7, -6.5), (0, 1)], ids=str
)
def test_awkward_ranges_give_intervals_that_a_study_may_state(bounds):
    study = study_of([{"name": "x", "range": bounds}])
    low, high = bounds
    rng = np.random.default_rng(0)
    values = low + (high - low) * np.clip(rng.normal(0.8, 0.01, 5000), 0, 1)
    fixed = fix_scales(
        [simulate_scales(study, {"x": values, "y": values * 0}, rng, holder="h")],
        allow_simulated=True,
    )
    typical = fixed.features[0].typical or bounds
    assert low <= typical[0] < typical[1] <= high


def test_a_wide_study_keeps_rows_whose_sums_are_exact():
    """120 columns have a default radius above 4, where entries beyond 4 are refused: the radius and
    the weight come down together.
    """
    study = study_of(
        [{"name": f"x{k}", "range": [0, 100]} for k in range(120)], epsilon=100.0, scales_share=0.5
    )
    assert study.row_radius > LARGEST_ENTRY
    rng = np.random.default_rng(0)
    table = {f"x{k}": rng.normal(50, 2, 3000) for k in range(120)} | {"y": rng.uniform(size=3000)}
    fixed = fix_scales([simulate_scales(study, table, rng, holder="h")], allow_simulated=True)
    assert fixed.row_radius == LARGEST_ENTRY
    assert fixed.response_weight / fixed.row_radius == pytest.approx(
        study.response_weight / study.row_radius
    )
    assert max(feature.longest for feature in fixed.features) > LARGEST_ENTRY


# The file.

NAMES = st.text(st.characters(exclude_categories=["Cc", "Zl", "Zp", "Cs"]), min_size=1, max_size=12)


@settings(max_examples=60, deadline=None)
@given(
    names=st.lists(NAMES, min_size=4, max_size=4, unique=True),
    low=st.floats(-1e6, 1e6),
    epsilon=st.floats(0.001, 100),
)
def test_a_study_file_reads_back_as_the_same_study(names, low, epsilon):
    name, response, numeric, level = names
    assume(response != f"{numeric}!")
    features = [{"name": numeric, "range": [low, low + 10.0], "typical": [low + 1.0, low + 3.3]}]
    features += (
        [{"name": f"{numeric}!", "levels": [level, f"{level}'\\"], "other": name}]
        if name not in {level, f"{level}'\\"}
        else []
    )
    document = {
        "name": name,
        "epsilon": epsilon,
        "delta": 1e-7,
        "response": {"name": response, "range": [low, low + 1.0]},
    }
    study = Study.from_document(
        document | {"features": features, "stage_one": "sha256:" + "ab" * 32}
    )
    text = study_toml(study)
    assert Study.from_toml(text) == study.resolved()
    assert Study.from_toml(text).hash == study.hash
    assert study_toml(Study.from_toml(text)) == text


def test_a_file_of_a_study_without_features_or_typical_reads_back():
    study = Study.from_document(
        {"name": "s", "epsilon": 1, "delta": 1e-6, "response": {"name": "y", "range": [0, 1]}}
    )
    assert Study.from_toml(study_toml(study)) == study.resolved()
    assert "None" not in study_toml(study)
    assert "scales_share" not in tomllib.loads(study_toml(study))
