"""The report in a real browser: drawn, offline, light and dark, narrow, printed, by keyboard and
for screen readers.

Covers `tacit.analyst.report.charts`, `tacit.page.svg`.
"""

import itertools
import os
import shutil
from pathlib import Path

import numpy as np
import pytest

import tacit
from tacit.analyst.posterior.laws import Draws
from tacit.analyst.posterior.posterior import Posterior
from tacit.analyst.report import write_report
from tacit.demo.hospitals import STUDY, patients
from tacit.simulation import simulate

ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"]
EVIL = "<script>document.title='hacked'</script><img src=x onerror=alert(1)>"

TERMS = (
    '["age"]',
    '["bmi"]',
    '["sex"]',
    '["admission"]',
    '["age", "sex", "admission"]',
    '[{ of = "bmi", degree = 2 }]',
)


@pytest.fixture(scope="module")
def browser():
    program = (
        shutil.which("chromium")
        or shutil.which("chromium-browser")
        or shutil.which("google-chrome")
    )
    if program is None:
        if os.environ.get("CI"):
            pytest.fail("chromium is not installed, and under CI these tests must run")
        pytest.skip("chromium is not installed")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=program, args=ARGUMENTS, timeout=120_000)
        yield found
        found.close()


@pytest.fixture(scope="module")
def reports(tmp_path_factory) -> dict[str, Path]:
    """A computed posterior's report, a sampler's, one of terms, and one whose names are markup."""
    folder = tmp_path_factory.mktemp("reports")
    rng = np.random.default_rng(0)
    computed = _fitted(tacit.Study.from_toml(STUDY), rng, "north")
    theta = computed.outcome.sample(800, rng)[0].reshape(4, 200, -1)
    sampled = Posterior(
        computed.study,
        "fixed-s",
        Draws(theta, np.full((4, 200), 0.03)),
        computed.contributions,
        pooled=computed.pooled,
    )
    evil = tacit.Study.from_toml(STUDY.replace('"emergency"', '"emergency' + EVIL + '"'))
    terms = tacit.Study.from_toml(
        STUDY + "".join(f"\n[[terms]]\nproduct = {product}\n" for product in TERMS)
    )
    found = {
        "computed": computed,
        "sampled": sampled,
        "evil": _fitted(evil, rng, "north" + EVIL),
        "terms": _fitted(terms, rng, "north"),
    }
    for name, posterior in found.items():
        write_report(posterior, folder / f"{name}.html")
    return {name: folder / f"{name}.html" for name in found}


def _fitted(study: tacit.Study, rng: np.random.Generator, holder: str) -> Posterior:
    table = patients(rng, 6000)
    levels = study.features[-1].all_levels
    admission = [levels[value == "emergency"] for value in table["admission"].to_pylist()]
    table = table.set_column(table.schema.get_field_index("admission"), "admission", [admission])
    return tacit.fit(
        tacit.collect([simulate(study, table, rng, holder=holder)], allow_simulated=True)
    )


@pytest.fixture
def visit(browser, reports):
    """Open a report offline; at the end nothing may have been asked for, complained of or popped
    up.
    """
    contexts, requests, complaints = [], [], []

    def opened(name: str, *, width: int = 1100, scheme: str = "light"):
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
        context.set_offline(True)
        contexts.append(context)
        page = context.new_page()
        page.on("request", lambda request: requests.append(request.url))
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("dialog", lambda dialog: complaints.append(dialog.message))
        page.goto(reports[name].as_uri())
        return page

    yield opened
    for context in contexts:
        context.close()
    assert complaints == []
    assert all(url.startswith(("file://", "data:")) for url in requests), requests


BOXES = """() => [...document.querySelectorAll('svg')]
    .filter(svg => svg.checkVisibility()).map(svg => ({
    name: svg.getAttribute('aria-labelledby').split('-')[0],
    width: svg.getBoundingClientRect().width, height: svg.getBoundingClientRect().height,
    title: svg.querySelector('title').textContent,
    description: svg.querySelector('desc').textContent,
    dots: svg.querySelectorAll('circle').length, curves: svg.querySelectorAll('.density').length,
    bars: svg.querySelectorAll('rect').length, chains: svg.querySelectorAll('.chain').length,
}))"""


@pytest.mark.parametrize("width", [1100, 390])
def test_every_chart_is_drawn_once_with_its_marks(visit, width):
    charts = {chart["name"]: chart for chart in visit("computed", width=width).evaluate(BOXES)}
    assert list(charts) == ["forest", "shares", "cases", "guess", "outlook", "panels"]
    assert all(
        chart["width"] > 0.85 * min(width - 60, 700) and chart["height"] > 50
        for chart in charts.values()
    )
    assert all(chart["title"] and chart["description"] for chart in charts.values())
    assert (charts["forest"]["dots"], charts["forest"]["curves"]) == (4, 4)
    assert charts["shares"]["bars"] == 8
    assert charts["cases"]["dots"] == 7
    assert charts["outlook"]["bars"] == 12
    assert (charts["panels"]["curves"], charts["panels"]["chains"]) == (5, 0)


def test_a_samplers_chains_are_drawn(visit):
    charts = {chart["name"]: chart for chart in visit("sampled").evaluate(BOXES)}
    assert charts["panels"]["chains"] == 5 * 4


@pytest.mark.parametrize("width", [1100, 390, 320])
@pytest.mark.parametrize("name", ["computed", "evil", "terms"])
def test_the_page_never_scrolls_sideways(visit, name, width):
    assert visit(name, width=width).evaluate("document.documentElement.scrollWidth") <= width


def test_labels_in_charts_do_not_collide(visit):
    """Name and number of a line stand side by side, also on a telephone."""
    collisions = """() => [...document.querySelectorAll('svg')]
        .filter(svg => svg.checkVisibility()).flatMap(svg => {
        const boxes = [...svg.querySelectorAll('.name, .words, .label')]
            .map(text => [text.textContent, text.getBoundingClientRect()]);
        const meet = (p, q) => p.left < q.right && q.left < p.right
            && p.top < q.bottom - 1 && q.top < p.bottom - 1;
        return boxes.flatMap(([a, p], i) => boxes.slice(i + 1)
            .filter(([b, q]) => meet(p, q)).map(([b, q]) => a + ' | ' + b));
    })"""
    for name, width in itertools.product(("computed", "terms"), (1100, 390)):
        assert visit(name, width=width).evaluate(collisions) == []


def test_names_stay_words(visit):
    page = visit("evil")
    assert page.title() == "How days goes with age, bmi, sex and admission"
    assert page.locator("script, img").count() == 0
    assert EVIL in page.locator("#holders").inner_text()


# Light and dark, print, keyboard, screen reader.

CONTRAST = """() => {
    const parse = colour => colour.match(/[\\d.]+/g).map(Number);
    const linear = v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
    const luminance = ([r, g, b]) => [r, g, b].map(v => linear(v / 255))
        .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
    const ratio = (a, b) => {
        const [x, y] = [luminance(a), luminance(b)].sort((p, q) => q - p);
        return (x + 0.05) / (y + 0.05);
    };
    const hasWords = element => [...element.childNodes]
        .some(node => node.nodeType === 3 && node.textContent.trim());
    const behind = element => { for (let e = element; e; e = e.parentElement) {
        const colour = parse(getComputedStyle(e).backgroundColor);
        if (colour.length < 4 || colour[3] > 0) return colour;
    } return [255, 255, 255]; };
    const fill = (svg, style) => parse(getComputedStyle(svg.querySelector('rect.' + style)).fill);
    const poor = [];
    for (const element of document.querySelectorAll('body *')) {
        if (!element.checkVisibility() || !hasWords(element)) continue;
        const style = getComputedStyle(element), svg = element.closest('svg');
        if (svg && element.tagName !== 'text') continue;
        const onBar = svg && element.classList.contains('on');
        const on = onBar ? fill(svg, element.classList[1]) : behind(element);
        const found = ratio(parse(svg ? style.fill : style.color), on);
        if (found < 4.5) poor.push([element.textContent.trim().slice(0, 40), found]);
    }
    return poor;
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_has_contrast(visit, scheme):
    """4.5 to 1 at least, which WCAG asks of usual text at level AA; in charts as well."""
    for name in ("computed", "sampled"):
        assert visit(name, scheme=scheme).evaluate(CONTRAST) == []


def test_dark_is_dark_and_print_is_light(visit):
    brightness = """() => getComputedStyle(document.body).backgroundColor
        .match(/\\d+/g).slice(0, 3).map(Number).reduce((a, b) => a + b) / 3"""
    page = visit("computed", scheme="dark")
    assert page.evaluate(brightness) < 60
    page.emulate_media(media="print", color_scheme="dark")
    assert page.evaluate(brightness) == 255
    assert not page.locator("nav").is_visible()
    assert page.locator(".wide svg").first.is_visible()
    assert visit("computed").evaluate(brightness) > 240


def test_it_prints(visit, tmp_path):
    visit("computed").pdf(path=tmp_path / "report.pdf", format="A4")
    content = (tmp_path / "report.pdf").read_bytes()
    assert content.startswith(b"%PDF-")
    assert 4 <= content.count(b"/Type /Page\n") <= 12


def test_the_keyboard_reaches_everything(visit):
    """First the link that skips to the findings, then the contents, then every table that scrolls,
    the commands and the study.
    """
    page = visit("computed")
    reached = []
    for _ in range(40):
        page.keyboard.press("Tab")
        reached.append(
            page.evaluate(
                "document.activeElement.tagName + ' ' + "
                "(document.activeElement.getAttribute('href') || '')"
            )
        )
    assert reached[0] == "A #main"
    assert reached[1] == "A #found"
    assert sum(place.startswith("A #") for place in reached[:11]) == 10
    assert {place.strip() for place in reached} >= {"DIV", "PRE", "SUMMARY"}
    page.focus("summary")
    page.keyboard.press("Enter")
    assert page.locator("details pre").is_visible()
    page.focus(".skip")
    assert page.locator(".skip").bounding_box()["x"] >= 0
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"


def test_a_screen_reader_finds_its_way(visit):
    page = visit("computed")
    assert page.evaluate("document.documentElement.lang") == "en"
    levels = page.evaluate(
        "[...document.querySelectorAll('h1, h2, h3, h4')].map(h => Number(h.tagName[1]))"
    )
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels))
    for landmark in ("banner", "navigation", "main", "contentinfo"):
        assert page.get_by_role(landmark).count() == 1, landmark
    assert page.get_by_role("region").count() >= 10
    images = page.get_by_role("img")
    assert images.count() == 6
    assert page.evaluate(
        "[...document.querySelectorAll('svg')].every(svg => svg.getAttribute('role') === 'img')"
    )
    assert page.evaluate(
        "[...document.querySelectorAll('figure')]"
        ".every(figure => figure.querySelector('figcaption'))"
    )
    assert page.evaluate(
        "[...document.querySelectorAll('table')].every(table => table.caption"
        " && [...table.querySelectorAll('th')].every(th => th.scope))"
    )
    assert page.evaluate(
        "[...document.querySelectorAll('tbody tr')].every(row => row.cells[0].scope === 'row')"
    )
