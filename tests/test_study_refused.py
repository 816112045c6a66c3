"""A sentence for every wrong field of a study, and for a file that is none.

Covers `tacit.study.study`, `tacit.study.form`, `tacit.study.rules`, `tacit.study.columns`,
`tacit.study.toml`.
"""

import math
import tomllib

import pytest
from study_documents import DOCUMENT, changed, refusal

from tacit.demo.hospitals import STUDY as DEMONSTRATION
from tacit.errors import StudyError
from tacit.study import Study
from tacit.study.rules import MOST_COLUMNS

WRONG = [
    (["name"], "", "name: must not be empty"),
    (["name"], "x" * 201, "name: must have at most 200 letters"),
    (["name"], "a\nb", "name: must hold no control characters or line breaks"),
    (["name"], "a\x9b31m", "name: must hold no control characters or line breaks"),
    (["name"], 7, "name: must be text in quotation marks"),
    (["relation"], "swap", "relation: must be 'replace-one' or 'add-remove'"),
    (["epsilon"], 0, "epsilon: must be at least 0.001"),
    (["epsilon"], -1.0, "epsilon: must be at least 0.001"),
    (["epsilon"], 101, "epsilon: must be at most 100"),
    (["epsilon"], math.nan, "epsilon: must be at most 100"),
    (["epsilon"], math.inf, "epsilon: must be at most 100"),
    (["epsilon"], "1", "epsilon: must be a number"),
    (["epsilon"], True, "epsilon: must be a number"),
    (["epsilon"], 10**400, "epsilon: must be a number"),
    (["delta"], 0.0, "delta: must be at least 1e-15"),
    (["delta"], 0.2, "delta: must be at most 0.1"),
    (["delta"], math.nan, "delta: must be at most 0.1"),
    (["intercept"], 1, "intercept: must be true or false"),
    (["missing"], "ignore", "missing: must be 'drop', 'impute' or 'refuse'"),
    (["response"], None, "response: must be a table of fields"),
    (["response", "name"], "", "response.name: must not be empty"),
    (
        ["response", "range"],
        [30, 0],
        "response: range must be [low, high] with low clearly below high",
    ),
    (
        ["response", "range"],
        [1, 1],
        "response: range must be [low, high] with low clearly below high",
    ),
    (
        ["response", "range"],
        [1, 1 + 1e-12],
        "response: range must be [low, high] with low clearly below high",
    ),
    (
        ["response", "range"],
        [0, 1e-200],
        "response: range must be [low, high] with low clearly below high",
    ),
    (["response", "range"], [0], "response.range.entry 2: must be a list of two numbers, as"),
    (["response", "range"], [0, 1, 2], "response.range: must be a list of two numbers, as"),
    (["response", "range"], ["0", "1"], "response.range.entry 1: must be a number"),
    (["response", "range"], [0, math.inf], "response.range.entry 2: must be a finite number"),
    (["response", "range"], [math.nan, 1], "response.range.entry 1: must be a finite number"),
    (
        ["response", "range"],
        [0, 1e200],
        "response.range.entry 2: must be at most 1e+150",
    ),
    (
        ["response", "levels"],
        ["a", "b"],
        "response.levels: no such field in response; those are name, ",
    ),
    (["features"], "age", "features: must be a list"),
    (
        ["features", 0, "name"],
        "days",
        "the document: the names of response and features must all differ",
    ),
    (
        ["features", 0, "name"],
        "sex",
        "the document: the names of response and features must all differ",
    ),
    (
        ["features", 0, "name"],
        "sex[male]",
        "the document: two encoded columns share a name: rename a fea",
    ),
    (
        ["features", 0, "name"],
        "(intercept)",
        "the document: two encoded columns share a name: rename a fea",
    ),
    (
        ["features", 0, "levels"],
        ["a", "b"],
        "feature 'age': give exactly one of range (numeric) and level",
    ),
    (
        ["features", 0],
        {"name": "age"},
        "feature 'age': give exactly one of range (numeric) and level",
    ),
    (["features", 0, "other"], "x", "feature 'age': other goes with levels"),
    (
        ["features", 0, "range"],
        [100, 18],
        "feature 'age': range must be [low, high] with low clearly below high",
    ),
    (
        ["features", 0, "kind"],
        "years",
        "feature 'age': kind: no such field in a feature; those are n",
    ),
    (
        ["features", 1, "levels"],
        ["one"],
        "feature 'sex': levels must be at least two different names (",
    ),
    (
        ["features", 1, "levels"],
        ["a", "b", "a"],
        "feature 'sex': levels must be at least two different names (",
    ),
    (
        ["features", 1, "levels"],
        [],
        "feature 'sex': levels must be at least two different names (",
    ),
    (["features", 1, "levels"], "female", "feature 'sex': levels: must be a list"),
    (
        ["features", 1, "levels"],
        [0, 1],
        "feature 'sex': levels.entry 1: must be text in quotation mar",
    ),
    (
        ["features", 1, "levels"],
        ["", "b"],
        "feature 'sex': levels.entry 1: must not be empty",
    ),
    (["scales_share"], 0.1, "scales_share: is no field any more: leave it out and plan rows"),
    (["scales_share"], "", "scales_share: is no field any more: leave it out and plan rows"),
    (["stage_one"], "sha256:0", "stage_one: must be a hash, as `tacit study check` shows it"),
    (["release", "noise"], "laplace", "release.noise: must be 'frobenius' or 'triangular'"),
    (
        ["release", "row_radius"],
        0,
        "release.row_radius: must be at least 0.001",
    ),
    (["release", "row_radius"], math.inf, "release.row_radius: must be a finite number"),
    (
        ["release", "row_radius"],
        0.5,
        "the document: release.row_radius must be at least 1 with an ",
    ),
    (
        ["release", "response_bound"],
        0,
        "release.response_bound: must be above 0.0001",
    ),
    (
        ["release", "response_bound"],
        1.1,
        "release.response_bound: must be at most 1",
    ),
    (
        ["release", "response_bound"],
        math.nan,
        "release.response_bound: must be at most 1",
    ),
    (["release", "response_weight"], 0, "release.response_weight: must be above 0"),
    (
        ["release", "response_weight"],
        1e4,
        "the document: release.response_weight must lie within a fact",
    ),
    (
        ["release", "response_weight"],
        1e-4,
        "the document: release.response_weight must lie within a fact",
    ),
    (
        ["release", "response_square"],
        "yes",
        "release.response_square: must be true or false",
    ),
    (
        ["release", "smallest_eigenvalue"],
        1,
        "release.smallest_eigenvalue: must be true or false",
    ),
    (
        ["release", "count"],
        "noisy",
        "the document: release.count must be one of exact under replace-one",
    ),
    (
        ["release", "count"],
        "some",
        "release.count: must be 'exact', 'noisy', 'withheld' or 'public'",
    ),
    (["release", "seed"], 7, "release.seed: no such field in release"),
    (["epsilom"], 1.0, "epsilom: no such field in a study; did you mean epsilon?"),
    (["two\nlines\x1b[31m"], 1.0, "'two\\nlines\\x1b[31m': no such field in a study; those are na"),
]


@pytest.mark.parametrize(("path", "value", "sentence"), WRONG, ids=lambda part: ascii(part)[:40])
def test_each_wrong_field_has_its_own_sentence(path, value, sentence):
    assert refusal(changed(path, value)).startswith(sentence)


@pytest.mark.parametrize("field", ["name", "epsilon", "delta", "response"])
def test_a_missing_field_is_named(field):
    assert (
        refusal({name: value for name, value in DOCUMENT.items() if name != field})
        == f"{field}: must be given"
    )


def test_exact_counts_belong_to_replace_one():
    document = changed(["relation"], "add-remove")
    sentence = "the document: release.count must be one of noisy, withheld, public under add-remove"
    assert refusal(changed(["release", "count"], "exact", document)) == sentence


@pytest.mark.parametrize(
    "letter", "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
)
def test_no_name_turns_the_direction_of_writing(letter):
    name = f"stay{letter}txt"
    rule = "must hold no control of the direction of writing"
    assert refusal(DOCUMENT | {"name": name}) == f"name: {rule}"
    features = [{"name": name, "range": [0, 1]}]
    assert refusal(DOCUMENT | {"features": features}) == f"feature number 1: name: {rule}"
    assert Study.from_document(DOCUMENT | {"name": "إقامة עברית"})


def test_the_number_of_columns_is_bounded():
    def wide(columns):
        return DOCUMENT | {"features": [{"name": "g", "levels": [str(k) for k in range(columns)]}]}

    assert Study.from_document(wide(MOST_COLUMNS)).d == MOST_COLUMNS
    assert "between 1 and 512 columns" in refusal(wide(MOST_COLUMNS + 1))
    assert "between 1 and 512 columns" in refusal(DOCUMENT | {"features": [], "intercept": False})


# Files.


@pytest.mark.parametrize(
    "text",
    [
        "",
        "name =",
        "= 1",
        "[response",
        'name = "s',
        "a = 1\na = 2",
        "\x00",
        "epsilon = 1__0",
        "a = " + "1" * 5000,
        "é",
    ],
    ids=lambda text: ascii(text)[:20],
)
def test_what_is_not_toml_is_refused(text):
    sentence = refusal(text)
    assert sentence.startswith("the study is not valid TOML: ") or (
        text == "" and sentence == "name: must be given"
    )


def test_a_file_that_cannot_be_read_is_a_study_error(tmp_path):
    (tmp_path / "latin.toml").write_bytes('name = "Malmö"'.encode("latin-1"))
    for path, reason in (
        (tmp_path / "absent.toml", "No such file or directory"),
        (tmp_path, "Is a directory"),
        (tmp_path / "latin.toml", "it is not UTF-8 text"),
        (tmp_path / ("x" * 300), "File name too long"),
    ):
        with pytest.raises(StudyError, match=reason):
            Study.load(path)


def test_a_file_is_read_as_its_text_is(tmp_path):
    (tmp_path / "study.toml").write_text(DEMONSTRATION, encoding="utf-8")
    assert (
        Study.load(tmp_path / "study.toml")
        == Study.from_toml(DEMONSTRATION)
        == Study.from_document(tomllib.loads(DEMONSTRATION))
    )
