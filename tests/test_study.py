"""The study: defaults, and a hash that tells everything apart.

Covers `tacit.study.study`, `tacit.study.form`, `tacit.study.rules`, `tacit.study.columns`,
`tacit.study.grid`, `tacit.study.toml`.
"""

import itertools
import math

import pytest
from study_documents import DOCUMENT, MINIMAL, changed

from tacit.demo.hospitals import STUDY as DEMONSTRATION
from tacit.errors import StudyError
from tacit.study import Study
from tacit.study.toml import study_toml
from tacit.study.visits import DEFAULT_ALONE, DEFAULT_TOGETHER
from tacit.study.words import visits

# Defaults.


def test_defaults():
    study = Study.from_toml(MINIMAL)
    assert (study.relation, study.intercept, study.missing, study.features) == (
        "replace-one",
        True,
        "drop",
        (),
    )
    assert study.columns == ("(intercept)",)
    assert (study.row_radius, study.response_bound, study.response_weight) == (1.0, 1.0, 1.0)
    assert (
        study.response_square,
        study.count,
        study.release.noise,
        study.release.smallest_eigenvalue,
    ) == (
        True,
        "exact",
        "frobenius",
        False,
    )


def test_the_default_radius_goes_with_the_usual_length_of_a_row():
    study = Study.from_document(DOCUMENT)
    assert study.columns == (
        "(intercept)",
        "age",
        "sex[male]",
        "ward[b]",
        "ward[c]",
        "ward[elsewhere]",
    )
    assert study.usual_row == pytest.approx(math.sqrt(1 + 1 / 3 + 1 / 2 + 3 / 4))
    assert study.row_radius == study.response_weight == pytest.approx(0.8 * study.usual_row)
    assert (study.response_bound, study.longest_row) == (1.0, 2.0)
    bare = Study.from_document(changed(["intercept"], value=False))
    assert bare.usual_row == pytest.approx(math.sqrt(1 / 3 + 1 / 2 + 3 / 4))
    assert (bare.row_radius, bare.response_bound) == (
        pytest.approx(0.3 * bare.usual_row),
        pytest.approx(0.3 * 0.8),
    )


def test_typical_values_are_what_is_mapped():
    feature = {"name": "rain", "range": [0, 100], "typical": [0, 2]}
    study = Study.from_document(changed(["features"], [feature]))
    assert study.features[0].mapping == (1.0, 1.0)
    assert study.features[0].limits == (-1.0, 99.0)
    assert study.longest_row == pytest.approx(math.hypot(1, 99))
    assert study.row_radius == 1.0


@pytest.mark.parametrize("typical", [[-1, 2], [0, 101], [2, 2], [0, 0.001]])
def test_typical_lies_inside_the_range(typical):
    with pytest.raises(StudyError, match="typical"):
        Study.from_document(
            changed(["features"], [{"name": "rain", "range": [0, 100], "typical": typical}])
        )


def test_entries_that_would_not_sum_exactly_are_refused():
    document = changed(["features"], [{"name": "rain", "range": [0, 100], "typical": [0, 2]}])
    with pytest.raises(StudyError, match="row_radius must be at most 32"):
        Study.from_document(document | {"release": {"row_radius": 33.0}})
    with pytest.raises(StudyError, match="row_radius must be at most 4"):
        Study.from_document(document | {"release": {"row_radius": 5.0, "average": 2}})


def test_a_radius_beyond_the_longest_row_is_the_longest_row():
    assert Study.from_document(changed(["release", "row_radius"], 50.0)).row_radius == 2.0


def test_add_remove_publishes_a_noisy_count():
    study = Study.from_document(changed(["relation"], "add-remove"))
    assert study.count == "noisy"
    assert study.response_square


def test_the_square_costs_nothing_where_it_is_free_and_little_elsewhere():
    def noise(**release: object) -> float:
        return Study.from_document(DOCUMENT | {"release": release}).form.sensitivity

    assert noise(response_weight=1.41) == noise(response_weight=1.41, response_square=False)
    assert noise(response_weight=1.42) <= 1.03 * noise(response_weight=1.42, response_square=False)


def test_whole_numbers_are_numbers():
    assert Study.from_toml(MINIMAL).epsilon == 1.0
    assert (
        Study.from_toml(MINIMAL).hash
        == Study.from_toml(MINIMAL.replace("= 1\n", "= 1.0\n").replace("[0, 1]", "[0.0, 1.0]")).hash
    )


# The hash.


def test_the_hash_of_the_demonstration_never_changes():
    """A different value here means that published releases no longer fit their studies.

    Raise the version instead.
    """
    assert (
        Study.from_toml(DEMONSTRATION).hash
        == "sha256:758fcfe869fddcb0d30e15efb994f1d2814680d88ad54675cc74b3b298c51270"
    )


def test_the_hash_of_a_full_document_never_changes():
    document = DOCUMENT | {
        "relation": "add-remove",
        "release": {
            "noise": "triangular",
            "row_radius": 1.5,
            "response_bound": 0.5,
            "count": "noisy",
            "smallest_eigenvalue": True,
        },
    }
    assert (
        Study.from_document(document).hash
        == "sha256:16e15acbe158754765dbe417dac4780cae09f7c17e16bd9de277c35dd46945c5"
    )


def test_the_hash_ignores_how_the_file_is_written():
    study = Study.from_toml(DEMONSTRATION)
    rewritten = (
        DEMONSTRATION.replace("1e-6", "0.000001")
        .replace("[0, 30]", "[ 0.0,30.0 ] # days")
        .replace('relation = "replace-one"\n', "")
    )
    assert Study.from_toml(rewritten).hash == study.hash
    assert study.resolved().hash == study.hash
    assert Study.from_document(study.document()) == study.resolved()


def test_the_hash_ignores_whether_a_default_is_written_out():
    study = Study.from_document(DOCUMENT)
    for field in ("row_radius", "response_bound", "response_weight", "response_square", "count"):
        assert (
            Study.from_document(changed(["release", field], getattr(study, field))).hash
            == study.hash
        )


OTHER_STUDIES = [
    (["name"], "another"),
    (["relation"], "add-remove"),
    (["epsilon"], 1.0000000000000002),
    (["delta"], 1e-7),
    (["intercept"], False),
    (["missing"], "impute"),
    (["missing"], "refuse"),
    (["response", "name"], "hours"),
    (["response", "range"], [0, 31]),
    (["response", "range"], [-1, 30]),
    (["response", "function"], "sqrt"),
    (["response", "centred"], False),
    (["terms"], [{"product": ["age", "sex"]}, {"product": ["ward"]}]),
    (["terms"], [{"product": [{"of": "age", "degree": 2}, "sex"]}, {"product": ["ward"]}]),
    (["terms"], [{"product": [{"of": "age", "function": "log"}, "sex"]}, {"product": ["ward"]}]),
    (["terms"], [{"product": [{"of": "age", "centred": False}, "sex"]}, {"product": ["ward"]}]),
    (["terms"], [{"product": ["age", {"of": "sex", "every_level": True}]}, {"product": ["ward"]}]),
    (["features", 0, "name"], "years"),
    (["features", 0, "range"], [18, 101]),
    (["features", 0, "typical"], [20, 60]),
    (["features", 1, "levels"], ["male", "female"]),
    (["features", 1, "levels"], ["female", "male", "none"]),
    (["features", 1, "other"], "male"),
    (["features", 2, "other"], "c"),
    (["features"], DOCUMENT["features"][::-1]),
    (["features"], DOCUMENT["features"][:2]),
    (["person"], "patient"),
    (["person"], "visit"),
    (["weight"], {"column": "w", "most": 5.0}),
    (["weight"], {"column": "w", "most": 6.0}),
    (["responses"], ["days", "age"]),
    (["planned_rows"], [1000]),
    (["planned_rows"], [1001]),
    (["planned_rows"], [1000, 1000]),
    (["stage_one"], "sha256:" + "0" * 64),
    (
        ["secure_sum"],
        {"holders": {"a": "A" * 43 + "=", "b": "B" * 43 + "="}, "least": 2, "colluding": 0},
    ),
    (
        ["secure_sum"],
        {"holders": {"a": "A" * 43 + "=", "b": "B" * 43 + "="}, "least": 2, "colluding": 1},
    ),
    (
        ["secure_sum"],
        {"holders": {"a": "A" * 43 + "=", "b": "C" * 43 + "="}, "least": 2, "colluding": 0},
    ),
    (["release", "noise"], "triangular"),
    (["release", "row_radius"], 1.2),
    (["release", "response_bound"], 0.5),
    (["release", "response_weight"], 0.9),
    (["release", "response_square"], False),
    (["release", "smallest_eigenvalue"], True),
    (["release", "average"], 4),
    (["release", "average"], 64),
]


def test_the_hash_changes_with_every_meaningful_field():
    studies = [
        Study.from_document(DOCUMENT),
        *(Study.from_document(changed(path, value)) for path, value in OTHER_STUDIES),
    ]
    counts = changed(["relation"], "add-remove")
    studies += [
        Study.from_document(changed(["release", "count"], count, counts))
        for count in ("withheld", "public")
    ]
    alone = {"person": "patient", "missing_person": "alone"}
    studies.append(Study.from_document(DOCUMENT | alone))
    for first, second in itertools.combinations(studies, 2):
        assert first.hash != second.hash


def test_every_field_of_a_study_is_among_those_changed():
    fields = set(Study.model_fields) | {
        f"release.{name}" for name in type(Study.from_toml(MINIMAL).release).model_fields
    }
    tried = {path[0] for path, _ in OTHER_STUDIES} | {
        ".".join(path) for path, _ in OTHER_STUDIES if path[0] == "release"
    }
    apart = {"release.count", "missing_person", "visits", "holders"}
    gone = {"scales_share"}
    assert fields - tried == apart | gone, "they are tried apart"


def test_visits_change_the_hash_and_stand_in_the_document_where_rows_are_planned():
    """A study without planned rows has one visit, and the hash that it had before there were any.

    Where rows are planned the number is written out, so that another rule changes no study.
    """
    assert "visits" not in Study.from_document(DOCUMENT).document()
    assert Study.from_document(DOCUMENT | {"visits": 1}).hash == Study.from_document(DOCUMENT).hash
    planned = DOCUMENT | {"planned_rows": [5000]}
    hashes = {Study.from_document(planned | {"visits": k}).hash for k in range(1, 9)}
    assert len(hashes) == 8
    default = Study.from_document(planned)
    assert default.document()["visits"] == default.visit_count
    assert default.resolved().hash == default.hash
    assert Study.from_toml(study_toml(default)).hash == default.hash
    one = Study.from_document(planned | {"visits": 1})
    assert Study.from_toml(study_toml(one)).visit_count == 1


def test_planned_rows_decide_on_the_number_of_visits():
    few = Study.from_document(DOCUMENT | {"planned_rows": [10]})
    many = Study.from_document(DOCUMENT | {"planned_rows": [50_000]})
    shared = Study.from_document(DOCUMENT | {"planned_rows": [50_000, 40_000]})
    counts = [each.visit_count for each in (few, many, shared)]
    assert counts == [1, DEFAULT_ALONE, DEFAULT_TOGETHER]
    assert "above 1.5, and up to there more visits were tried" in visits(few)
    assert "so that several visits tell more than one" in visits(many)
    assert visits(Study.from_document(DOCUMENT)) is None


def test_answers_of_0_and_1_have_one_visit_unless_the_study_states_more():
    answers = {"planned_rows": [50_000], "response": {"name": "died", "range": [0, 1]}}
    yes_or_no = Study.from_document(DOCUMENT | answers)
    assert yes_or_no.visit_count == 1
    assert "may be rare, which one visit tells better" in visits(yes_or_no)
    assert Study.from_document(DOCUMENT | answers | {"visits": 6}).visit_count == 6
    said = visits(Study.from_document(DOCUMENT | {"planned_rows": [50_000], "visits": 3}))
    assert "3 to the same rows, all in one message" in said
    assert f"the study says so, and {DEFAULT_ALONE} would suit" in said
    assert "where values lie (14%)" in said


@pytest.mark.parametrize(
    "fields",
    [
        {"release": {"average": 2}},
        {"release": {"noise": "triangular"}},
        {"release": {"smallest_eigenvalue": True}},
        {"release": {"response_square": False}},
        {"release": {"count": "withheld"}, "relation": "add-remove"},
    ],
)
def test_a_study_that_excludes_visits_has_one(fields):
    study = Study.from_document(DOCUMENT | {"planned_rows": [50_000]} | fields)
    assert study.visit_count == 1
    assert "exclude more" in visits(study)


def test_rows_that_are_not_planned_leave_no_trace_in_the_document():
    """Studies of before rows could be planned keep their hash."""
    assert "planned_rows" not in Study.from_document(DOCUMENT).document()
    planned = Study.from_document(DOCUMENT | {"planned_rows": [5000, 3000]})
    assert planned.document()["planned_rows"] == [5000, 3000]
    assert planned.resolved().hash == planned.hash


def test_averaging_that_is_off_leaves_no_trace_in_the_document():
    """Studies and releases of before there was averaging keep their hash."""
    study = Study.from_document(changed(["release", "average"], 1))
    assert study.hash == Study.from_document(DOCUMENT).hash
    assert "average" not in study.document()["release"]
    averaged = Study.from_document(changed(["release", "average"], 2))
    assert averaged.document()["release"]["average"] == 2
    assert averaged.resolved().hash == averaged.hash


# What a holder may change.


def test_a_holder_may_spend_less_than_agreed_but_not_more():
    study = Study.from_document(DOCUMENT)
    assert study.mechanism(0.5).noise.xty > study.mechanism().noise.xty
    for wrong in (
        {"epsilon": 1.1},
        {"epsilon": 1e-4},
        {"epsilon": math.nan},
        {"delta": 1e-5},
        {"delta": 0.0},
    ):
        with pytest.raises(StudyError, match="a holder may give less than agreed, not more"):
            study.mechanism(**wrong)


def test_a_study_cannot_be_changed():
    with pytest.raises(ValueError, match="frozen"):
        Study.from_document(DOCUMENT).epsilon = 2.0


def test_a_misspelt_field_is_named_with_its_file(tmp_path):
    path = tmp_path / "study.toml"
    path.write_text(DEMONSTRATION.replace("epsilon =", "epsilom ="), encoding="utf-8")
    with pytest.raises(
        StudyError, match=r"study\.toml: epsilom: no such field in a study; did you mean epsilon\?"
    ):
        Study.load(path)
