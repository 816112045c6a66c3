"""Chosen: what the form of a study says: which table, how it is written, who publishes and pays."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from tacit.cli.source import Asked, written_as
from tacit.errors import DeskError, TableError

WRITTEN = ("separator", "decimal", "thousands", "encoding", "header", "missing", "sheet", "columns")
"""What may be said of how a table is written; what is left empty is found out."""
OTHER = "+"
"""Chosen in place of a data set that the ledger knows."""


@dataclass(frozen=True)
class Payer:
    """Who publishes, and which data set pays."""

    holder: str
    dataset: str
    new_dataset: bool = False


@dataclass(frozen=True)
class Chosen:
    """The form's fields, as they were sent or as they begin."""

    source: str = ""
    holder: str = ""
    dataset: str = ""
    new_name: str = ""
    written: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, form: Mapping[str, str]) -> "Chosen":
        """What a form says."""
        return cls(
            source=form.get("source", ""),
            holder=form.get("holder", ""),
            dataset=form.get("dataset", ""),
            new_name=form.get("new_name", ""),
            written={name: form[name] for name in WRITTEN if form.get(name, "").strip()},
        )

    def asked(self, asked: Asked) -> Asked:
        """The source, with what is said of how it is written."""
        if not self.written:
            return asked
        said = written_as(
            separator=self._said("separator"),
            missing=self._lines("missing"),
            columns=self._lines("columns"),
            decimal=self._said("decimal"),
            thousands=self._said("thousands"),
            encoding=self._said("encoding"),
            header=self._number("header"),
            sheet=self._said("sheet"),
        )
        return replace(asked, written=said)

    def payer(self) -> Payer:
        """Who publishes, and which data set pays."""
        if self.dataset == OTHER:
            name = self.new_name.strip()
            if not name:
                raise DeskError("give the data set a name, such as patients")
            return Payer(self.holder.strip(), name, new_dataset=True)
        if not self.dataset.startswith("="):
            raise DeskError("say which data set pays")
        return Payer(self.holder.strip(), self.dataset[1:])

    def _said(self, name: str) -> str | None:
        return self.written.get(name, "").strip() or None

    def _lines(self, name: str) -> list[str]:
        lines = self.written.get(name, "").splitlines()
        return [line.strip() for line in lines if line.strip()]

    def _number(self, name: str) -> int | None:
        text = self._said(name)
        if text is None:
            return None
        if not text.isdecimal():
            raise TableError("the line that holds the names is a number, such as 3")
        return int(text)
