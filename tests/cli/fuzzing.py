"""Broken documents and files by hypothesis, and the command that must refuse them in one sentence.

Cells of tables hold recognisable tokens; none may come out in a message.
"""

import contextlib
import copy
import io
import math
import os
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tacit.cli import main
from tacit.demo.hospitals import STUDY
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
