"""A table in plain text: what names the rows on the left, numbers flush right."""

from collections.abc import Sequence


def text_table(lines: Sequence[Sequence[str]]) -> str:
    """Lines of cells, heads first, with every column as wide as its widest cell."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(_line(cells, widths) for cells in lines)


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    name = cells[0].ljust(widths[0])
    numbers = [cell.rjust(width) for cell, width in zip(cells[1:], widths[1:], strict=True)]
    return "  ".join([name, *numbers])
