"""A rehearsal in words, for a screen of eighty columns."""

import textwrap
from collections.abc import Iterator

from tacit.holder.rehearsal import STAYS_HERE, Column, Cost, Rehearsal

WIDTH = 80
BARS = " ▁▂▃▄▅▆▇█"


def words(rehearsal: Rehearsal) -> str:
    """Everything that a person needs to see before paying."""
    lines = [
        *_wrapped(f"Rehearsal; {STAYS_HERE}."),
        "",
        f"study {rehearsal.study.name!r}, holder {rehearsal.holder!r}: {rehearsal.rows:,} rows",
        *_readings(rehearsal),
        "",
        *_columns(rehearsal),
        "",
        *_lengths(rehearsal),
        *_remarks(rehearsal),
        *_cost(rehearsal.cost),
        "",
        "what would leave:",
        *(line for sentence in rehearsal.leaves for line in _item(sentence)),
    ]
    return "\n".join(lines)


def picture(counts: tuple[int, ...]) -> str:
    """Counts as bars of one letter each; what is there at all is seen."""
    top = max((*counts, 1))
    return "".join(BARS[-(-count * (len(BARS) - 1) // top)] for count in counts)


def _readings(rehearsal: Rehearsal) -> Iterator[str]:
    for reading in rehearsal.readings:
        facts = "; ".join(f"{name} {fact}" for name, fact in reading.facts.items())
        yield from _wrapped(f"{reading.name}: {reading.kind}{'; ' if facts else ''}{facts}")


def _columns(rehearsal: Rehearsal) -> Iterator[str]:
    width = min(max(len(column.name) for column in rehearsal.columns), 24)
    for column in rehearsal.columns:
        state = f"{column.present:,} values"
        if column.missing:
            state += f", {column.missing:,} missing"
        if column.unreadable:
            state += f", {column.unreadable:,} no number"
        if column.clamped:
            state += f", {column.clamped:,} outside"
        if column.unknown:
            state += f", {column.unknown:,} not listed"
        yield from _wrapped(f"{column.name:<{width}}  {column.expected}: {state}")
        yield from _shown(column, " " * (width + 2))


def _shown(column: Column, indent: str) -> Iterator[str]:
    if column.kind == "categorical":
        counts = ", ".join(f"{level} {count:,}" for level, count in column.levels)
        yield from _wrapped(indent + counts, indent)
    elif any(column.counts) and column.range is not None:
        low, high = column.range
        yield f"{indent}{low:g} |{picture(column.counts)}| {high:g}"


def _lengths(rehearsal: Rehearsal) -> Iterator[str]:
    lengths = rehearsal.lengths
    if lengths is not None:
        longest = f"{lengths.longest:.3g}; radius {lengths.radius:.3g}"
        yield f"length of rows: 0 |{picture(lengths.counts)}| {longest}"
        yield ""


def _remarks(rehearsal: Rehearsal) -> Iterator[str]:
    for remark in rehearsal.remarks:
        yield from _item(remark.sentence, "! " if remark.loud else "- ")
    if rehearsal.remarks:
        yield ""
    if rehearsal.shouts:
        yield from _wrapped(
            "STOP: look at the lines that begin with an exclamation mark before paying."
        )
        yield ""


def _cost(cost: Cost) -> Iterator[str]:
    yield from _wrapped(
        f"cost: epsilon = {cost.epsilon:g} at delta = {cost.delta:g}, paid by data set "
        f"{cost.dataset!r}; spent so far {cost.spent:.4g} of {cost.limit:g}, "
        f"afterwards {cost.spent_afterwards:.4g}, and {cost.left_afterwards:.4g} would be left"
    )
    yield "nothing was paid"
    if cost.refusal is not None:
        yield from _wrapped(f"but publishing would be refused: {cost.refusal}")


def _item(sentence: str, mark: str = "- ") -> list[str]:
    return _wrapped(mark + sentence, "  ")


def _wrapped(text: str, indent: str = "") -> list[str]:
    return textwrap.wrap(
        text, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )
