"""Pictures to files, drawn without a screen."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tacit.errors import TacitError


@contextmanager
def axes(path: Path, rows: int) -> Iterator[Any]:
    """An axes that is saved to `path` when the block ends; tall enough for `rows` lines."""
    if path.suffix not in {".svg", ".png", ".pdf"}:
        raise TacitError(f"a picture's name must end in .svg, .png or .pdf; got {path.name!r}")
    try:
        from matplotlib.figure import Figure
    except ModuleNotFoundError:
        raise TacitError("pictures need matplotlib: pip install 'tacit[plots]'") from None
    figure = Figure(figsize=(8, 1.5 + 0.5 * rows), layout="constrained")
    panel = figure.add_subplot()
    panel.spines[["top", "right"]].set_visible(False)
    yield panel
    try:
        figure.savefig(path, dpi=150)
    except OSError as error:
        raise TacitError(f"cannot write {str(path)!r}: {error.strerror}") from None
