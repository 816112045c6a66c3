"""Rows that arrive piece by piece: the same rows whatever the pieces, nothing kept, and one
sentence for what cannot be read.

Covers `tacit.rows.arriving` and `tacit.rows.wiped`.
"""

import itertools
import math
import os
import threading
from contextlib import suppress
from hashlib import sha256

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.errors import TableError
from tacit.rows import arriving
from tacit.rows.arriving import Handed, Place, Text
from tacit.rows.wiped import POOL, wipe, wipe_columns
from tacit.study import Study

STUDY = Study.from_document(
    {
        "name": "arriving",
        "epsilon": 1.0,
        "delta": 1e-6,
        "response": {"name": "y", "range": [0, 1]},
        "features": [{"name": "x", "range": [0, 100]}, {"name": "ward", "levels": ["a", "b"]}],
    }
)
HEADER = "ward,extra,x,y\n"


def text_of(rows):
    return HEADER + "".join(f"{'ab'[k % 2]},ignored,{k},0.{k}\n" for k in range(1, rows + 1))


def drain(source, most=7):
    """Every row's x, read at most so many at a time."""
    found, sizes = [], []
    while source.wait():
        size = len(found)
        source.read(most, lambda batch: found.extend(batch["x"].to_pylist()))
        sizes.append(len(found) - size)
    assert all(0 < size <= most for size in sizes)
    return found


def piped(text, **options):
    reading, writing = os.pipe()

    def write():
        with suppress(BrokenPipeError), os.fdopen(writing, "wb", buffering=0) as file:
            file.write(text.encode())

    threading.Thread(target=write).start()
    try:
        return drain(Text(STUDY, descriptor=reading, **options))
    finally:
        os.close(reading)


@settings(max_examples=60, deadline=None)
@given(
    pieces=st.lists(st.integers(1, 60), min_size=1, max_size=30),
    rows=st.integers(0, 40),
    most=st.integers(1, 50),
)
def test_any_pieces_of_a_file_give_the_same_rows(tmp_path_factory, pieces, rows, most):
    path = tmp_path_factory.mktemp("pieces") / "rows.csv"
    path.write_text(text_of(rows), encoding="utf-8")
    readv, sizes = os.readv, itertools.cycle(pieces)

    def short(descriptor, buffers):
        return readv(descriptor, [buffers[0][: next(sizes)]])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(arriving.os, "readv", short)
        patch.setattr(arriving, "READ_BYTES", 64)
        source = Text(STUDY, path, idle=0)
        assert drain(source, most) == list(range(1, rows + 1))
    assert source.taken == rows
    assert source.place.position == len(text_of(rows))


@settings(max_examples=30, deadline=None)
@given(cuts=st.lists(st.integers(0, 50), max_size=8), most=st.integers(1, 60))
def test_any_record_batches_give_the_same_rows(cuts, most):
    whole = pa.record_batch(
        {"x": list(range(50)), "y": [0.5] * 50, "ward": ["a"] * 50, "more": [1] * 50}
    )
    edges = sorted([0, *cuts, 50])
    source = Handed((whole.slice(a, b - a) for a, b in itertools.pairwise(edges)), STUDY)
    assert drain(source, most) == list(range(50))
    assert source.taken == 50


@pytest.mark.parametrize(
    "text",
    [
        text_of(5).rstrip("\n"),
        text_of(5).replace("\n", "\r\n"),
        text_of(5).replace("\n", "\n\n"),
        "\n" + text_of(5),
        "\ufeff" + text_of(5),
    ],
)
def test_a_pipe_may_lack_its_last_end_of_line_and_have_blank_ones(text):
    assert piped(text) == [1, 2, 3, 4, 5]


def test_a_pipe_larger_than_any_buffer_is_read_whole():
    assert piped(text_of(20_000)) == list(range(1, 20_001))


def test_a_file_without_a_last_end_of_line_waits_for_it(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text(text_of(5)[:-1], encoding="utf-8")
    source = Text(STUDY, path, idle=0)
    assert drain(source) == [1, 2, 3, 4]
    with path.open("a", encoding="utf-8") as file:
        file.write("\nb,,6,0.6\n")
    assert drain(source) == [5, 6]


def test_a_file_is_taken_up_where_it_was_left(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text(text_of(9), encoding="utf-8")
    source = Text(STUDY, path, idle=0)
    assert source.wait()
    source.read(4, lambda _batch: None)
    again = Text(STUDY, path, idle=0)
    again.resume(source.place)
    assert drain(again) == [5, 6, 7, 8, 9]


def test_a_file_rewritten_before_its_place_is_refused(tmp_path):
    """Rows of equal width put in at the top: the byte at the place is still the end of a line."""
    path = tmp_path / "rows.csv"
    lines = text_of(9).splitlines(keepends=True)
    path.write_text("".join(lines), encoding="utf-8")
    source = Text(STUDY, path, idle=0)
    assert source.wait()
    source.read(4, lambda _batch: None)
    path.write_text("".join([lines[0], lines[5], *lines[1:]]), encoding="utf-8")
    with pytest.raises(TableError, match="is not the file that this stream has read"):
        Text(STUDY, path, idle=0).resume(source.place)


@pytest.mark.parametrize(
    "content", ["", HEADER, text_of(2), text_of(30).replace("\n", "\n ")], ids=len
)
def test_another_file_in_its_place_is_refused(tmp_path, content):
    path = tmp_path / "rows.csv"
    path.write_text(content, encoding="utf-8")
    source = Text(STUDY, path, idle=0)
    with pytest.raises(TableError, match="put"):
        source.resume(Place(len(text_of(4)), sha256(text_of(4).encode()).hexdigest()))


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("x,y\n1,0.5\n", "standard input needs exactly one column named 'ward'"),
        ("x,x,y,ward\n", "exactly one column named 'x'"),
    ],
)
def test_what_cannot_be_read_gets_one_sentence_without_a_value(text, rule):
    with pytest.raises(TableError, match=rule) as caught:
        piped(text)
    assert "SECRET" not in str(caught.value)


@pytest.mark.parametrize(
    "line",
    ["a,,SECRET,0.5", "a,,1", "a,,1,0.5,9", "a,,1,0.5\ra,,2,0.5", '"a,,1,0.5', 'a,"two', "x"],
)
def test_a_line_that_is_no_row_is_one_of_missing_values_and_spoils_no_other(line):
    """An unclosed quotation mark would swallow the lines behind it."""
    rows = piped(f"{text_of(3)}{line}\n{text_of(2)[len(HEADER) :]}")
    read = [row for row in rows if row is not None and not math.isnan(row)]
    assert sorted(read) == [1, 1, 2, 2, 3]
    assert len(rows) == 6


def test_a_line_without_end_is_refused(monkeypatch):
    monkeypatch.setattr(arriving, "LONGEST_LINE", 2**17)
    with pytest.raises(TableError, match="has a line of over"):
        piped(HEADER + "a" * 2**18 + "\n")


def test_a_long_line_makes_the_buffer_grow():
    assert piped(HEADER + f"a,{'e' * 200_000},3,0.5\n") == [3]


def test_a_quiet_pipe_ends_when_idle_or_told_to():
    reading, writing = os.pipe()
    os.write(writing, text_of(3).encode())
    assert drain(Text(STUDY, descriptor=reading, idle=0.1)) == [1, 2, 3]
    asked = iter([False, True, True])
    os.write(writing, text_of(3).encode() + b"a,,4")
    assert drain(Text(STUDY, descriptor=reading, stopped=lambda: next(asked))) == [1, 2, 3]
    os.close(reading)
    os.close(writing)


def test_batches_that_are_none_are_refused():
    with pytest.raises(TableError, match="Arrow record batches"):
        Handed([{"x": 1}], STUDY).wait()
    with pytest.raises(TableError, match="exactly one column named 'ward'"):
        Handed([pa.record_batch({"x": [1], "y": [1]})], STUDY).wait()


def test_text_and_columns_are_overwritten(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text(text_of(40), encoding="utf-8")
    source, kept = Text(STUDY, path, idle=0), []
    assert source.wait()
    source.read(40, kept.append)
    assert not any(source._buffer[len(HEADER) :])
    for column in kept[0].columns:
        assert not any(any(bytes(buffer)) for buffer in column.buffers() if buffer is not None)
    assert source._header == HEADER.encode()


def test_what_arrow_reads_is_not_pythons_memory(monkeypatch):
    """Its thread may hold the text until a program ends, which memory of Python's would abort."""
    read_csv = arriving.pyarrow.csv.read_csv
    held, allocated = [], []

    def lingering(reader, **options):
        held.append(reader)
        allocated.append(POOL.bytes_allocated() - before)
        return read_csv(reader, **options)

    monkeypatch.setattr(arriving.pyarrow.csv, "read_csv", lingering)
    before = POOL.bytes_allocated()
    assert len(piped(text_of(40))) == 40
    sizes = [reader.size() for reader in held]
    assert min(sizes) > len(HEADER)
    assert all(size <= share for size, share in zip(sizes, allocated, strict=True))
    for reader in held:
        reader.seek(0)
        assert not any(reader.read())


def test_wiping_changes_what_was_asked_and_no_more():
    buffer = bytearray(b"abcdef")
    wipe(buffer, 1, 3)
    assert buffer == b"a\0\0def"
    table = pa.table({"x": pa.array([1.5, None])})
    wipe_columns(table)
    assert set(table["x"].to_pylist()) <= {0.0, 1.5, None}
