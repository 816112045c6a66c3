"""Hostile documents: refused by a sentence of their own, for under 50 MB and a second.

Covers `tacit.limits`. Each document is read in a process of its own, whose memory and time are
limited by the operating system: a limit that comes too late is a crash here.
"""

import json
import resource
import subprocess
import sys
import tomllib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.limits import RELEASE, STUDY, LimitError
from tacit.release import Release
from tacit.simulation import simulate
from tacit.study import Study
from tacit.study.toml import study_toml

MOST_MEMORY = 50 * 2**20
READER = """
import resource, sys, time
from tacit.errors import TacitError
from pathlib import Path
from tacit.release import Release
from tacit.release.parcel import Parcel
from tacit.release.question import Question
from tacit.study import Study
text = Path(sys.argv[2]) if sys.argv[1] == "parcel" else open(sys.argv[2], encoding="utf-8").read()
read = {
    "study": Study.from_toml,
    "release": Release.from_json,
    "question": Question.from_json,
    "parcel": Parcel.load,
}[sys.argv[1]]
Study.from_toml(sys.argv[4])
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + int(sys.argv[3]),) * 2)
begun = time.process_time()
try:
    print("read", read(text).study_hash if sys.argv[1] == "release" else read(text).hash)
except TacitError as error:
    print(error)
assert time.process_time() - begun < 1, time.process_time() - begun
"""
HEAD = 'name = "s"\nepsilon = 1.0\ndelta = 1e-6\n[response]\nname = "y"\nrange = [0, 1]\n'


def read(kind, text, tmp_path):
    """What a reader says who has 50 MB and a second for it."""
    path = tmp_path / "document"
    path.write_text(text, encoding="utf-8")
    command = [sys.executable, "-c", READER, kind, str(path), str(MOST_MEMORY), HEAD]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-600:]
    assert done.stdout.count("\n") == 1
    return done.stdout


def wide_terms(levels, categories=5):
    names = [str(level) for level in range(levels)]
    features = "".join(
        f'[[features]]\nname = "g{k}"\nlevels = {json.dumps(names)}\n' for k in range(categories)
    )
    products = ", ".join(f'"g{k}"' for k in range(categories))
    curve = '[[features]]\nname = "x"\nrange = [0, 1000]\ntypical = [0, 1]\n'
    term = f'[[terms]]\nproduct = [{products}, {{ of = "x", degree = 8 }}]\n'
    return HEAD + features + curve + term


def features(count):
    return HEAD + "".join(f'[[features]]\nname = "x{k}"\nrange = [0, 1]\n' for k in range(count))


def steep(count):
    columns = "".join(f'[[features]]\nname = "x{k}"\nrange = [0, 1]\n' for k in range(6))
    factors = ", ".join(f'{{ of = "x{k}", degree = 8 }}' for k in range(6))
    return HEAD + columns + f"[[terms]]\nproduct = [{factors}]\n" * count


def holders(count):
    names = ", ".join(f'h{k} = "{k:043d}="' for k in range(count))
    return HEAD.replace(
        "[response]",
        f"secure_sum = {{ least = {count}, colluding = 0, holders = {{ {names} }} }}\n[response]",
    )


STUDIES = {
    "too many columns of a term": (wide_terms(30), "grows too large outside typical intervals"),
    "levels": (
        HEAD + f"[[features]]\nname = 'g'\nlevels = {list(map(str, range(2000)))}",
        "levels: must have at most 513 entries",
    ),
    "dotted keys": ("a." * 200_000 + "a = 1", "has keys of at most 8 dotted parts"),
    "dotted keys, quoted": ('"a" . ' * 100_000 + "a = 1", "has keys of at most 8 dotted parts"),
    "dotted tables": ("[" + "a." * 200_000 + "a]", "has keys of at most 8 dotted parts"),
    "letters": (HEAD + "# " + "x" * 2**20, "has at most 1,048,576 letters"),
    "nesting": (HEAD + "a = " + "[" * 20_000 + "]" * 20_000, "is nested at most 12 deep"),
    "features": (features(513), "features: must have at most 512 entries"),
    "many features": (features(20_000), "named values or lists"),
    "monomials": (steep(1), "expands to more than 2,000 monomials"),
    "factors": (
        HEAD + f"[[terms]]\nproduct = {['x'] * 5000}",
        "terms.entry 1.product: must have at most 6 entries",
    ),
    "terms": (features(2) + '[[terms]]\nproduct = ["x0"]\n' * 600, "terms: must have at most 512"),
    "tables": ("[a]\n" * 200_000, "named values or lists"),
    "names": ("".join(f"a{k} = 1\n" for k in range(60_000)), "named values or lists"),
    "values": (HEAD + f"a = {[1] * 300_000}", "has at most 60,000 values"),
    "holders": (holders(1001), "secure_sum.holders: must have at most 1,000 entries"),
    "planned rows": (
        f"planned_rows = {[1] * 5000}\n" + HEAD,
        "planned_rows: must have at most 1,000 entries",
    ),
    "a word": ("a" * 1_000_000, "not valid TOML"),
    "quotes": ('"' * 1_000_000, "not valid TOML"),
    "escapes": ('a = "' + "\\\\" * 500_000, "not valid TOML"),
    "wrong fields": (
        HEAD + "[x]\n" + "".join(f"a{k} = 1\n" for k in range(25_000)),
        "x: no such field",
    ),
    "unknown fields": ("".join(f"a{k} = 1\n" for k in range(25_000)) + HEAD, "no such field"),
}


@pytest.mark.parametrize("name", STUDIES)
def test_a_hostile_study_is_refused_cheaply_and_by_its_own_sentence(name, tmp_path):
    text, sentence = STUDIES[name]
    assert sentence in read("study", text, tmp_path)


def test_large_but_honest_studies_are_read(tmp_path):
    for text in (features(511), holders(1000)):
        assert read("study", text, tmp_path).startswith("read sha256:")


SMALL = Study.from_toml(features(1))
RNG = np.random.default_rng(0)
DOCUMENT = json.loads(simulate(SMALL, np.full((9, 2), 0.5), RNG, holder="h").to_json())


def with_field(**fields):
    return json.dumps(DOCUMENT | fields)


RELEASES = {
    "letters": (" " * (11 * 2**20), "a release is at most 10 MB long"),
    "lists": ("[" + "[]," * 2_000_000 + "[]]", "named values or lists"),
    "numbers": ("[" + "1," * 4_000_000 + "1]", "has at most 400,000 values"),
    "nesting": ('{"a":' * 100_000, "named values or lists"),
    "wrong numbers": (with_field(xtx=[["a"] * 512] * 512), "xtx.0.0: input should be"),
    "too wide": (with_field(xtx=[[0.0] * 600] * 600), "xtx"),
    "too long": (with_field(xty=[0.0] * 300_000), "xty"),
    "fields": (with_field(**{f"a{k}": 1 for k in range(25_000)}), "extra inputs"),
    "features": (
        with_field(study=DOCUMENT["study"] | {"features": [{"name": "x"}] * 9000}),
        "study.features: must have at most 512 entries",
    ),
    "strings": ("[" + '"\\\\",' * 2_000_000, "at most 400,000 values"),
    "strings apart": ("[" + '"a" , ' * 1_700_000, "at most 400,000 values"),
    "quotes": ('"' + '\\"' * 4_000_000, "not valid JSON"),
}


@pytest.mark.parametrize("name", RELEASES)
def test_a_hostile_release_is_refused_cheaply_and_by_its_own_sentence(name, tmp_path):
    text, sentence = RELEASES[name]
    assert sentence in read("release", text, tmp_path)


QUESTION = {
    "format": "tacit-question",
    "version": 1,
    "study_hash": "sha256:" + "0" * 64,
    "visit": 2,
    "after": [],
    "map": [[1.0]],
    "offset": [0.0],
    "radius": 1.0,
    "bound": 1.0,
}
PARCEL = {
    "format": "tacit-parcel",
    "version": 1,
    "sender": "north",
    "made": "now",
    "expects": {},
    "items": [],
    "public_key": "A" * 43 + "=",
    "signature": "x",
}
ITEM = {"name": "a", "kind": "study", "text": ""}
LETTERS = {
    "wide map": ("question", QUESTION | {"map": [[0.0] * 600] * 600}, "map.0"),
    "long map": ("question", QUESTION | {"map": [[0.0]] * 25_000}, "map"),
    "long after": ("question", QUESTION | {"after": ["x"] * 300_000}, "at most 1,000 entries"),
    "nested map": ("question", QUESTION | {"map": [[[[1.0] * 9] * 9] * 9] * 9}, "map.0.0"),
    "many items": ("parcel", PARCEL | {"items": [ITEM] * 150_000}, "at most 20,000 values"),
    "items": ("parcel", PARCEL | {"items": [ITEM] * 101}, "items: "),
    "expected": ("parcel", PARCEL | {"expects": {"x": ["y"] * 30_000}}, "at most 20,000 values"),
    "studies": ("parcel", PARCEL | {"expects": {f"{k}": [] for k in range(500)}}, "expects: "),
    "a long text": ("parcel", PARCEL | {"items": [ITEM | {"text": "x" * 10**7}]}, "public key"),
    "letters": ("parcel", PARCEL | {"made": "x" * 2**24}, "a parcel is at most 10 MB long"),
}


@pytest.mark.parametrize("name", LETTERS)
def test_a_hostile_question_or_parcel_is_refused_cheaply_and_by_its_own_sentence(name, tmp_path):
    kind, document, sentence = LETTERS[name]
    assert sentence in read(kind, json.dumps(document), tmp_path)


# The counter of marks sees what the parsers see.


def test_marks_inside_strings_and_comments_do_not_count():
    text = HEAD + "# " + "[" * 40_000 + '\nlabel = "' + "{a.b.c.d.e.f.g.h.i.j = [" * 50 + '"\n'
    text += "note = '''" + "[\n" * 40_000 + "'''\nlast = 1.5 # a.b.c.d.e.f.g.h.i.j\n"
    STUDY.check_toml(text)
    RELEASE.check_json(json.dumps({"a": '[{",:\\' * 50_000}))


@settings(max_examples=300, deadline=None, derandomize=True, database=None)
@given(st.text(st.sampled_from("ab.=[]{},#'\"\\\n \t1"), max_size=60))
def test_whatever_toml_reads_nests_no_deeper_than_was_counted(text):
    """A text that passes has no deeper value, and no longer key, than the limits say."""
    tight = STUDY.__class__("a study", letters=60, values=60, names=60, depth=3)
    try:
        tight.check_toml(text)
        document = tomllib.loads(text)
    except (LimitError, ValueError):
        return
    assert depth_of(document) <= 3 + 1 + 9 * 9  # a table's own level, and dotted keys add theirs


def depth_of(value):
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + max(map(depth_of, inner), default=0) if isinstance(value, dict | list) else 0


@settings(max_examples=300, deadline=None, derandomize=True, database=None)
@given(st.recursive(st.none() | st.text() | st.floats(), st.lists, max_leaves=30))
def test_whatever_json_writes_is_counted_exactly(value):
    text = json.dumps(value)
    deep = depth_of(value)
    RELEASE.__class__("x", letters=10**6, values=10**6, names=10**6, depth=deep).check_json(text)
    if deep:
        tight = RELEASE.__class__("x", letters=10**6, values=10**6, names=10**6, depth=deep - 1)
        with pytest.raises(LimitError):
            tight.check_json(text)


def test_limits_of_the_operating_system_are_real(tmp_path):
    """The harness can fail: what needs more memory than there is dies."""
    code = READER.replace('print("read"', 'bytearray(10**8); print("read"')
    path = tmp_path / "document"
    path.write_text(study_toml(SMALL), encoding="utf-8")
    command = [sys.executable, "-c", code, "study", str(path), str(MOST_MEMORY), HEAD]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "MemoryError" in done.stderr
    assert resource.getrlimit(resource.RLIMIT_AS)[0] == resource.RLIM_INFINITY
    assert Release.from_json(json.dumps(DOCUMENT)).holder == "h"
