"""Rehearse: rows are read and looked at, and what was seen becomes the record that stays here."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from tacit.holder.encode import Diagnostics, Encoder, refuse_missing
from tacit.holder.paying import Paying
from tacit.holder.persons import Repeats, repeats
from tacit.holder.rehearsal import Column, Lengths, Persons, Rehearsal, Remark, column_of
from tacit.holder.remarks import (
    Said,
    likely_person,
    looks_like_identifiers,
    of_column,
    of_lengths,
    of_persons,
    of_readings,
    of_table,
)
from tacit.holder.tally import Tally
from tacit.holder.watch import NumbersSeen, Watch
from tacit.rows.design import refuse_level
from tacit.rows.reading import Reading
from tacit.rows.table import Table, table_of
from tacit.study import Study
from tacit.study.grid import GRID
from tacit.study.visits import has_places


def seen_by(
    study: Study,
    batches: Iterable[pa.RecordBatch],
    *,
    diagnostics: Diagnostics | None = None,
    on_rows: Callable[[int], None] = lambda _rows: None,
) -> int:
    """Encode record batches and let them go; the diagnostics have seen them. Gives their rows."""
    encoder = Encoder(study, diagnostics)
    rows = 0
    for batch in batches:
        for block in encoder.blocks(batch):
            block.fill(0.0)  # nothing of a row is left behind
        rows += batch.num_rows
        on_rows(batch.num_rows)
    return rows


def _numbers(rows: int) -> list[int]:
    return [rows]


def _from_numbers(_study: Study, numbers: Sequence[int]) -> int:
    return numbers[0]


SEEN = Tally(seen_by, _numbers, _from_numbers, "seen")
"""What a rehearsal adds up: nothing but how many rows there are."""


def opened(source: object, study: Study) -> object:
    """The source as a table, which knows how its files are written; a Spark table as it is."""
    return source if hasattr(source, "mapInArrow") else table_of(source, study)


def persons_of(study: Study, source: object, column: str | None) -> Persons | None:
    """How often persons come back, by a column that tells them apart.

    It is the one that is given, the study's, or that which by its name is likely to be one.
    """
    names = source.columns() if isinstance(source, Table) else tuple(_frame(source).columns)
    column = column or study.person or likely_person(names, study)
    if column is None:
        return None
    counted = _repeats(source, column)
    return Persons(
        column=column,
        persons=counted.persons,
        repeated=counted.repeated,
        most_rows=counted.most_rows,
    )


def _repeats(source: object, column: str) -> Repeats:
    """How often a column's values come back; Spark counts by itself."""
    if not isinstance(source, Table):
        from tacit.holder.spark import repeats_in

        return repeats_in(_frame(source), column)
    alone = source if source.alone is None else source.alone(column)
    return repeats(alone.batches(), column)


def _frame(source: object) -> Any:  # noqa: ANN401
    """A Spark table."""
    return source


def rehearsal_of(
    study: Study,
    source: object,
    paying: Paying,
    diagnostics: Diagnostics,
    *,
    persons: Persons | None = None,
) -> Rehearsal:
    """The record of what was seen, with what it would cost."""
    watch = diagnostics.watch or Watch(study, GRID)
    diagnostics.clamped = diagnostics.clamped or watch.clamped
    readings = source.readings() if isinstance(source, Table) else ()
    columns = _columns(study, watch, diagnostics, readings)
    lengths = None
    if study.visit_count == 1:  # else each question says how long a row may be
        lengths = Lengths(
            radius=study.row_radius,
            longest=study.longest_row,
            shrunk=diagnostics.shrunk,
            counts=tuple(watch.lengths.bins.tolist()),
        )
    said = [
        *of_readings(readings),
        *of_table(study, diagnostics.rows, diagnostics.incomplete),
        *(remark for column in columns for remark in _of_column(study, watch, column)),
        *of_lengths(lengths, diagnostics.rows),
        *of_persons(persons, is_unit=study.person is not None),
    ]
    return Rehearsal(
        study=study,
        holder=paying.charge.holder,
        readings=readings,
        rows=diagnostics.rows,
        incomplete=diagnostics.incomplete,
        columns=columns,
        lengths=lengths,
        persons=persons,
        cost=paying.cost(),
        leaves=tuple(_leaves(study)),
        remarks=tuple(Remark(column, sentence, loud) for column, sentence, loud in said),
    )


def refuse_seen(study: Study, diagnostics: Diagnostics) -> None:
    """Refuse, after all rows were read, what publishing without a watch refuses at once."""
    watch = diagnostics.watch
    for feature in study.features:
        seen = None if watch is None else watch.levels.get(feature.name)
        if seen is not None and seen.unknown and feature.other is None:
            refuse_level(feature.name)
    if study.missing == "refuse" and diagnostics.incomplete:
        refuse_missing()


def _columns(
    study: Study, watch: Watch, diagnostics: Diagnostics, readings: tuple[Reading, ...]
) -> tuple[Column, ...]:
    """What was seen of every column; where rows were added up elsewhere, what was counted there."""
    for name, seen in watch.numbers.items():
        if seen.rows < diagnostics.rows:
            seen.rows = diagnostics.rows
            seen.above = diagnostics.clamped.get(name, 0)
    columns = [
        column_of(feature, watch.numbers.get(feature.name) or watch.levels[feature.name], readings)
        for feature in study.features
    ]
    return (*columns, column_of(study.response, watch.numbers[study.response.name], readings))


def _of_column(study: Study, watch: Watch, column: Column) -> Iterator[Said]:
    feature = next((each for each in study.features if each.name == column.name), None)
    seen = watch.numbers.get(column.name)
    return of_column(
        column,
        refuses=feature is not None and feature.other is None,
        is_numbered=isinstance(seen, NumbersSeen) and looks_like_identifiers(seen),
    )


def _leaves(study: Study) -> Iterator[str]:
    """What the release would hold, in sentences; of several visits, all of them."""
    d = study.d
    if has_places(study):
        yield "sums and squares, with noise, of the response and of every plain numeric column"
    if study.visit_count > 1:
        asked = study.visit_count - has_places(study)
        yield f"{asked} times what follows, of rows as each visit's public question maps them"
    yield f"X'X with noise: {d * (d + 1) // 2:,} sums of products of columns over all rows"
    each = "the response" if study.response_count == 1 else "each response"
    products = d * study.response_count
    yield f"X'y with noise: {products:,} sums of products with {each}"
    if study.response_square:
        yield f"y'y with noise: the sum of {each}'s squares"
    if study.release.smallest_eigenvalue:
        yield "the smallest eigenvalue of X'X, with noise"
    counted = "rows" if study.person is None else "persons"
    yield {
        "exact": f"the number of {counted}, exactly",
        "public": f"the number of {counted}, exactly: it was declared public",
        "noisy": f"the number of {counted}, with noise",
        "withheld": f"nothing of the number of {counted}",
    }[study.count]
    yield "the study, this holder's name, the time, and the ledger's receipt"
    yield "nothing else: no row, no name of a person, nothing of this rehearsal"
