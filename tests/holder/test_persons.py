"""Studies of persons: each counts as one row does, from every source, in any order, to the bit.

Covers `tacit.holder.persons`, `tacit.holder.scrambler`, `tacit.holder.recall`,
`tacit.holder.division`, `tacit.holder.weighing` and what they need of `tacit.rows`.
"""

import hashlib
from collections import Counter
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from studies import agreed

from tacit.errors import LedgerError, StudyError, TableError
from tacit.holder.encode import GRID, Encoder
from tacit.holder.ledger import Ledger
from tacit.holder.persons import (
    Repeats,
    Roll,
    batches_of,
    counted_alone,
    repeats,
)
from tacit.holder.publish import publish
from tacit.holder.scrambler import LOWER, Scrambler
from tacit.holder.statistics import STATISTICS, statistics_of
from tacit.holder.tally import total_of
from tacit.rows.table import ONE, ROWS, Table
from tacit.study import Study, words

STUDY = agreed(person="patient")
PLAIN = agreed()


def table(persons=200, most=7, seed=0) -> pa.Table:
    """Rows of so many persons, one to `most` each, in random order."""
    rng = np.random.default_rng(seed)
    ids = np.repeat(np.arange(persons), rng.integers(1, most + 1, persons))
    rng.shuffle(ids)
    n = len(ids)
    return pa.table(
        {
            "age": rng.uniform(10, 110, n),
            "ward": rng.choice(["1", "2", "3"], n),
            "bmi": pa.array(np.where(rng.random(n) < 0.1, np.nan, rng.uniform(10, 60, n))),
            "days": rng.gamma(2, 4, n),
            "patient": ids,
        }
    )


def total(source, study=STUDY):
    return total_of(STATISTICS, study, source)


def same(first, second):
    return first.n == second.n and np.array_equal(first.gram, second.gram)


# What a person counts for.


def test_a_person_adds_the_mean_of_what_its_rows_add():
    rows = table()
    block = np.hstack(list(Encoder(PLAIN).blocks(rows.combine_chunks().to_batches()[0]))) / GRID
    ids = rows["patient"].to_numpy()
    mean = sum(
        block[:, ids == person] @ block[:, ids == person].T / np.sum(ids == person)
        for person in np.unique(ids)
    )
    found = total(rows)
    assert found.n == 200
    np.testing.assert_allclose(found.floats(), mean, rtol=1e-4, atol=1e-3)


def test_with_one_row_each_nothing_changes():
    rows = table(most=1)
    assert same(total(rows), total(rows, PLAIN))


def test_a_row_is_divided_as_written():
    """The factor in exact fractions, beside the one in floating point."""
    batch = table(persons=5, most=40, seed=3).combine_chunks().to_batches()[0]
    whole = np.hstack(list(Encoder(PLAIN).blocks(batch))).astype(int)
    divided = np.hstack(list(Encoder(STUDY).blocks(counted_alone(batch, "patient")))).astype(int)
    counts = Counter(batch.column("patient").to_pylist())
    radius = STUDY.row_radius * GRID
    for row, small, person in zip(whole.T, divided.T, batch.column("patient"), strict=True):
        m = counts[person.as_py()]
        factor = (1 - max(np.sqrt(m * STUDY.d) / radius, np.sqrt(m) / GRID)) / np.sqrt(m)
        assert all(
            abs(Fraction(factor) * int(a) - int(b)) <= Fraction(1, 2) + Fraction(1, 2**20)
            for a, b in zip(row, small, strict=True)
        )


@pytest.mark.parametrize("features", [1, 30])
@pytest.mark.parametrize("bound", [1.0, 0.01, 2e-4])
def test_all_rows_of_a_person_together_are_no_longer_than_one(features, bound):
    """In whole numbers: the Frobenius norm of a person's rows and the norm of its responses."""
    columns = [{"name": f"x{i}", "range": [-1, 1]} for i in range(features)]
    study = agreed(
        columns,
        person="patient",
        intercept=False,
        release={"response_bound": bound, "row_radius": 1},
    )
    rng = np.random.default_rng(1)
    for m in (1, 2, 3, 4, 7, 50, 999, 20_000):
        values = {f"x{i}": rng.uniform(-3, 3, m) for i in range(features)}
        batch = pa.record_batch(
            values | {"days": rng.choice([0.0, 30.0], m), "patient": np.zeros(m, int)}
        )
        gram = statistics_of(study, [counted_alone(batch, "patient")]).gram
        radius, response = int(study.row_radius * GRID), int(study.response_bound * GRID)
        assert sum(gram[i, i] for i in range(study.d)) <= radius**2
        assert gram[-1, -1] <= response**2
        if m <= 50 and bound > 1e-3:
            assert sum(gram[i, i] for i in range(study.d)) > 0.9 * radius**2 * (features > 1)


def test_incomplete_rows_count_among_a_persons_rows():
    rows = table(persons=1, most=1).slice(0, 1)
    broken = rows.set_column(2, "bmi", pa.array([None], pa.float64()))
    alone, with_broken = total(rows), total(pa.concat_tables([rows, broken]))
    assert with_broken.n == 1
    np.testing.assert_allclose(2 * with_broken.floats(), alone.floats(), rtol=1e-4)
    assert total(broken).n == 1
    assert not total(broken).gram.any()


# Every source, any order.


def written(rows: pa.Table, folder, kind: str):
    path = folder / f"rows.{kind}"
    if kind == "csv":
        pa.csv.write_csv(rows, path)
    elif kind == "parquet":
        pq.write_table(rows, path, row_group_size=100)
    else:
        pa.feather.write_feather(rows, path)
    return str(path)


@pytest.mark.parametrize("kind", ["csv", "parquet", "feather"])
def test_files_in_any_order_give_the_same_bits(kind, tmp_path):
    rows = table()
    expected = total(rows)
    shuffled = rows.take(np.random.default_rng(5).permutation(len(rows)))
    (tmp_path / "one").mkdir()
    assert same(total(written(shuffled, tmp_path, kind)), expected)
    halves = [shuffled.slice(300), shuffled.slice(0, 300)]
    paths = []
    for number, half in enumerate(halves):
        folder = tmp_path / str(number)
        folder.mkdir()
        paths.append(written(half, folder, kind))
    assert same(total(paths), expected)


def test_tables_in_memory_give_the_same_bits():
    rows = table()
    expected = total(rows)
    frame = rows.to_pandas()
    assert same(total(frame), expected)
    assert same(total(pl.from_pandas(frame)), expected)
    assert same(total(frame.assign(patient=frame["patient"].astype(str))), expected)
    assert same(total(frame.assign(patient=frame["patient"].astype(float))), expected)
    assert same(total(frame.assign(patient=frame["patient"].astype("category"))), expected)
    assert same(total(dict(zip(rows.column_names, rows.columns, strict=True))), expected)


def test_numbers_in_one_file_and_text_in_another_are_the_same_persons(tmp_path):
    rows = table()
    halves = [rows.slice(0, 300), rows.slice(300)]
    kinds = [pa.int32(), pa.string()]
    for number, (half, kind) in enumerate(zip(halves, kinds, strict=True)):
        cast = half.set_column(4, "patient", half["patient"].cast(kind))
        pq.write_table(cast, tmp_path / f"{number}.parquet")
    assert same(total(str(tmp_path)), total(rows))


def test_numbers_of_both_ends_of_64_bits_are_persons():
    ends = [-(2**63), 2**63 - 1, 0, -1, 1, 2**32, -(2**32)]
    ids = pa.array(ends * 2)
    counted = counted_alone(pa.record_batch({"id": ids}), "id")
    assert counted.column(ROWS).to_pylist() == [2] * 14
    unsigned = counted_alone(pa.record_batch({"id": pa.array([2**64 - 1, 0], pa.uint64())}), "id")
    assert unsigned.column(ROWS).to_pylist() == [1, 1]


def test_an_array_has_the_person_in_its_last_column():
    frame = table().to_pandas()[["age", "bmi", "days", "patient"]]
    features = [{"name": "age", "range": [18, 100]}, {"name": "bmi", "range": [15, 50]}]
    study = agreed(features, person="patient")
    assert same(total(frame.to_numpy(), study), total(frame, study))


@pytest.mark.parametrize("kind", [pa.int64(), pa.string()])
def test_a_table_that_can_be_read_once_is_refused(kind):
    rows = table()
    rows = rows.set_column(4, "patient", rows["patient"].cast(kind))
    reader = pa.RecordBatchReader.from_batches(rows.schema, rows.to_batches())
    with pytest.raises(TableError, match="between two readings"):
        total(reader)


@pytest.mark.parametrize("change", ["more", "fewer", "another", "moved"])
def test_a_table_that_changes_between_the_readings_is_refused(change):
    rows = table()
    ids = rows["patient"].to_pylist()
    other = {
        "more": pa.concat_tables([rows, rows.slice(0, 1)]),
        "fewer": rows.slice(1),
        "another": rows.set_column(4, "patient", pa.array([99_999, *ids[1:]])),
        "moved": rows.set_column(4, "patient", pa.array([ids[1], *ids[1:]])),
    }[change]
    readings = iter([rows, other])
    with pytest.raises(TableError, match="between two readings"):
        total(Table(lambda: iter(next(readings).to_batches())))


# Parquet and Arrow files, whose rows keep their places.


@pytest.mark.parametrize("remembered", [2**24, 150])
def test_a_file_gives_the_same_bits_whether_its_rows_are_remembered_or_looked_up(
    tmp_path, monkeypatch, remembered
):
    """Groups of rows unlike the batches of either reading, and rows without a person."""
    monkeypatch.setattr("tacit.holder.persons.MOST_ROWS", remembered)
    study = agreed(person="patient", missing_person="alone")
    rows = table()
    ids = [None if i % 11 == 0 else f"p{i}" for i in rows["patient"].to_pylist()]
    rows = rows.set_column(4, "patient", pa.array(ids))
    pq.write_table(rows, tmp_path / "visits.parquet", row_group_size=97)
    assert same(total(tmp_path / "visits.parquet", study), total(rows, study))


def test_rows_are_remembered_where_the_table_of_persons_grows(tmp_path, monkeypatch):
    monkeypatch.setattr("tacit.holder.persons.FEWEST_SLOTS", 2**4)
    monkeypatch.setattr("tacit.holder.persons.MANY_SLOTS", 2**5)
    study = agreed(person="patient", missing_person="alone")
    rows = table(persons=3000)
    ids = [None if i % 11 == 0 else i for i in rows["patient"].to_pylist()]
    rows = rows.set_column(4, "patient", pa.array(ids))
    pq.write_table(rows, tmp_path / "visits.parquet", row_group_size=500)
    monkeypatch.setattr("tacit.rows.pieces.MOST_BATCH_ROWS", 300)
    monkeypatch.setattr("tacit.rows.pieces.LEAST_BATCH_ROWS", 300)
    assert same(total(tmp_path / "visits.parquet", study), total(rows, study))


@pytest.mark.parametrize("change", ["written over", "replaced", "fewer", "more"])
def test_a_file_that_changes_between_the_readings_is_refused(tmp_path, change):
    """Also where no length changes: the ids of two persons, exchanged in one row."""
    path = tmp_path / "visits.feather"
    rows = table()
    ids = rows["patient"].to_pylist()
    swapped = rows.set_column(4, "patient", pa.array([ids[1], ids[0], *ids[2:]]))
    pyarrow.feather.write_feather(rows, path, compression="uncompressed")
    size = path.stat().st_size

    batches = batches_of(STUDY, path)
    held = next(batches)
    assert held.num_rows
    if change == "replaced":
        pyarrow.feather.write_feather(rows, tmp_path / "new", compression="uncompressed")
        (tmp_path / "new").rename(path)
    else:
        other = {
            "written over": swapped,
            "fewer": rows.slice(1),
            "more": pa.concat_tables([rows, rows.slice(0, 1)]),
        }[change]
        pyarrow.feather.write_feather(other, path, compression="uncompressed")
    assert (path.stat().st_size == size) == (change in {"written over", "replaced"})
    with pytest.raises(TableError, match="between two readings"):
        list(batches)


# Rows without a person.


def test_rows_without_a_person_are_refused_or_alone():
    rows = table(persons=3, most=2)
    ids = pa.array([None, None, *rows["patient"].to_pylist()[2:]], pa.int64())
    unknown = rows.set_column(4, "patient", ids)
    with pytest.raises(TableError, match="missing_person"):
        total(unknown)
    alone = agreed(person="patient", missing_person="alone")
    named = rows.set_column(4, "patient", pa.array([101, 102, *ids.to_pylist()[2:]]))
    assert same(total(unknown, alone), total(named))


def test_in_a_file_an_empty_cell_and_a_line_out_of_shape_have_no_person(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("age,ward,bmi,days,patient\n50,1,20,3,a\n50,1,20,3,\n50,1,20\n60,2,30,4,a\n")
    alone = agreed(person="patient", missing_person="alone")
    assert total(str(path), alone).n == 3
    with pytest.raises(TableError, match="missing_person"):
        total(str(path))


# The roll.


def test_awkward_ids_are_counted_as_they_are():
    rng = np.random.default_rng(2)
    pool = ["", "a", "a\0", "a\0\0", "A", " a", "ä", "07", "7"]
    pool += ["é" * 40, "x" * 63, "x" * 64, "x" * 65]
    pool += ["".join(map(chr, rng.integers(1, 1000, rng.integers(1, 90)))) for _ in range(500)]
    chosen = [pool[i] for i in rng.integers(0, len(pool), 5000)]
    batch = pa.record_batch({"patient": chosen})
    counted = counted_alone(batch, "patient")
    counts = Counter(chosen)
    assert counted.column(ROWS).to_pylist() == [counts[each] for each in chosen]
    assert counted.column(ONE).to_numpy(zero_copy_only=False).sum() == len(counts)


def test_an_id_that_is_the_digest_of_another_is_a_person_of_its_own():
    long = "x" * 100
    ids = [long, hashlib.sha256(long.encode()).hexdigest()]
    assert repeats(pa.table({"id": ids}).to_batches(), "id") == Repeats(2, 0, 1)


def test_bytes_and_letters_that_are_none_are_ids():
    ids = pa.array([b"\xff\xfe", b"\xff", None, b"\xff"], pa.binary())
    assert repeats(pa.table({"id": ids}).to_batches(), "id") == Repeats(2, 1, 2)


@pytest.mark.parametrize("whole", [True, False])
def test_a_roll_grows_with_persons_and_stays_right(whole):
    rng = np.random.default_rng(0)
    ids = np.concatenate([np.arange(150_000), rng.integers(0, 150_000, 100_000)])
    rng.shuffle(ids)
    roll = Roll("id", whole=whole)
    pieces = [pa.record_batch({"id": part}) for part in np.array_split(ids, 9)]
    for piece in pieces:
        roll.add(piece)
    assert roll.persons == 150_000
    roll.begin()
    rows = [roll.counted(piece).column(ROWS).to_numpy() for piece in reversed(pieces)]
    assert np.array_equal(np.concatenate(rows[::-1]), np.bincount(ids)[ids])
    roll.check_whole()


def test_columns_that_cannot_name_persons_are_refused():
    rows = table().set_column(4, "patient", pa.array([[1]] * len(table()), pa.list_(pa.int64())))
    with pytest.raises(TableError, match="'patient' must hold text or whole numbers"):
        total(rows)
    with pytest.raises(TableError, match="exactly one column named 'patient'"):
        total(table().drop_columns(["patient"]))


# The study.


def test_without_a_person_a_study_keeps_its_hash():
    assert "person" not in PLAIN.document()
    assert Study.from_document(STUDY.document()) == STUDY.resolved()
    assert STUDY.hash != PLAIN.hash


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"person": "age"}, "a column of its own"),
        ({"person": "days"}, "a column of its own"),
        ({"missing_person": "alone"}, "missing_person is for a study with a person"),
        ({"person": "id", "release": {"average": 4}}, "excludes release.average"),
    ],
)
def test_studies_that_cannot_be(fields, sentence):
    with pytest.raises(StudyError, match=sentence):
        agreed(**fields)


def test_a_release_tells_the_number_of_persons_and_nothing_of_the_column(tmp_path):
    rows = table().to_pandas()
    rows["patient"] = "SECRET" + rows["patient"].astype(str)
    release = publish(STUDY, rows, holder="north", ledger=Ledger(tmp_path / "ledger.db"))
    assert release.n == 200
    assert "SECRET" not in release.to_json()
    assert b"SECRET" not in (tmp_path / "ledger.db").read_bytes()


def test_nothing_of_an_id_is_told_when_a_table_is_refused():
    frame = pd.DataFrame({"age": [1], "bmi": [1], "days": [2]})
    frame = frame.assign(ward="SECRET", patient="SECRET")
    with pytest.raises(TableError) as error:
        total(frame)
    assert "SECRET" not in str(error.value)


def test_batches_carry_what_was_counted():
    batch = next(iter(batches_of(STUDY, table())))
    assert batch.schema.names[-2:] == [ROWS, ONE]


# Weights.

WEIGHTED = agreed(weight={"column": "w", "most": 4.0})


def weights(seed=1) -> pa.Table:
    rows = table(most=1)
    rng = np.random.default_rng(seed)
    return rows.append_column("w", pa.array(rng.choice([0.0, 1.0, 2.0, 4.0], len(rows))))


def test_a_row_counts_by_its_weight_and_the_heaviest_as_a_whole_row():
    """With an R that shrinks no row, sums are those of rows times weight over the largest."""
    study = agreed(weight={"column": "w", "most": 4.0}, release={"row_radius": 10.0})
    rows = weights()
    encoder = Encoder(agreed(release={"row_radius": 10.0}))
    block = np.hstack(list(encoder.blocks(rows.combine_chunks().to_batches()[0]))) / GRID
    expected = (block * rows["w"].to_numpy() / 4) @ block.T
    np.testing.assert_allclose(total(rows, study).floats(), expected, rtol=1e-4, atol=1e-3)


def test_rows_of_the_largest_weight_or_more_are_rows_without_weights():
    rows = table(most=1)
    heavy = rows.append_column("w", pa.array([4.0, 1e300] * (len(rows) // 2)))
    assert same(total(heavy, WEIGHTED), total(rows, PLAIN))


@pytest.mark.parametrize("bad", [None, float("nan"), "none", -1.0, 0.0])
def test_a_row_without_a_weight_adds_nothing(bad):
    rows = pa.table(table(most=1).slice(0, 1).to_pydict() | {"w": pa.array([bad])})
    assert total(rows, WEIGHTED).n == 1
    assert not total(rows, WEIGHTED).gram.any()


def test_weights_and_persons_go_together(tmp_path):
    study = agreed(person="patient", weight={"column": "w", "most": 4.0})
    rows = table()
    rows = rows.append_column("w", pa.array(np.random.default_rng(0).uniform(0, 5, len(rows))))
    expected = total(rows, study)
    assert expected.n == 200
    assert same(total(written(rows, tmp_path, "csv"), study), expected)
    assert same(total(written(rows, tmp_path, "parquet"), study), expected)


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"weight": {"column": "age", "most": 4.0}}, "a column of its own"),
        ({"weight": {"column": "w", "most": 4.0}, "intercept": False}, "needs an intercept"),
        ({"weight": {"column": "w", "most": 0.0}}, "above 0"),
    ],
)
def test_weights_that_cannot_be(fields, sentence):
    with pytest.raises(StudyError, match=sentence):
        agreed(**fields)


# Planning, and words.


def test_a_plan_counts_persons():
    from tacit.plan import forecast, persons_of

    assert persons_of(STUDY, [12_000, 8], 4) == [3000, 2]
    with pytest.raises(StudyError, match="study with a person"):
        persons_of(PLAIN, [12_000], 4)
    with pytest.raises(StudyError, match="at least 1"):
        persons_of(STUDY, [12_000], 0.5)
    ours, plain = (forecast(study, [3000], [1.0])[0] for study in (STUDY, PLAIN))
    np.testing.assert_allclose(ours.widths, plain.widths)


def test_words_speak_of_persons_where_the_study_does():
    ours, plain = ({fact.name: fact.sentence for fact in words.facts(s)} for s in (STUDY, PLAIN))
    assert "all rows of a person together" in ours["guarantee"]
    assert "number of persons" in ours["count"]
    assert "a row is taken to be a person" in plain["person"]
    assert "all rows of every person but one" in " ".join(words.attack(1.0, STUDY))
    assert words.telling(STUDY)[-1] == "a row without its 'patient'"


def test_ids_are_scrambled_exactly_and_whatever_stands_beside_them():
    """The longest ids of the largest bytes, with others or alone: sums are exact, modulo 2⁶⁴."""
    texts = [b"\xff" * 63, b"\xff" * 62 + b"\xfe", b"a", b"a\0", b"", b"0b3f9a52-77c1-4e0d"]
    ids = pc.cast(
        pa.array([b"skipped", *texts], pa.binary()),
        options=pc.CastOptions(pa.string(), allow_invalid_utf8=True),
    )[1:]
    scrambler = Scrambler()
    marks, checks = scrambler.marks_and_checks(ids)
    upper = scrambler._upper.astype(np.uint64)
    key = upper << np.uint64(LOWER) | scrambler._lower.astype(np.uint64)
    for number, text in enumerate(texts):
        for kind, held in enumerate((marks, checks)):
            total = int(scrambler._of_length[kind]) * len(text)
            words = np.frombuffer(text + b"\0" * (len(text) % 2), np.uint16)
            total += sum(int(k) * int(word) for k, word in zip(key[:, kind], words, strict=False))
            assert int(held[number]) == total % 2**64 | (kind == 0)
    assert len(set(zip(marks.tolist(), checks.tolist(), strict=True))) == len(texts)
    alone = [scrambler.marks(ids[place : place + 1])[0] for place in range(len(texts))]
    assert alone == marks.tolist()


def test_a_data_set_of_persons_refuses_a_promise_for_rows(tmp_path):
    """A promise for persons also holds for rows, and may be added to one of these."""
    ledger = Ledger(tmp_path / "ledger.db")
    ledger.set_limit("patients", 10.0, 1e-4)
    ledger.set_limit("visits", 10.0, 1e-4)
    rows = table()
    terms = {"holder": "h", "ledger": ledger}
    publish(STUDY, rows, dataset="patients", **terms)
    with pytest.raises(LedgerError, match=r"is of persons, by 'patient'.*nothing was paid"):
        publish(PLAIN, rows, dataset="patients", **terms)
    terms["holder"] = "another"
    publish(PLAIN, rows, dataset="visits", **terms)
    publish(STUDY, rows, dataset="visits", **terms)
    accounts = {account.dataset: account for account in ledger.accounts()}
    assert accounts["patients"].person == "patient"
    assert len(accounts["patients"].charges) == 1
    assert accounts["visits"].person is None
    assert len(accounts["visits"].charges) == 2
