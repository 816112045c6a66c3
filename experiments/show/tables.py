"""Tables as Markdown and as LaTeX, from one list of rows."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Table:
    """Cells are text already; a caption says what they are."""

    name: str
    caption: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]

    def markdown(self) -> str:
        """For the docs: the caption, then the table."""
        lines = [self.head, ["---"] * len(self.head), *self.rows]
        return (
            self.caption
            + "\n\n"
            + "\n".join("| " + " | ".join(line) + " |" for line in lines)
            + "\n"
        )

    def latex(self) -> str:
        """A `tabular` with booktabs rules, in a `table`."""
        body = " \\\\\n".join(" & ".join(map(escaped, row)) for row in self.rows)
        head = " & ".join(map(escaped, self.head))
        return (
            f"\\begin{{table}}\n\\caption{{{escaped(self.caption)}}}\n"
            f"\\begin{{tabular}}{{{'l' * len(self.head)}}}\n\\toprule\n"
            f"{head} \\\\\n\\midrule\n{body} \\\\\n\\bottomrule\n\\end{{tabular}}\n\\end{{table}}\n"
        )

    def save(self, folder: Path) -> None:
        """Both."""
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{self.name}.md").write_text(self.markdown(), encoding="utf-8")
        (folder / f"{self.name}.tex").write_text(self.latex(), encoding="utf-8")


SIGNS = {
    "ε": r"$\varepsilon$",
    "δ": r"$\delta$",
    "μ": r"$\mu$",
    "µ": r"$\mu$",
    "²": "$^2$",
    "√": r"$\surd$",
    "≪": r"$\ll$",
    "≥": r"$\ge$",
    "–": "--",
    "×": r"$\times$",
    "∞": r"$\infty$",
    "−": "$-$",
    "Σ": r"$\Sigma$",
    "θ": r"$\theta$",
}


def escaped(text: str) -> str:
    """For LaTeX."""
    for sign in "\\&%$#_{}":
        text = text.replace(sign, "\\" + sign) if sign != "\\" else text
    text = text.replace("**", "")
    for sign, written in SIGNS.items():
        text = text.replace(sign, written)
    return text


def scientific(value: float) -> str:
    """Three digits: 2.92e-05."""
    return f"{value:.2e}"
