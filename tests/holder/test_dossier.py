"""The dossier: what it says of study and ledger, its three forms, and that names stay words.

Covers `tacit.holder.dossier.written`, `tacit.holder.dossier.subject`,
`tacit.holder.dossier.blocks`, `tacit.holder.dossier.guarantee`, `tacit.holder.dossier.algorithm`,
`tacit.holder.dossier.deployment`, `tacit.holder.dossier.page`, `tacit.holder.dossier.markdown`,
`tacit.holder.dossier.registry`.
"""

import json
import re
from html.parser import HTMLParser

import pytest
from house import ROWS

import tacit
from tacit.demo.hospitals import STUDY
from tacit.holder.dossier import dossier_of, write_dossier
from tacit.holder.dossier.registry import Entry
from tacit.holder.ledger import Ledger
from tacit.privacy.gaussian import epsilon_of

EVIL = "<script>alert(1)</script>|`x`*_[a](b)"
PLAIN = tacit.Study.from_toml(STUDY)
SUM = """
[secure_sum]
holders = { north = "%s=", south = "%s=", east = "%s=" }
least = 3
colluding = 1
""" % tuple(letter * 43 for letter in "ABC")  # noqa: UP031


def study_of(**fields):
    return tacit.Study.from_document(PLAIN.document() | fields)


def names_and_texts(page):
    tags = []
    texts = []

    class Reader(HTMLParser):
        def handle_starttag(self, tag, _attributes):
            tags.append(tag)

        def handle_data(self, data):
            texts.append(data)

    Reader().feed(page)
    return tags, " ".join(texts)


@pytest.fixture
def paid(tmp_path):
    """A ledger in which one study was paid for under a limit of 2, another was interrupted."""
    table = tmp_path / "table.csv"
    table.write_text(ROWS, encoding="utf-8")
    ledger = Ledger(tmp_path / "ledger.db")
    ledger.set_limit("patients", 2.0, 1e-6)
    tacit.publish(PLAIN, table, holder="north", ledger=ledger, dataset="patients")
    return ledger


def test_every_question_of_the_guidelines_has_its_place(paid):
    titles = {
        chapter.title: [section.title for section in chapter.sections]
        for chapter in dossier_of(PLAIN, paid).chapters
    }
    assert list(titles) == [
        "The guarantee",
        "The algorithm",
        "Deployment",
        "What only the holder can say",
    ]
    assert titles["The guarantee"][1:4] == [
        "Privacy parameters",
        "Unit of privacy",
        "Composition so far",
    ]
    assert titles["Deployment"] == [
        "Query model",
        "Trust model",
        "Implementation",
        "Security and access control",
        "Data collection",
    ]


def test_it_tells_what_was_spent_and_what_is_left(paid):
    [account] = paid.accounts()
    text = dossier_of(PLAIN, paid).files()[".md"]
    assert "has spent ε = 1 of 2 at δ = 10⁻⁶" in text
    assert f"at most ε = {account.epsilon_left:.4g} fits" in text
    assert "| 1 | " in text
    assert "| one release |" in text
    assert "it was answered once" in text
    assert "Who holds the rows: north." in text


def test_the_second_charge_composes(paid, tmp_path):
    second = study_of(name="another", epsilon=0.5)
    tacit.publish(second, tmp_path / "table.csv", holder="north", ledger=paid, dataset="patients")
    entry = json.loads(dossier_of(second, paid).files()[".json"])
    spent = entry["privacy_loss"]["dataset"]
    mus = [PLAIN.mechanism().mu, second.mechanism().mu]
    assert spent["charges"] == 2
    assert spent["spent"]["mu"] == pytest.approx((mus[0] ** 2 + mus[1] ** 2) ** 0.5)
    assert spent["spent"]["epsilon"] == pytest.approx(epsilon_of(spent["spent"]["mu"], 1e-6))
    assert len(entry["deployment"]["publication_dates"]) == 1


def test_without_a_ledger_nothing_is_spent_and_none_is_made(tmp_path):
    dossier = dossier_of(PLAIN, tmp_path / "none.db")
    files = dossier.files()
    assert "knows no charge to data set “default” yet" in files[".md"]
    assert "it has not been answered yet" in files[".md"]
    assert json.loads(files[".json"])["privacy_loss"]["dataset"] is None
    assert "Who holds the rows?" in files[".html"]
    assert not (tmp_path / "none.db").exists()


def test_an_interrupted_charge_is_no_answer(tmp_path):
    from tacit.holder.charge import Purpose, charge_of

    ledger = Ledger(tmp_path / "ledger.db")
    charge = charge_of(PLAIN, Purpose("north"), PLAIN.mechanism())
    ledger.pay(charge, PLAIN.relation)
    text = dossier_of(PLAIN, ledger).files()[".md"]
    assert "it has not been answered yet" in text
    assert "nothing: it was interrupted" in text


@pytest.mark.parametrize(
    ("study", "sentences"),
    [
        (study_of(relation="add-remove", release={}), ["unbounded", "published with noise of sd"]),
        (study_of(missing="refuse"), ["or a missing value. That it was refused tells"]),
        (tacit.Study.from_toml(STUDY + SUM), ["distributed between them", "north, south and east"]),
    ],
    ids=["add-remove", "refuse", "secure-sum"],
)
def test_it_says_what_this_study_says(study, sentences, tmp_path):
    text = dossier_of(study, tmp_path / "none.db").files()[".md"]
    for sentence in sentences:
        assert sentence in text


def test_a_divided_budget_states_no_noise_that_is_not_drawn(tmp_path):
    files = dossier_of(study_of(planned_rows=[5000], visits=3), tmp_path / "none.db").files()
    assert "The budget is divided" in files[".md"]
    assert "X'X off its diagonal" not in files[".md"]
    assert json.loads(files[".json"])["implementation"]["noise"] is None


def test_persons_are_the_unit_where_the_study_says_so(tmp_path):
    text = dossier_of(study_of(person="patient"), tmp_path / "none.db").files()[".md"]
    assert "The unit that is protected is a person" in text
    assert "| patient | person |" in text


def test_names_stay_words(tmp_path):
    study = study_of(name=EVIL)
    files = dossier_of(study, tmp_path / "none.db", curator=EVIL, purpose=EVIL).files()
    tags, text = names_and_texts(files[".html"])
    assert "script" not in tags
    assert "alert(1)" in text
    assert EVIL not in files[".md"]
    lines = [line for line in files[".md"].splitlines() if "held by" in line]
    assert len(re.findall(r"(?<!\\)\|", lines[0])) == 3
    assert json.loads(files[".json"])["deployment"]["intended_use"] == EVIL


def test_the_page_loads_nothing_and_runs_nothing(paid):
    page = dossier_of(PLAIN, paid).files()[".html"]
    assert not re.findall(r"<script|<img|<iframe|url\(|@import|https?://", page)
    assert "default-src 'none'" in page


def test_the_entry_is_its_record(paid):
    text = dossier_of(PLAIN, paid, purpose="care").files()[".json"]
    entry = Entry.model_validate_json(text)
    assert entry.deployment.intended_use == "care"
    assert entry.privacy_loss.release.epsilon == 1
    assert entry.model == "central"
    assert entry.implementation.noise == PLAIN.mechanism().noise


def test_the_command_writes_three_files_and_overwrites_no_study(tacit, house):
    tacit("publish", "study.toml", "table.csv", "--holder", "north", "--out", "north.json")
    code, out, _ = tacit("study", "dossier", "study.toml", "--out", "stay", "--json")
    assert code == 0
    assert json.loads(out)["files"] == ["stay.html", "stay.md", "stay.json"]
    assert "ε = 1 of 1" in (house / "stay.md").read_text("utf-8")
    (house / "own.json").write_text((house / "study.toml").read_text("utf-8"), encoding="utf-8")
    code, _, error = tacit("study", "dossier", "own.json", "--out", "own")
    assert code == 2
    assert "would overwrite what is read" in error


def test_it_is_written_whole(paid, tmp_path):
    paths = write_dossier(dossier_of(PLAIN, paid), tmp_path / "a.b")
    assert [path.name for path in paths] == ["a.b.html", "a.b.md", "a.b.json"]
    assert all(path.stat().st_size > 1000 for path in paths)
