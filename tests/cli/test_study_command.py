"""`tacit study new` and `tacit study check`: what they print, refuse and leave.

Covers `tacit.cli.study`, `tacit.cli.study_template`, `tacit.study.words`.
"""

import json

import pytest
from house import files, refused, unwrapped

from tacit.demo.hospitals import STUDY
from tacit.study import Study
from tacit.study.visits import visit_mechanism

STAYS = (
    *("--response", "days:0..30"),
    *("--columns", "age:18..100"),
    *("--columns", "sex:female|male"),
)


def test_study_new_writes_a_study_that_holds(tacit, house):
    options = (*STAYS, "--columns", "x:-1e-3..-.5e-3")
    code, out, err = tacit(
        "study",
        "new",
        *options,
        "--name",
        'my "best" study',
        "--epsilon",
        0.5,
        "--delta",
        1e-7,
        "--out",
        "new.toml",
    )
    assert (code, err) == (0, "")
    assert out.startswith("new.toml: edit it")
    study = Study.load(house / "new.toml")
    assert (study.name, study.epsilon, study.delta) == ('my "best" study', 0.5, 1e-7)
    assert study.columns == ("(intercept)", "age", "sex[male]", "x")
    assert study.features[2].range == (-1e-3, -0.5e-3)
    assert tacit("study", "check", "new.toml")[0] == 0


@pytest.mark.parametrize(
    ("formula", "columns", "intercept"),
    [
        ("days ~ age * sex", ("(intercept)", "age", "sex[male]", "age:sex[male]"), True),
        (
            "log1p(days) ~ 0 + sex + poly(age, 2)",
            ("sex[female]", "sex[male]", "age", "legendre(age, 2)"),
            False,
        ),
        ("days ~ sex + age", ("(intercept)", "sex[male]", "age"), True),
        ("days ~ 0 + age:sex", ("age:sex[female]", "age:sex[male]"), False),
    ],
)
def test_study_new_takes_a_formula(tacit, house, formula, columns, intercept):
    assert tacit("study", "new", *STAYS, "--formula", formula, "--out", "new.toml")[0] == 0
    study = Study.load(house / "new.toml")
    assert (study.columns, study.intercept) == (columns, intercept)
    described = {"days": (0, 30), "age": (18, 100), "sex": ["female", "male"]}
    assert (
        study.hash
        == Study.from_formula(formula, described, name="my-study", epsilon=1.0, delta=1e-6).hash
    )
    assert tacit("study", "check", "new.toml")[0] == 0


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (
            ["--formula", "days ~ age + bs(age, 3)"],
            "formula: 'bs(age, 3)' is not supported; a formula is made of",
        ),
        (
            ["--formula", "days ~ age + bmi"],
            "formula: 'bmi' is not among the columns, which are days, age",
        ),
        (
            ["--response", "days"],
            "--response must be NAME:LOW..HIGH, such as days:0..30; got 'days'",
        ),
        (
            ["--response", "days:1..0"],
            "response: range must be [low, high] with low clearly below high",
        ),
        (["--response", "days:0..1e999"], "response.range.entry 2: must be a finite number"),
        (
            ["--response", "days:0..1-2"],
            "'days:0..1-2' must have two numbers around '..', such as age:18..100",
        ),
        (["--columns", "age"], "--columns must be NAME:LOW..HIGH or NAME:LEVEL|LEVEL"),
        (["--columns", "age:old"], "--columns must be NAME:LOW..HIGH or NAME:LEVEL|LEVEL"),
        (
            ["--columns", "days:0..1"],
            "the document: the names of response and features must all differ",
        ),
        (
            ["--columns", "sex:a|"],
            "feature 'sex': levels.entry 2: must not be empty",
        ),
        (["--epsilon", "0"], "epsilon: must be at least 0.001"),
        (["--epsilon", "nan"], "epsilon: must be"),
        (["--name", ""], "name: must not be empty"),
        (
            ["--out", "study.toml"],
            "'study.toml' exists already: choose another --out, or remove it",
        ),
        (["--out", "absent/new.toml"], "cannot write 'absent/new.toml': No such file or directory"),
        (["--out", "x" * 300], f"cannot write '{'x' * 300}': File name too long"),
    ],
)
def test_study_new_refuses_and_writes_nothing(tacit, house, options, sentence):
    before = files(house), (house / "study.toml").read_bytes()
    usual = ["--out", "new.toml", "--columns", "age:18..100"]
    if "--response" not in options:  # which may be repeated
        usual += ["--response", "days:0..30"]
    result = tacit("study", "new", *usual, *options)
    assert refused(result).startswith(sentence)
    assert (files(house), (house / "study.toml").read_bytes()) == before


def test_study_check_explains(tacit):
    code, out, err = tacit("study", "check", "study.toml")
    assert (code, err) == (0, "")
    for words in (
        "study 'length-of-stay'  sha256:",
        "d = 5: (intercept), age, bmi, sex[male], admission[emergency]",
        "n is published exactly",
    ):
        assert words in out
    assert "epsilon = 1, delta = 1e-06, for exchanging one row for any other" in out
    assert "at most 54.7 times" in out


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ('relation = "add-remove"\nrelease.count = "withheld"', "n is not published"),
        ('relation = "add-remove"\nrelease.count = "noisy"', "n is published with noise of sd"),
        ('relation = "add-remove"\nrelease.count = "public"', "outside the guarantee"),
        ('missing = "impute"', "becomes the middle of its range"),
        ('missing = "refuse"', "that it was refused may be seen by others"),
        ("release.row_radius = 9.0", "no row is shrunk"),
        ("release.smallest_eigenvalue = true", "smallest eigenvalue"),
        ("release.response_square = false", "not published"),
        ("release.average = 4", "noise on X'X is 2.04 times that without averaging"),
    ],
)
def test_study_check_explains_every_form(tacit, house, change, words):
    text = (
        STUDY.replace('relation = "replace-one"', change)
        if "relation" in change
        else f"{change}\n{STUDY}"
    )
    (house / "study.toml").write_text(text, encoding="utf-8")
    code, out, _ = tacit("study", "check", "study.toml")
    assert code == 0
    assert words in unwrapped(out)


def test_a_new_study_takes_planned_rows_and_then_has_visits(tacit, house):
    options = ("--response", "days:0..30", "--columns", "age:18..100")
    planned = ("--planned-rows", "5000", "--planned-rows", "800")
    assert tacit("study", "new", *options, *planned, "--out", "planned.toml")[0] == 0
    study = Study.load(house / "planned.toml")
    assert study.planned_rows == (5000, 800)
    facts = json.loads(tacit("study", "check", "planned.toml", "--json")[1])
    last = visit_mechanism(study, study.visit_count, study.budget())
    assert facts["visits"] == study.visit_count > 1
    assert (facts["row_radius"], facts["noise"]["xty"]) == (None, last.noise.xty)


def test_a_new_study_takes_several_responses(tacit, house):
    options = ("--response", "days:0..30", "--response", "cost:0..2000", "--columns", "age:18..100")
    for formula in ((), ("--formula", "days ~ poly(age, 2)")):
        out = f"responses{len(formula)}.toml"
        assert tacit("study", "new", *options, *formula, "--out", out)[0] == 0
        study = Study.load(house / out)
        assert study.responses == ("days", "cost")
        assert "cost" not in study.columns


def test_study_check_as_json(tacit):
    code, out, err = tacit("study", "check", "study.toml", "--json")
    facts = json.loads(out)
    study = Study.from_toml(STUDY)
    assert (code, err) == (0, "")
    assert facts["hash"] == study.hash
    assert facts["columns"] == list(study.columns)
    assert facts["noise"]["xty"] == study.mechanism().noise.xty
    assert facts["noise"]["count"] is None
    assert (facts["average"], facts["average_noise"]) == (1, 1.0)


@pytest.mark.parametrize("file", ["absent.toml", "table.csv", ".", "latin.toml"])
def test_study_check_refuses_what_is_no_study(tacit, house, file):
    (house / "latin.toml").write_bytes(b'name = "Malm\xf6"')
    refused(tacit("study", "check", file))


@pytest.mark.parametrize("name", ['my "study"', "a'b", "tab \\ end", "[release]", "é = 1 # no"])
def test_a_new_study_holds_what_it_was_given(tacit, house, name):
    """Values are written as values: no name can become another field of the file."""
    columns = ("--columns", f"{name}:18..100", "--columns", f"x{name}:a|{name}")
    options = ("--response", "days:0..30", "--name", name, "--out", "new.toml")
    code, _, err = tacit("study", "new", *options, *columns)
    assert (code, err) == (0, "")
    study = Study.load(house / "new.toml")
    assert (study.name, study.epsilon, study.delta) == (name, 1.0, 1e-6)
    assert [feature.name for feature in study.features] == [name, f"x{name}"]
    assert study.features[1].levels == ("a", name)


def test_a_new_study_from_a_formula_holds_its_terms(tacit, house):
    formula = "log(days) ~ 0 + age:sex + poly(age, 2)"
    columns = ("--columns", "age:18..100", "--columns", "sex:female|male")
    options = ("--response", "days:1..30", "--formula", formula, "--out", "new.toml")
    assert tacit("study", "new", *options, *columns)[0] == 0
    described = {"days": (1, 30), "age": (18, 100), "sex": ["female", "male"]}
    expected = Study.from_formula(formula, described, epsilon=1.0, delta=1e-6, name="my-study")
    assert Study.load(house / "new.toml").hash == expected.hash
    assert f"from the formula {formula}\n" in (house / "new.toml").read_text(encoding="utf-8")
