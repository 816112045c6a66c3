"""Tally: how the batches of a source are added up, wherever its rows lie.

What is published are sums of whole numbers. They are added here, batch after batch, or where the
rows lie: on each of Spark's executors, by the very same function, and the whole numbers of the
parts are added after that. Files are read in pieces, by several processes where that pays.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from tacit.holder.encode import Diagnostics
from tacit.holder.persons import batches_of
from tacit.rows.table import table_of
from tacit.study import Study

Total = TypeVar("Total")
OnRows = Callable[[int], None]
"""Hears how many rows were read, for a progress bar."""


@dataclass(frozen=True)
class Tally(Generic[Total]):
    """How batches add up, and how a total becomes whole numbers, which add up too, and back.

    `add_up(study, batches, diagnostics=None, on_rows=…)`: diagnostics count along, `on_rows` hears
    of each batch's size. A worker knows it by its `name`, and by the text of the `question` that
    maps rows; one without a name is not shared out.
    """

    add_up: Callable[..., Total]
    to_numbers: Callable[[Total], list[int]]
    from_numbers: Callable[[Study, Sequence[int]], Total]
    name: str | None = None
    question: str | None = None


def total_of(
    tally: Tally[Total],
    study: Study,
    source: Any,  # noqa: ANN401
    *,
    diagnostics: Diagnostics | None = None,
    on_rows: OnRows = lambda _rows: None,
) -> Total:
    """What a source's rows add up to: anything `table_of` takes, or a Spark DataFrame.

    Where rows are dealt into groups, or counted by person, the table is read in one piece.
    """
    if hasattr(source, "mapInArrow"):
        from tacit.holder.spark import total_of_partitions

        return total_of_partitions(tally, study, source, diagnostics=diagnostics, on_rows=on_rows)
    table = table_of(source, study)
    if table.files is not None and study.person is None and study.release.average == 1:
        from tacit.holder.pieces import total_of_pieces

        return total_of_pieces(tally, study, table, diagnostics=diagnostics, on_rows=on_rows)
    return tally.add_up(study, batches_of(study, table), diagnostics=diagnostics, on_rows=on_rows)
