"""The desk in a real browser: the whole way, wrong turns, two tabs, another site, and everybody's
eyes, hands and screens.

Covers `tacit.desk.pages.frame`, `tacit.desk.pages.home`, `tacit.desk.pages.study`,
`tacit.desk.pages.choice`,
`tacit.desk.pages.errand`, `tacit.desk.pages.pictures`, `tacit.desk.pages.requests`.
"""

import http.server
import os
import shutil
import threading
from pathlib import Path

import openpyxl
import pytest
from desks import running, setting_in, write_table

from tacit.demo.hospitals import STUDY
from tacit.federation.client.policy import Policy
from tacit.federation.client.requests import Requests
from tacit.holder.ledger import Ledger
from tacit.release import Release
from tacit.release.signature import verify
from tacit.study import Study

ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"]
AXE = Path(__file__).with_name("axe-core") / "axe.min.js"
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
SEEN_RULES = ["color-contrast", "target-size"]
"""What depends on the screen alone."""
AGREED = Study.from_toml(STUDY)
POLICY = """
holder = "north"
data = ["patients.csv"]
dataset = "patients"
ledger = "ledger.db"
studies = ["*"]

[most]
epsilon = 1.0
delta = 1e-6
epsilon_in_all = 2.0
delta_in_all = 1e-6
"""


@pytest.fixture(scope="module")
def browser():
    program = next(
        filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
    )
    if program is None:
        if os.environ.get("CI"):
            pytest.fail("chromium is not installed, and under CI these tests must run")
        pytest.skip("chromium is not installed")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(
            executable_path=program, args=ARGUMENTS, timeout=120_000
        )
        yield chromium
        chromium.close()


@pytest.fixture
def house(tmp_path):
    """A folder with a study and a table."""
    (tmp_path / "study.toml").write_text(STUDY, encoding="utf-8")
    write_table(tmp_path / "patients.csv")
    return tmp_path


@pytest.fixture
def visit(browser, house, monkeypatch):
    """Come to a desk; afterwards nothing may have been asked of anybody else, or complained of."""
    contexts = []
    asked = []
    complaints = []
    stack = []

    def come(*, width=1100, scheme="light", **fields):
        opened = running(setting_in(house, **fields), house, monkeypatch)
        stack.append(opened)
        address = opened.__enter__()
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
        contexts.append(context)
        context.set_default_timeout(120_000)
        page = context.new_page()
        page.on("request", lambda request: asked.append((request.url, address)))
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("dialog", lambda dialog: complaints.append(dialog.message))
        page.goto(address)
        return page

    yield come
    for context in contexts:
        context.close()
    for opened in stack:
        opened.__exit__(None, None, None)
    empty = "the server responded with a status of 422"  # a table without a byte
    assert [text for text in complaints if empty not in text] == []
    assert all(url.startswith(address.partition("?")[0]) for url, address in asked)


def open_study(page, house):
    page.wait_for_load_state()  # nobody chooses a file before the page is there
    page.set_input_files("#study-file", house / "study.toml")
    page.wait_for_url("**/studies/*")


def rehearse(page, table, name="patients"):
    page.set_input_files("#table-file", table)
    if page.locator("input[name=dataset][value='=patients']").count() == 0:
        page.fill("#new-name", name)
    page.get_by_role("button", name="Rehearse").click()
    page.wait_for_url("**/errands/*")


def publish(page):
    page.get_by_role("button", name="Publish, and pay").click()
    page.get_by_role("link", name="Save the release").wait_for()


def charges(house):
    ledger = Ledger(house / "ledger.db")
    return [each for a in ledger.accounts() for each in a.charges] if ledger.exists() else []


def faults(page, rules=RULES):
    """What the accessibility checker finds, as rule and element."""
    page.evaluate(AXE.read_text(encoding="utf-8"))
    result = page.evaluate("rules => axe.run(document, {runOnly: rules})", rules)
    assert len(result["passes"]) > (15 if rules is RULES else 0)
    return [
        (fault["id"], node["html"][:120], node["failureSummary"][:200])
        for fault in result["violations"]
        for node in fault["nodes"]
    ]


def assert_fits(page):
    width = page.viewport_size["width"]
    assert page.evaluate("document.documentElement.scrollWidth") <= width, page.url


# The way, with the mouse, on every screen; each page is checked on it.


@pytest.mark.parametrize(
    ("width", "scheme", "rules"), [(1100, "light", RULES), (390, "dark", SEEN_RULES)]
)
def test_the_whole_way_is_open_to_everybody(visit, house, width, scheme, rules):
    page = visit(width=width, scheme=scheme)
    looked_at = {}

    def look(name):
        page.wait_for_load_state()
        assert_fits(page)
        looked_at[name] = faults(page, rules)
        if folder := os.environ.get("TACIT_SCREENSHOTS"):
            page.screenshot(path=Path(folder) / f"{width}-{name}.png", full_page=True)

    look("home")
    page.get_by_role("button", name="Make a signing key").click()
    page.get_by_text("fingerprint, to read out").wait_for()
    open_study(page, house)
    look("study")
    rehearse(page, house / "patients.csv")
    look("rehearsal")
    assert charges(house) == []
    publish(page)
    look("released")
    with page.expect_download() as saving:
        page.get_by_role("link", name="Save the release").click()
    release = Release.from_json(Path(saving.value.path()).read_text("utf-8"))
    assert saving.value.suggested_filename == "north-length-of-stay.json"
    assert verify(release)
    assert release.n == 300
    page.get_by_role("link", name="Ledger").click()
    look("ledger")
    page.get_by_role("link", name="Close").click()
    look("close")
    assert looked_at == {name: [] for name in looked_at}
    [charge] = charges(house)
    assert charge.release == release.to_json()


def test_the_keyboard_alone_is_enough(visit, house):
    """Tab, space, letters and return; a file can only be chosen by the browser's own window."""
    page = visit()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == "study-file"
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")  # the box for a study's text opens
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == "study-text"
    page.keyboard.insert_text(STUDY)
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_url("**/studies/*")
    page.set_input_files("#table-file", house / "patients.csv")
    page.focus("#table-file")
    page.keyboard.press("Tab")  # past how the table is written
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == "holder"
    page.keyboard.press("Tab")
    page.keyboard.type("patients")
    page.keyboard.press("Enter")
    page.wait_for_url("**/errands/*")
    page.focus("main")
    for _ in range(10):
        page.keyboard.press("Tab")
        if "Publish" in page.evaluate("document.activeElement.textContent"):
            break
    page.keyboard.press("Enter")
    page.get_by_role("link", name="Save the release").wait_for()
    assert len(charges(house)) == 1


def test_from_a_messy_spreadsheet_to_a_file(visit, house):
    """A title above the names, a column named otherwise, a code for what is missing."""
    book = openpyxl.Workbook()
    sheet = book.active
    sheet.append(["Stays of last year"])
    sheet.append(["Alter", "bmi", "sex", "admission", "days"])
    for place in range(60):
        code = -999 if place % 5 == 0 else 25.5
        sheet.append([40 + place % 30, code, "female", "planned", 3 + place % 4])
    book.save(house / "stays.xlsx")
    page = visit()
    open_study(page, house)
    page.set_input_files("#table-file", house / "stays.xlsx")
    page.fill("#new-name", "patients")
    page.get_by_role("button", name="Rehearse").click()
    page.get_by_role("alert").wait_for()
    assert "age" in page.get_by_role("alert").inner_text()
    page.get_by_text("How the table is written").click()
    page.fill("#columns", "age=Alter")
    page.get_by_role("button", name="Rehearse").click()  # the file lies here already
    page.wait_for_url("**/errands/*")
    assert "-999" in page.get_by_role("alert").inner_text()
    page.get_by_role("link", name="say how this one is written").click()
    assert page.input_value("#columns") == "age=Alter"
    assert page.get_by_label("stays.xlsx").is_checked()
    page.fill("#missing", "-999")
    page.get_by_role("button", name="Rehearse").click()
    page.wait_for_url("**/errands/*")
    assert page.get_by_role("alert").count() == 0
    assert "12 missing" in page.inner_text("main")
    publish(page)
    assert len(charges(house)) == 1


def test_wrong_turns_are_told(visit, house):
    page = visit()
    (house / "nothing.toml").write_text("name = ", encoding="utf-8")
    page.set_input_files("#study-file", house / "nothing.toml")
    page.get_by_role("alert").wait_for()
    assert "not valid TOML" in page.get_by_role("alert").inner_text()
    open_study(page, house)
    page.get_by_role("button", name="Rehearse").click()
    page.get_by_role("alert").wait_for()
    assert "Choose a table" in page.get_by_role("alert").inner_text()
    (house / "other.csv").write_text("a,b\n1,2\n", encoding="utf-8")
    page.set_input_files("#table-file", house / "other.csv")
    page.fill("#new-name", "patients")
    page.get_by_role("button", name="Rehearse").click()
    # The locator's own wait: a predicate that is polled in the page is stopped by its policy.
    page.get_by_role("alert").filter(has_text="column").wait_for()
    (house / "empty.csv").write_bytes(b"")
    page.set_input_files("#table-file", house / "empty.csv")
    page.get_by_role("button", name="Rehearse").click()
    page.get_by_text("is empty").wait_for()
    rows = ["age,bmi,sex,admission,days", *["-999,25,female,planned,3"] * 40]
    (house / "codes.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    rehearse(page, house / "codes.csv")
    assert "Stop and look" in page.get_by_role("alert").inner_text()
    assert faults(page) == []
    page.get_by_role("button", name="Publish, and pay").click()  # the browser asks for the tick
    assert page.locator("input[name=anyway]").evaluate("box => !box.validity.valid")
    assert charges(house) == []


def test_two_tabs_and_a_reload_pay_once(visit, house):
    page = visit()
    open_study(page, house)
    rehearse(page, house / "patients.csv")
    other = page.context.new_page()
    other.goto(page.url)
    page.reload()
    publish(page)
    page.reload()
    page.get_by_role("link", name="Save the release").wait_for()
    other.get_by_role("button", name="Publish, and pay").dblclick()
    other.get_by_role("link", name="Save the release").wait_for()
    assert len(charges(house)) == 1
    page.go_back()
    if page.get_by_role("button", name="Publish, and pay").count():
        publish(page)
    assert len(charges(house)) == 1


def test_an_old_tab_confirms_nothing_new(visit, house):
    page = visit()
    open_study(page, house)
    rehearse(page, house / "patients.csv")
    old = page.context.new_page()
    old.goto(page.url.partition("/errands")[0] + "/studies/" + AGREED.hash[7:])
    rehearse(old, house / "patients.csv")
    publish(page)
    old.get_by_role("button", name="Publish, and pay").click()
    old.get_by_role("alert").wait_for()
    assert "has changed since" in old.get_by_role("alert").inner_text()
    assert len(charges(house)) == 1


# Another site.


class Elsewhere(http.server.BaseHTTPRequestHandler):
    """A site of somebody else's, whose page sends forms, scripts and frames at the desk."""

    target = ""

    def do_GET(self):
        page = f"""<!DOCTYPE html><html lang="en"><title>elsewhere</title>
            <form id="f" method="post" action="{self.target}/publish">
            <input name="seen" value="x"></form>
            <form id="t" method="post" action="{self.target}/publish" enctype="text/plain">
            <input name="seen" value="x"></form>
            <img src="{self.target}" alt=""><iframe src="{self.target}" title="desk"></iframe>
            <script src="{self.target.partition("/errands")[0]}/static/desk.js"></script>"""
        self.send_response(200)
        self.send_header("content-type", "text/html")
        self.end_headers()
        self.wfile.write(page.encode())

    def log_message(self, *_):
        pass


def test_another_sites_page_can_do_nothing(visit, house):
    """Not by a form, a script, a frame or an image: not from elsewhere, nor from another port."""
    page = visit()
    open_study(page, house)
    rehearse(page, house / "patients.csv")
    seen = page.locator("input[name=seen]").get_attribute("value")
    Elsewhere.target = page.url
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Elsewhere)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        for host in ("127.0.0.1", "localhost"):
            stranger = page.context.new_page()  # the same browser, with the desk's cookie in it
            stranger.goto(f"http://{host}:{server.server_port}/")
            for form in ("f", "t"):
                stranger.evaluate(
                    "([id, seen]) => { document.querySelector('#' + id + ' input').value = seen; }",
                    [form, seen],
                )
                with stranger.expect_navigation() as going:
                    stranger.evaluate(f"document.getElementById('{form}').submit()")
                assert going.value.status == 403
                stranger.go_back()
            for init in ("{}", "{method: 'POST', credentials: 'include', body: 'seen=x'}"):
                script = f"fetch({page.url + '/publish'!r}, {init}).then(() => 1, () => 0)"
                assert stranger.evaluate(script) == 0
            frame = stranger.frames[-1]
            assert frame.locator("button").count() == 0
            assert stranger.evaluate("document.images[0].naturalWidth") == 0
            stranger.close()
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
    assert charges(house) == []
    publish(page)


def test_a_wrong_key_or_none_shows_nothing(visit, browser):
    page = visit()
    origin = page.url.partition("/")[0] + "//" + page.url.split("/")[2]
    stranger = browser.new_context().new_page()
    for path in ("/", "/?key=wrong", page.url.removeprefix(origin)):
        answer = stranger.goto(origin + path)
        assert answer.status == 403
        assert stranger.locator("form").count() == 0
    stranger.context.close()


# Requests of a federation, print, and pictures.


def test_requests_are_read_and_decided(visit, house):
    (house / "holder.toml").write_text(POLICY, encoding="utf-8")
    policy = Policy.load(house / "holder.toml")
    requests = Requests(policy.requests)
    other = Study.from_document(AGREED.document() | {"name": "second"})
    for study in (AGREED, other):
        assert requests.ask(study) == "waiting"
    page = visit(policy=policy, width=390)
    page.get_by_role("link", name="Requests (2 waiting)").click()
    assert faults(page) == []
    page.get_by_role("link", name="length-of-stay").click()
    assert "noisy sums" in page.inner_text("main")
    assert "epsilon = 1 at delta = 1e-06" in page.inner_text("main")
    assert faults(page) == []
    assert_fits(page)
    stale = page.context.new_page()
    stale.goto(page.url)
    page.get_by_role("button", name="Approve").click()
    page.wait_for_url("**/requests")
    assert requests.ask(AGREED) == "approved"
    stale.get_by_role("button", name="Refuse").click()
    stale.get_by_role("alert").wait_for()
    assert "look again" in stale.get_by_role("alert").inner_text()
    assert requests.ask(AGREED) == "approved"
    page.get_by_role("link", name="second").click()
    page.get_by_role("button", name="Refuse").click()
    page.wait_for_url("**/requests")
    assert requests.ask(other) == "refused"


def test_it_prints_without_its_buttons(visit, house):
    page = visit(scheme="dark")
    open_study(page, house)
    rehearse(page, house / "patients.csv")
    page.emulate_media(media="print", color_scheme="dark")
    shown = "getComputedStyle(document.body).backgroundColor"
    assert page.evaluate(shown) == "rgb(255, 255, 255)"
    assert not page.get_by_role("button", name="Publish, and pay").is_visible()
    assert page.locator(".cards svg").first.is_visible()
    page.pdf(path=house / "rehearsal.pdf", format="A4")
    assert (house / "rehearsal.pdf").read_bytes().startswith(b"%PDF-")


def test_pictures_show_what_was_counted(visit, house):
    page = visit()
    open_study(page, house)
    rehearse(page, house / "patients.csv")
    pictures = page.evaluate(
        """[...document.querySelectorAll('.cards svg')].map(svg => ({
            title: svg.querySelector('title').textContent,
            description: svg.querySelector('desc').textContent,
            bars: svg.querySelectorAll('rect').length,
            height: svg.getBoundingClientRect().height,
        }))"""
    )
    titles = [picture["title"] for picture in pictures]
    assert titles[-1] == "Length of encoded rows"
    assert "Values of age" in titles
    assert "Levels of sex" in titles
    assert all(picture["bars"] >= 2 and picture["height"] > 30 for picture in pictures)
    sex = next(picture for picture in pictures if picture["title"] == "Levels of sex")
    counts = [int(part.split(": ")[1].rstrip(".")) for part in sex["description"].split("; ")]
    assert sum(counts) == 300
