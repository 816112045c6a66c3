"""docs/paper.md: the tables and figures that are there, put into `page.md` beside this file.

`docs/paper/` keeps one small file per table and figure, so that one experiment can be run again and
the page refreshed without the others.
"""

import re
import shutil
from pathlib import Path

from experiments.show.figures import save
from experiments.show.graph import model_figure

TEMPLATE = Path(__file__).with_name("page.md")
DOCS = Path(__file__).parents[2] / "docs"
_PLACE = re.compile(r"\{\{ (table|figure) ([a-z-]+) \}\}")
_MISSING = "Not run yet: `python -m experiments {name}`."


def write_page(out: Path, docs: Path = DOCS) -> Path:
    """Take over what OUT holds, and write the page."""
    kept = docs / "paper"
    kept.mkdir(parents=True, exist_ok=True)
    for source in [*(out / "tables").glob("*.md"), *(out / "figures").glob("*.svg")]:
        shutil.copyfile(source, kept / source.name)
    if not (kept / "model.svg").exists():
        save(model_figure(), kept, "model", kinds=("svg",), letters="path")
    page = docs / "paper.md"
    page.write_text(
        _PLACE.sub(
            lambda place: filled(kept, place[1], place[2]), TEMPLATE.read_text(encoding="utf-8")
        ),
        encoding="utf-8",
    )
    return page


def filled(kept: Path, kind: str, name: str) -> str:
    """A table's text, or a link to a figure."""
    path = kept / (f"{name}.md" if kind == "table" else f"{name}.svg")
    if not path.exists():
        return _MISSING.format(name=name.split("-", maxsplit=1)[0])
    return (
        path.read_text(encoding="utf-8").rstrip()
        if kind == "table"
        else f"![{name.replace('-', ' ')}](paper/{path.name})"
    )
