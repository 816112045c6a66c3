"""Fill the tables of the documentation from what the benchmarks recorded.

A page says `<!-- bench:NAME TABLE -->` and, below the table, `<!-- end -->`: what stands between is
the table TABLE of `benchmarks/results/NAME.json`, as Markdown. `where COLUMN=VALUE` after the
table's name keeps the rows that have it, and leaves the column out. A table that no benchmark has
recorded yet stays as it is.

    python docs/figures.py
"""

import json
import re
from pathlib import Path

HERE = Path(__file__).parent
RESULTS = HERE.parent / "benchmarks" / "results"
PAGES = sorted([*HERE.glob("*.md"), HERE.parent / "README.md"])
MARKER = re.compile(
    r"^<!-- bench:(?P<bench>[\w-]+) (?P<table>[\w -]+?)"
    r"(?: where (?P<column>\w+)=(?P<value>\S+))? -->\n"
    r"(?P<body>.*?)^<!-- end -->$",
    re.MULTILINE | re.DOTALL,
)


def markdown(columns: list[str], rows: list[list[str]]) -> str:
    """A table as Markdown."""
    lines = [columns, ["---"] * len(columns), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def table_of(marker: re.Match[str]) -> str:
    """What a marker and its table become."""
    path = RESULTS / f"{marker['bench']}.json"
    if not path.exists():
        return marker[0]
    table = json.loads(path.read_text(encoding="utf-8"))["tables"].get(marker["table"])
    if table is None:  # recorded without the option that makes it
        return marker[0]
    columns: list[str] = table["columns"]
    rows: list[list[str]] = table["rows"]
    if marker["column"]:
        place = columns.index(marker["column"])
        chosen = [row for row in rows if row[place] == marker["value"]]
        rows = [[*row[:place], *row[place + 1 :]] for row in chosen]
        columns = [*columns[:place], *columns[place + 1 :]]
    begin = marker[0].split("\n", 1)[0]
    return f"{begin}\n{markdown(columns, rows)}<!-- end -->"


def filled(text: str) -> str:
    """A page with its tables as they were recorded."""
    return MARKER.sub(table_of, text)


def main() -> None:
    """Rewrite every page whose figures have changed."""
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        if (new := filled(text)) != text:
            page.write_text(new, encoding="utf-8")
            print(f"filled {page.name}")  # noqa: T201 - a script that says what it did


if __name__ == "__main__":
    main()
