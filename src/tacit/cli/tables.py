"""Tables of text for a terminal."""


def text_table(rows: list[list[str]], *, right: bool) -> str:
    """Cells in columns of their own width: the first to the left, the others as asked."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for first, *others in rows:
        cells = [first.ljust(widths[0])]
        for cell, width in zip(others, widths[1:], strict=True):
            cells.append(cell.rjust(width) if right else cell.ljust(width))
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)
