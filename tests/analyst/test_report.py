"""The report as text: what it says, for every kind of posterior, and that no name becomes
markup.

Covers `tacit.analyst.report`, `tacit.analyst.report.background`, `tacit.analyst.report.findings`,
`tacit.page.markup`, `tacit.page.numbers`, `tacit.analyst.report.words`,
`tacit.analyst.report.notebook`.
"""

import math
import re
from html.parser import HTMLParser

import numpy as np
import pytest
from analyst.stays import DOCUMENT

import tacit
from tacit.analyst.posterior.laws import Draws, Mixture, Student
from tacit.analyst.posterior.posterior import Contribution, Posterior
from tacit.analyst.report import report
from tacit.page.markup import Html, html
from tacit.page.numbers import number, percent, power
from tacit.page.svg import Axis, shortened
from tacit.simulation import simulate

EVIL = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>&amp;${title}$name</style>"


def study_of(**fields: object) -> tacit.Study:
    return tacit.Study.from_document(DOCUMENT | fields)


def fitted(
    study: tacit.Study | None = None,
    method: str = "noise-aware",
    holders: tuple[str, ...] = ("north", "south"),
) -> Posterior:
    study, rng, releases = study or study_of(), np.random.default_rng(1), []
    for holder in holders:
        table: dict[str, np.ndarray] = {}
        signal = np.full(4000, 10.0)
        for feature in study.features:
            if feature.range is not None:
                table[feature.name] = rng.uniform(*feature.range, 4000)
                signal += (
                    5
                    * (table[feature.name] - feature.range[0])
                    / (feature.range[1] - feature.range[0])
                )
            else:
                table[feature.name] = rng.choice(feature.all_levels, 4000)
                signal -= 3.0 * (table[feature.name] == feature.all_levels[1])
        table[study.response.name] = signal + 2 * rng.normal(size=4000)
        releases.append(simulate(study, table, rng, holder=holder))
    settings = tacit.Settings(chains=2, draws=60, warmup=60)
    return tacit.fit(tacit.collect(releases, allow_simulated=True), method, settings=settings)


class Page(HTMLParser):
    """Elements with their attributes, and the text."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())


@pytest.fixture(scope="module")
def page() -> Page:
    return Page(report(fitted()))


def test_it_says_what_was_asked_found_and_promised(page):
    for words in (
        "How days goes with age and sex",
        "8,000 rows of 2 data holders",
        "days is on average",
        "higher at age 100 than at 20, all else equal (90 % interval",
        "lower where sex is m than where it is f",
        "Each additional unit of age goes with",
        "sex being m instead of f goes with",
        "These are associations. They do not say that changing a feature would change days.",
        "differentially private with ε = 1 and δ = 10⁻⁶: exchanging one row for any other",
        "Before the release they guess right 50 times in 100",
        "narrower",
        "Computed, not sampled",
        "no privacy noise",
        "tacit fit north.json south.json --allow-simulated",
        "--method noise-aware --prior weak",
        "Simulated releases, whose seed is known, protect nobody",
    ):
        assert words in page.text, words


@pytest.mark.parametrize(
    ("visits", "words"),
    [
        (2, "visited 2 times within this one budget, for a first answer and one correction of it"),
        (4, "for where values lie, a first answer and 2 corrections of it"),
    ],
)
def test_it_says_what_visits_asked(visits, words):
    study = study_of(planned_rows=[4000], visits=visits)
    assert words in Page(report(fitted(study, holders=("north",)))).text


@pytest.mark.parametrize(
    ("planned", "words"),
    [
        ([4000], "noisy sums, once. No row"),
        ([4000, 4000], "noisy sums at each of 4 visits. No row"),
    ],
    ids=["alone", "among several"],
)
def test_it_says_how_often_a_holder_published(planned, words):
    study = study_of(planned_rows=planned, visits=4)
    text = Page(report(fitted(study, holders=("north",)))).text
    assert "One holder published a small file of " + words in text


def test_it_needs_nothing_from_outside(page):
    for tag, attributes in page.elements:
        assert tag not in {"script", "img", "iframe", "object", "embed", "form", "base"}
        assert tag != "link" or attributes["href"] == "data:,"
        assert not any(name.startswith("on") for name in attributes)
        assert attributes.get("href", "#").startswith(("#", "data:,"))
        assert "src" not in attributes


def test_ids_are_unique_and_every_reference_has_its_target(page):
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    for tag, attributes in page.elements:
        if tag == "a":
            assert attributes["href"].removeprefix("#") in ids
        for name in (attributes.get("aria-labelledby") or "").split():
            assert name in ids


def test_no_name_becomes_markup():
    """In the study's, the response's, a feature's, a level's and a holder's name."""
    features = [
        {"name": "age " + EVIL, "range": [20, 100]},
        {"name": "sex", "levels": ["f" + EVIL, "m" + EVIL]},
    ]
    study = study_of(
        name=EVIL, response={"name": "days" + EVIL, "range": [0, 30]}, features=features
    )
    honest, evil = (
        Page(report(fitted())),
        Page(report(fitted(study, holders=("north" + EVIL, "south")))),
    )
    assert [tag for tag, _ in evil.elements] == [tag for tag, _ in honest.elements]
    assert [sorted(attributes) for _, attributes in evil.elements] == [
        sorted(attributes) for _, attributes in honest.elements
    ]
    assert evil.text.count(EVIL) > 20


def test_a_template_escapes_all_but_html():
    assert html("<b>$x</b>", x='<"&') == "<b>&lt;&quot;&amp;</b>"
    assert html("<b>$x</b>", x=Html("<i>y</i>")) == "<b><i>y</i></b>"
    assert html("$x", x="$y") == "$y"


def formula_study(age: str = "age", sex: str = "sex", **fields: object) -> tacit.Study:
    """An interaction of levels with a logarithm, and a polynomial."""
    features = [
        {"name": age, "range": [20, 100]},
        {"name": sex, "levels": ["f", "m"]},
        {"name": "income", "range": [1000, 100_000]},
    ]
    income = {"of": "income", "function": "log"}
    terms = [[age], [sex], [{"of": age, "degree": 2}], [income], [sex, income]]
    return study_of(features=features, terms=[{"product": term} for term in terms], **fields)


def test_terms_are_told_by_comparisons():
    text = Page(report(fitted(formula_study()))).text
    for words in (
        "They enter as a sum of these",
        "age, curved (powers up to 2)",
        "the logarithm of income sex together with the logarithm of income",
        "age: 60 against 20",
        "age: 100 against 60",
        "income: 50,500 against 1,000 where sex is m",
        "sex: m against f where income is 100,000",
        "age being 60 instead of 20 goes with",
        "Where sex is f, income being 50,500 instead of 1,000 goes with",
        "lower where sex is m than where it is f, all else equal",
        "Where that depends on other features, it is shown for some cases of them",
        "Along a curve the middle of the range is compared with the bottom",
        "the response is a sum of the terms that were asked for",
        "sex[m]:log(income)",
        "no privacy noise",
    ):
        assert words in text.replace("sex [m]", "sex[m]"), words
    assert "Each additional" not in text
    assert "straight line" not in text


def test_a_product_has_a_slope_in_every_case():
    """What goes with a year of age is another thing for each sex, and no slope is told without
    saying where.
    """
    text = Page(
        report(
            fitted(
                study_of(terms=[{"product": term} for term in (["age"], ["sex"], ["age", "sex"])])
            )
        )
    ).text
    assert "Where sex is f, each additional unit of age goes with" in text
    assert "Where sex is m, each additional unit of age goes with" in text
    assert "Each additional" not in text


@pytest.mark.parametrize("terms", [[], [["age"], ["sex"], ["age", "sex"]]], ids=["plain", "terms"])
def test_a_function_of_the_response_is_named_before_any_number(terms):
    study = study_of(
        response={"name": "days", "range": [1, 30], "function": "log"},
        terms=[{"product": term} for term in terms],
    )
    found = fitted(study)
    text = Page(report(found)).text
    said = (
        "All estimates, intervals and predictions are of log(days) , the logarithm of days, "
        "and not of days itself."
    )
    assert (
        text.index("How the logarithm of days goes with age and sex")
        < text.index(said)
        < text.index("is on average")
    )
    assert "A difference of 0.1 in it is a factor of 1.11 in days." in text
    assert (
        "How the logarithm of days , days being a number between 1 and 30, goes with age and sex"
        in text
    )
    assert "difference in log(days)" in text
    assert not re.search(r"[\d.]+ (more|less) days", text)
    mean = found.predict({"age": [60.0], "sex": ["f"]})["mean"][0].as_py()
    assert 0 < mean < math.log(30)


def test_no_name_of_a_term_becomes_markup():
    honest, evil = (
        Page(report(fitted(formula_study(*names))))
        for names in (("age", "sex"), ("age" + EVIL, "sex" + EVIL))
    )
    assert [tag for tag, _ in evil.elements] == [tag for tag, _ in honest.elements]
    assert evil.text.count(EVIL) > 20


THETA = np.array([0.2, 0.3, 0.1])
OUTCOMES = {
    "draws": Draws(
        np.random.default_rng(0).normal(THETA, 0.1, (2, 100, 3)),
        np.full((2, 100), 0.05),
        {"s": np.array([0.2, 0.3])},
    ),
    "normal": Student(THETA, 0.01 * np.eye(3), math.inf, 0.05),
    "student": Student(THETA, 0.01 * np.eye(3), 5.0, 0.05),
    "point": Student(THETA, None, math.inf, 0.05),
    "mixture": Mixture(
        np.array([0.3, 0.7]),
        np.stack([THETA, -THETA]),
        0.01 * np.stack([np.eye(3)] * 2),
        np.array([0.02, 0.1]),
        "beware",
    ),
}


@pytest.mark.parametrize("outcome", OUTCOMES.values(), ids=OUTCOMES)
def test_every_kind_of_posterior_gets_a_page(outcome):
    """Also one that knows neither its releases nor what is privacy."""
    found = Page(
        report(Posterior(study_of(), "m", outcome, (Contribution("a", None, 0.5, 1e-7),)), 0.95)
    )
    assert "95 %" in found.text
    assert "does not hold what is needed to tell privacy from sampling" in found.text
    assert "nan" not in found.text.replace("finance", "")
    assert ("this method gives no interval" in found.text) == (outcome is OUTCOMES["point"])


def test_doubtful_numbers_are_called_so_at_the_top():
    found = Page(report(Posterior(study_of(), "m", OUTCOMES["draws"], ()))).text
    assert found.index("the numbers are not") < found.index("What was found")
    assert "Not converged" in found[: found.index("The difference in days")]


@pytest.mark.parametrize(
    "fields",
    [
        {"features": []},
        {"intercept": False},
        {"relation": "add-remove"},
        {"relation": "add-remove", "release": {"count": "withheld"}},
        {
            "features": [
                {"name": "rain", "range": [0, 100], "typical": [0, 2]},
                {"name": "ward", "levels": ["a", "b"], "other": "c"},
            ]
        },
        {"features": [{"name": "income", "range": [0, 200_000]}]},
        {"features": [{"name": f"x{k}", "range": [0, 1]} for k in range(12)]},
        {"missing": "impute", "release": {"response_square": False}},
        {"response": {"name": "y", "range": [-1e-7, 1e-7]}},
    ],
    ids=range(9),
)
def test_every_kind_of_study_gets_a_page(fields):
    found = Page(report(fitted(study_of(**fields), holders=("a",)))).text
    assert "nan" not in found
    assert "Who contributed" in found


def test_an_interval_that_ends_at_zero_shows_no_clear_difference():
    """Of an average over models a coefficient is zero in all that leave it out."""
    theta = np.random.default_rng(0).normal(THETA, 0.01, (2, 100, 3))
    theta[:, ::2, 1] = 0.0
    outcome = Draws(theta, np.full((2, 100), 0.05), {})
    found = Page(report(Posterior(study_of(), "m", outcome, ()))).text
    assert "No clear difference in days goes with age" in found


def test_what_is_not_clear_is_told_once():
    """Of twelve features only the first goes with the response."""
    study = study_of(features=[{"name": f"x{k}", "range": [0, 1]} for k in range(12)])
    rng = np.random.default_rng(2)
    table = {f"x{k}": rng.uniform(size=8000) for k in range(12)}
    table["days"] = 20 - 10 * table["x0"] + rng.normal(size=8000)
    found = tacit.fit(
        tacit.collect([simulate(study, table, rng, holder="a")], allow_simulated=True)
    )
    text = Page(report(found)).text
    assert text.count("No clear difference in days goes with") == 1
    assert text.count("being 1 instead of 0 goes with") == np.count_nonzero(
        np.prod(found.interval(0.9, "contrast"), axis=1) > 0
    )
    [size, low, high] = re.search(
        r"x0 being 1 instead of 0 goes with ([\d.]+) less days "
        r"\(90 % interval ([\d.]+) to ([\d.]+)\)",
        text,
    ).groups()
    assert float(low) < float(size) < float(high)


def test_many_holders_are_folded_away():
    contributions = tuple(Contribution(f"h{k}", 100, 1.0, 1e-6) for k in range(40))
    found = Page(report(Posterior(study_of(), "m", OUTCOMES["normal"], contributions)))
    assert "All 40 releases" in found.text
    assert "tacit fit releases/" in found.text
    assert sum(tag == "details" for tag, _ in found.elements) == 3


def test_a_step_suits_its_range():
    found = Page(
        report(
            fitted(study_of(features=[{"name": "income", "range": [0, 200_000]}]), holders=("a",))
        )
    ).text
    assert "Each additional 10,000 of income goes with" in found


def test_numbers_have_the_digits_that_matter():
    assert number(0.07712, 0.011) == "0.077"
    assert number(-1234.567, 0.4) == "−1,234.57"
    assert number(12_345.6, 3000) == "12,300"
    assert number(0.0) == "0"
    assert number(1e-9) == "1e−09"
    assert number(math.nan) == "not known"
    assert (percent(0.001), percent(0.5), percent(0.999), percent(1.0)) == (
        "under 1 %",
        "50 %",
        "over 99 %",
        "100 %",
    )
    assert (power(1e-6), power(2.5e-7)) == ("10⁻⁶", "2.5 × 10⁻⁷")


def test_ticks_are_round_and_inside():
    assert Axis((0.0, 6.3), (0.0, 700.0)).ticks() == [0, 1, 2, 3, 4, 5, 6]
    assert Axis((-0.021, 0.013), (0.0, 300.0)).ticks() == [-0.02, 0.0]
    assert Axis((3.0, 3.0), (0.0, 300.0)).at(3.0) == 150
    assert shortened("a" * 50, 82) == "a" * 9 + "…"
