"""Broken studies, tables, releases and ledgers: one sentence, exit code 2, nothing half-written.

Covers `tacit.errors`, `tacit.records`, `tacit.cli`. Cells of the tables hold recognisable tokens;
none may come out in a message, or in any file but the table itself.
"""

import contextlib
import copy
import gzip
import io
import json
import math
import os
import shutil
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tacit.cli import main
from tacit.demo.hospitals import STUDY
from tacit.errors import LedgerError, ReleaseError, StudyError, TableError
from tacit.holder.account import Charge
from tacit.holder.ledger import Ledger
from tacit.holder.statistics import statistics_of
from tacit.privacy.gaussian import mu_of
from tacit.release import Release
from tacit.rows.table import table_of
from tacit.simulation import simulate
from tacit.study import Study

SECRET = "SECRET7731"  # noqa: S105
PROFILE = settings(
    derandomize=True,
    phases=[Phase.generate],
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
)
AGREED = Study.from_toml(STUDY)


def examples(quick, thorough):
    """How many examples: few in every run, many in the slow one."""
    return pytest.mark.parametrize(
        "number", [quick, pytest.param(thorough, marks=pytest.mark.slow)]
    )


def fuzz(number, strategy, check):
    """Run `check` on examples of a strategy."""

    @settings(PROFILE, max_examples=number)
    @given(strategy)
    def run(example):
        check(example)

    run()


def tacit(folder, *arguments):
    """Run the command in a folder; gives exit code, output and error output."""
    out, err, code = io.StringIO(), io.StringIO(), 0
    before, argv = Path.cwd(), sys.argv
    os.chdir(folder)
    sys.argv = ["tacit", *arguments]
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            main()
    except SystemExit as end:
        code = end.code or 0
    finally:
        sys.argv = argv
        os.chdir(before)
    return code, out.getvalue(), err.getvalue()


def one_sentence(code, out, err):
    assert code == 2, (code, out, err)
    assert out == ""
    remarks, sentence = err[: err.rindex("tacit: ")], err[err.rindex("tacit: ") :]
    if remarks:  # of a table that looks wrong: for the holder's own screen
        assert remarks.startswith("for this screen only")
        assert "SECRET" not in sentence
    assert sentence.count("\n") == 1
    assert "Traceback" not in err


# Strategies.

ODD_TEXT = st.sampled_from(
    [
        "",
        " ",
        "\n",
        "\x00",
        "\x1b[31m",
        "\u2028",
        "é",
        "٣",
        "ﬁ",
        "💥",
        '"',
        "'",
        "\\",
        "[[",
        "]]",
        "=",
        "#",
        "x" * 300,
        "1" * 5000,
    ]
)
ODD_NUMBERS = st.sampled_from(
    [
        0,
        -0.0,
        1,
        -1,
        0.5,
        1e-300,
        5e-324,
        1e300,
        1.7e308,
        math.inf,
        -math.inf,
        math.nan,
        2**31,
        2**63,
        2**64,
        10**400,
        -(10**400),
        1e-3,
        1e-9,
    ]
)
ODD_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | ODD_NUMBERS
    | st.floats()
    | st.integers()
    | ODD_TEXT
    | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(max_size=5) | ODD_TEXT, inner, max_size=3)
    ),
    max_leaves=6,
)


EDIT = st.tuples(
    st.sampled_from(["set", "set", "cut", "insert", "repeat", "end"]),
    st.integers(0, 10**6),
    st.binary(min_size=1, max_size=40),
)


class Edited(bytes):
    """Bytes with a few of them changed; a failing example shows the edits alone."""

    def __new__(cls, content, edits):
        content = bytearray(content)
        for kind, place, put in edits:
            place %= len(content) + 1  # noqa: PLW2901
            if kind == "set":
                content[place : place + len(put)] = put
            elif kind == "cut":
                del content[place : place + len(put)]
            elif kind == "insert":
                content[place:place] = put
            elif kind == "repeat":
                content[place:place] = content[place : place + len(put)]
            else:
                del content[place:]
        edited = super().__new__(cls, content)
        edited.edits = edits
        return edited

    def __repr__(self):
        return f"Edited(…, {self.edits})"


def mutated_bytes(content):
    return st.lists(EDIT, min_size=1, max_size=4).map(lambda edits: Edited(content, edits))


def places(value, path=()):
    """Every place in a document, inner ones included."""
    found = [path] if path else []
    if isinstance(value, dict):
        found += [place for name, item in value.items() for place in places(item, (*path, name))]
    if isinstance(value, list):
        found += [
            place for index, item in enumerate(value) for place in places(item, (*path, index))
        ]
    return found


@st.composite
def mutated_document(draw, document):
    """A document with some values exchanged, removed or added."""
    document = copy.deepcopy(document)
    for _ in range(draw(st.integers(1, 3))):
        path = draw(st.sampled_from(places(document) or [("name",)]))
        inner = document
        for part in path[:-1]:
            inner = inner[part]
        kind = draw(st.sampled_from(["set", "set", "set", "remove", "add"]))
        if kind == "set":
            inner[path[-1]] = draw(ODD_VALUES)
        elif kind == "remove" and path[-1] in (
            inner if isinstance(inner, dict) else range(len(inner))
        ):
            del inner[path[-1]]
        elif isinstance(inner, dict):
            inner[draw(st.text(max_size=5) | ODD_TEXT)] = draw(ODD_VALUES)
        else:
            inner.append(draw(ODD_VALUES))
    return document


# Studies.

FULL = AGREED.document() | {
    "relation": "add-remove",
    "release": {"noise": "triangular", "row_radius": 1.5, "response_bound": 0.5, "count": "noisy"},
}
FULL["features"] = [{"name": "age", "range": [0, 120], "typical": [40, 60]}, *FULL["features"][1:]]


def check_study(study):
    """A study that was accepted can be used."""
    assert study.hash == study.resolved().hash
    assert all(0 < sd < math.inf for sd in study.mechanism().noise.published())
    assert Study.from_document(json.loads(json.dumps(study.document()))).hash == study.hash


@examples(300, 5000)
def test_broken_study_texts(number):
    def check(content):
        try:
            study = Study.from_toml(
                content.decode("utf-8", "replace") if isinstance(content, bytes) else content
            )
        except StudyError as error:
            assert len(str(error).splitlines()) == 1  # noqa: PT017
        else:
            check_study(study)

    fuzz(
        number,
        mutated_bytes(STUDY.encode())
        | st.text(max_size=40)
        | st.text(alphabet='[]="#\n aeé1.,{}_-', max_size=60),
        check,
    )


@examples(400, 5000)
def test_broken_study_documents(number):
    def check(document):
        try:
            study = Study.from_document(document)
        except StudyError as error:
            assert len(str(error).splitlines()) == 1  # noqa: PT017
        else:
            check_study(study)

    fuzz(number, mutated_document(AGREED.document()) | mutated_document(FULL) | ODD_VALUES, check)


@examples(60, 1000)
def test_broken_study_files(number, tmp_path):
    path = tmp_path / "study.toml"

    def check(content):
        path.write_bytes(content)
        code, out, err = tacit(tmp_path, "study", "check", "study.toml")
        if code != 0:
            one_sentence(code, out, err)
        assert [file.name for file in tmp_path.iterdir()] == ["study.toml"]

    fuzz(number, mutated_bytes(STUDY.encode()) | st.binary(max_size=60), check)


@examples(60, 1000)
def test_odd_column_descriptions(number, tmp_path):
    texts = st.text(alphabet="ab:|.0123e-+\"\\' \n\x1b\u2028é", max_size=12) | ODD_TEXT.filter(
        lambda text: "\x00" not in text
    )

    def check(text):
        code, out, err = tacit(
            tmp_path,
            "study",
            "new",
            "--response",
            "y:0..1",
            f"--columns={text}",
            "--out",
            "new.toml",
        )
        if code == 0:
            check_study(Study.load(tmp_path / "new.toml"))
            (tmp_path / "new.toml").unlink()
        else:
            one_sentence(code, out, err)
        assert not list(tmp_path.iterdir())

    fuzz(number, texts, check)


# Tables.


def rows(count=40):
    rng = np.random.default_rng(6)
    return pa.table(
        {
            "note": [f"{SECRET}-{place}" for place in range(count)],
            "age": rng.uniform(18, 100, count),
            "bmi": pa.array(rng.normal(28, 5, count), mask=rng.random(count) < 0.1),
            "sex": pa.array(rng.choice(["female", "male"], count)).dictionary_encode(),
            "admission": rng.choice(["planned", "emergency"], count),
            "days": rng.gamma(2, 4, count),
        }
    )


def stored(kind):
    """The bytes of a whole table file of a kind."""
    sink = io.BytesIO()
    if kind == "table.parquet":
        pq.write_table(rows(), sink)
    elif kind == "table.feather":
        pyarrow.feather.write_feather(rows(), sink, compression="uncompressed")
    elif kind == "table.arrow":
        with pa.ipc.new_stream(sink, rows().schema) as writer:
            writer.write_table(rows())
    else:
        pyarrow.csv.write_csv(rows(), sink)
    return gzip.compress(sink.getvalue(), mtime=0) if kind.endswith(".gz") else sink.getvalue()


KINDS = ["table.csv", "table.csv.gz", "table.parquet", "table.feather", "table.arrow"]


@pytest.fixture
def house(tmp_path):
    (tmp_path / "study.toml").write_text(STUDY, encoding="utf-8")
    return tmp_path


def publish_file(house, name, content):
    """Publish a table file and check what must hold whatever was in it."""
    (house / name).write_bytes(content)
    arguments = (
        "study.toml",
        name,
        "--holder",
        "north",
        "--out",
        "north.json",
        "--ledger",
        "books/ledger.db",
        "--local-diagnostics",
    )
    code, out, err = tacit(house, "publish", *arguments)
    left = {path.name for path in house.rglob("*") if path.is_file()} - {"study.toml", name}
    if code == 0:
        assert left == {"north.json", "ledger.db", "ledger.db.head"}
        Release.load(house / "north.json")
    else:
        one_sentence(code, out, err)
        assert left == set(), "nothing half-written, and nothing paid"
    for text in (
        out,
        err,
        *(
            path.read_bytes().decode("latin-1")
            for path in house.rglob("*")
            if path.is_file() and path.name in left
        ),
    ):
        assert SECRET not in text
        assert (
            "7731" not in text.replace("sha256:", "") or code == 0
        )  # digits may occur by chance in noisy numbers
    shutil.rmtree(house / "books", ignore_errors=True)
    (house / "north.json").unlink(missing_ok=True)
    (house / name).unlink()
    return code


@pytest.mark.parametrize("name", KINDS)
def test_the_whole_file_is_published(house, name):
    assert publish_file(house, name, stored(name)) == 0


@pytest.mark.parametrize("name", KINDS)
@examples(70, 1000)
def test_damaged_table_files(number, house, name):
    fuzz(number, mutated_bytes(stored(name)), lambda content: publish_file(house, name, content))


@pytest.mark.parametrize("name", KINDS)
@examples(25, 400)
def test_random_bytes_as_tables(number, house, name):
    heads = st.sampled_from(
        [
            b"",
            b"PAR1",
            b"ARROW1\x00\x00",
            b"\x1f\x8b\x08\x00",
            b"age,bmi,sex,admission,days\n",
            b"\xff\xff\xff\xff\x10\x00\x00\x00",
        ]
    )
    strategy = st.tuples(heads, st.binary(max_size=80)).map(
        lambda parts: parts[0] + SECRET.encode() + parts[1]
    )
    fuzz(number, strategy, lambda content: publish_file(house, name, content))


CELLS = st.sampled_from(
    [
        *(
            "50",
            "1e400",
            "-inf",
            "NaN",
            "-nan",
            "0x10",
            "1_000",
            "1,5",
            " 7 ",
            "٣",
            "1.5.2",
            "--1",
            "+3",
            "true",
            "NA",
            "",
            "null",
            '""',
            '"',
        ),
        *(
            SECRET,
            f'"{SECRET}\n{SECRET}"',
            f"{SECRET},{SECRET}",
            f"7731{SECRET}",
            f"'{SECRET}'",
            f"\x00{SECRET}",
            f"\ufeff{SECRET}",
            f"{SECRET}\r",
        ),
        *(
            "female",
            "male",
            "planned",
            "emergency",
            "Female",
            "x" * 5000,
            "\U0001f4a5",
            "\\",
            "a\tb",
            f"#{SECRET}",
            f"{{{SECRET}}}",
            f"%s{SECRET}%n",
        ),
        f"In CSV column #7731: CSV conversion error to double: invalid value '{SECRET}'",
        f"Column '{SECRET}' in include_columns does not exist",
    ]
)


@examples(150, 3000)
def test_odd_cells(number, house):
    row = st.lists(CELLS, min_size=5, max_size=5) | st.lists(CELLS, max_size=7)
    good = ["50", "25", "female", "planned", "3"]
    one_bad = st.tuples(st.integers(0, 4), CELLS).map(
        lambda change: [*good[: change[0]], change[1], *good[change[0] + 1 :]]
    )

    def check(lines):
        text = "\n".join(["age,bmi,sex,admission,days", *(",".join(line) for line in lines)])
        publish_file(house, "table.csv", text.encode())

    fuzz(number, st.lists(row | one_bad | st.just(good), max_size=5), check)


@examples(40, 1000)
def test_odd_headers(number, house):
    names = st.permutations(["age", "bmi", "sex", "admission", "days"]) | st.lists(
        CELLS | st.sampled_from(["age", "days", "AGE"]), max_size=6
    )

    def check(header):
        publish_file(
            house,
            "table.csv",
            (",".join(header) + f"\n50,25,female,planned,3\n{SECRET},1,1,1,1\n").encode(),
        )

    fuzz(number, names, check)


TYPES = [
    *(
        pa.null(),
        pa.bool_(),
        pa.int8(),
        pa.uint64(),
        pa.float32(),
        pa.float64(),
        pa.string(),
        pa.large_string(),
        pa.string_view(),
        pa.binary(),
    ),
    *(
        pa.large_binary(),
        pa.binary(10),
        pa.date32(),
        pa.date64(),
        pa.time32("s"),
        pa.time64("us"),
        pa.timestamp("s"),
        pa.timestamp("ns", "UTC"),
    ),
    *(
        pa.duration("s"),
        pa.month_day_nano_interval(),
        pa.decimal128(10, 2),
        pa.decimal256(40, 3),
        pa.list_(pa.string()),
        pa.struct([("a", pa.string())]),
    ),
    *(
        pa.map_(pa.string(), pa.string()),
        pa.dictionary(pa.int8(), pa.string()),
        pa.dictionary(pa.int32(), pa.float64()),
        pa.list_view(pa.int8()),
    ),
    *(
        pa.run_end_encoded(pa.int32(), pa.string()),
        pa.dense_union([pa.field("a", pa.int8())]),
        pa.uuid(),
        pa.bool8(),
        pa.float16(),
    ),
    pa.dictionary(pa.uint32(), pa.string_view()),
]


@pytest.mark.parametrize("kind", TYPES, ids=str)
@pytest.mark.parametrize("name", ["age", "sex", "days"])
def test_columns_of_any_type(kind, name):
    column = pa.nulls(2, kind)
    if (
        pa.types.is_string(kind)
        or pa.types.is_large_string(kind)
        or pa.types.is_string_view(kind)
        or pa.types.is_binary(kind)
    ):
        column = pa.array([SECRET, None], pa.string()).cast(kind)
    elif pa.types.is_floating(kind):
        column = pa.array([math.inf, math.nan], kind)
    table = rows(2)
    table = table.set_column(table.schema.get_field_index(name), name, column)
    try:
        statistics_of(AGREED, table_of(table, AGREED).batches())
    except TableError as error:
        assert SECRET not in str(error)  # noqa: PT017


# Releases.

RELEASE = simulate(AGREED, rows(), np.random.default_rng(1), holder="north")
NOISY = simulate(Study.from_document(FULL), rows(), np.random.default_rng(1), holder="north")


def check_release(text):
    try:
        release = Release.from_json(text)
    except ReleaseError as error:
        assert len(str(error).splitlines()) <= 1  # noqa: PT017
        assert len(str(error)) < 1000  # noqa: PT017
    else:
        assert Release.from_json(release.to_json()).to_json() == release.to_json()
        assert np.isfinite(release.gram).all()
        assert release.study.d == len(release.xty)


@examples(200, 5000)
def test_broken_release_texts(number):
    fuzz(
        number,
        mutated_bytes(RELEASE.to_json().encode()) | st.binary(max_size=50) | st.text(max_size=50),
        check_release,
    )


@examples(300, 5000)
def test_broken_release_documents(number):
    documents = mutated_document(json.loads(RELEASE.to_json())) | mutated_document(
        json.loads(NOISY.to_json())
    )
    fuzz(number, documents | ODD_VALUES, lambda document: check_release(json.dumps(document)))


@examples(40, 1000)
def test_broken_release_files(number, tmp_path):
    def check(content):
        (tmp_path / "north.json").write_bytes(content)
        try:
            Release.from_json(content)
        except ReleaseError:
            one_sentence(
                *tacit(
                    tmp_path, "fit", "north.json", "--out", "posterior.parquet", "--allow-simulated"
                )
            )
            assert [file.name for file in tmp_path.iterdir()] == ["north.json"]

    fuzz(number, mutated_bytes(RELEASE.to_json().encode()), check)


# Ledgers.


@examples(100, 2000)
def test_damaged_ledgers(number, tmp_path):
    ledger = Ledger(tmp_path / "ledger.db")
    ledger.set_limit("default", 5.0, 1e-6)
    charge = Charge(
        0,
        "default",
        "study",
        "sha256:1",
        "north",
        0.1,
        1e-6,
        mu_of(0.1, 1e-6),
        "2026-01-31T09:30:00Z",
        None,
    )
    ledger.record(ledger.pay(charge, "replace-one").charge, RELEASE.to_json())
    whole = ledger.path.read_bytes()

    def check(content):
        ledger.path.write_bytes(content)
        try:
            for account in ledger.accounts():
                assert account.spent >= 0
            ledger.pay(charge, "replace-one", again=True)
        except LedgerError as error:
            assert len(str(error).splitlines()) == 1  # noqa: PT017
        ledger.path.unlink()

    fuzz(number, mutated_bytes(whole), check)
