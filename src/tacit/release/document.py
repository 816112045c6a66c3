"""What every published document shares: its provenance, strict reading, layout, whole files.

Rules of the formats: each only grows, by a new version with its own reader; data never names code;
reading is strict, so a field that is missing, extra, not finite or out of shape is refused with its
own sentence.
"""

import gzip
import hashlib
import json
import math
import os
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cache, cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Protocol, Self, cast

import numpy as np
from numpy.typing import NDArray
from pydantic import (
    Field,
    StringConstraints,
    TypeAdapter,
    ValidationError,
    ValidatorFunctionWrapHandler,
    field_validator,
)
from pydantic_core import to_json

from tacit.errors import ReleaseError
from tacit.files import write_whole
from tacit.html import facts_table
from tacit.privacy.sensitivity import Relation
from tacit.records import Name, Positive, Record, explain, must, now
from tacit.release.texts import MOST_BYTES, parse, unzipped
from tacit.study import Study

VERSIONS = (1,)
_LINE = 110
_ORDER = (
    *("format", "version", "study_hash", "study", "holder"),
    *("n", "xtx", "xty", "yty", "further", "smallest_eigenvalue", "columns"),
    *("count", "totals", "squares"),
    *("relation", "epsilon", "delta", "mu", "sensitivity", "multiplier"),
    *("noise_shape", "noise", "lattice", "mechanism", "simulated", "created", "software"),
    *("survivors", "attestation", "batch", "visit", "ledger", "signature"),
)
"""The fields of all kinds of document, in the order in which they are written."""

_STUDIES: dict[bytes, Study] = {}
"""The studies last read, by their text: thousands of releases hold the same one."""
_MOST_STUDIES = 4

_CANONICAL = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
)
_PLAIN = (1e-4, 1e16)
"""Sizes of numbers that everybody writes in the same way, without an exponent."""

_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", re.ASCII)

Lattice = Annotated[int, Field(ge=-200, le=100)]


class Calibrated(Protocol):
    """A mechanism as the documents state it; `noise` records that on each published part."""

    @property
    def mu(self) -> float: ...  # noqa: D102
    @property
    def sensitivity(self) -> float: ...  # noqa: D102
    @property
    def multiplier(self) -> float: ...  # noqa: D102
    @property
    def noise(self) -> object: ...  # noqa: D102
    @property
    def lattice(self) -> int: ...  # noqa: D102


class Signature(Record):
    """Ed25519 signature over the document without it; key and signature in base64."""

    algorithm: Literal["ed25519"]
    public_key: Annotated[str, Field(max_length=100)]
    value: Annotated[str, Field(max_length=200)]


class Receipt(Record):
    """The charge that paid for a document, and the head of the ledger's chain after it."""

    charge: Annotated[int, Field(ge=1, lt=2**63)]
    head: Annotated[str, StringConstraints(pattern=r"^sha256:[0-9a-f]{64}$")]


class Published(Record):
    """A document that leaves a holder, and the fields that every kind of it has."""

    kind: ClassVar[str]
    """What a message calls it."""
    instead: ClassVar[Mapping[str, str]] = {}
    """What is said of a document of another format, where that is likely to be given for it."""
    optional: ClassVar[tuple[str, ...]] = ("ledger",)
    """Fields that are left out of the document where there is nothing to state."""
    numbers: ClassVar[tuple[str, ...]] = ()
    """Fields that are many numbers, and nothing else."""

    format: str
    version: int
    study_hash: str
    study: Study
    holder: Name
    relation: Relation
    epsilon: Positive
    delta: Positive
    mu: Positive
    sensitivity: Positive
    multiplier: Positive
    lattice: Lattice
    mechanism: Name
    simulated: bool
    created: str
    software: Name
    ledger: Receipt | None = None
    signature: Signature | None = None

    @field_validator("study", mode="wrap")
    @classmethod
    def _one_study(cls, given: object, validate: ValidatorFunctionWrapHandler) -> Study:
        """The study, read once for all documents in a row that hold the same one."""
        if not isinstance(given, dict):
            return cast("Study", validate(given))
        text = to_json(given)
        study = _STUDIES.get(text)
        if study is None:
            study = validate(given)
            for old in list(_STUDIES)[: 1 - _MOST_STUDIES]:
                _STUDIES.pop(old, None)  # another thread may have done so
            _STUDIES[text] = study
        return study

    def _check_provenance(self) -> None:
        _check_time(self.created)
        must(
            self.study_hash == self.study.hash,
            "study_hash does not match the study inside the release: one of them was changed",
        )
        must(self.relation == self.study.relation, "relation must be the study's")

    def _check_noise(self, needed: Calibrated, stated: dict[str, float | None]) -> None:
        """The stated noise must be what the study needs for the stated ε and δ.

        No less is private, no more is honest.
        """
        for part, sd in vars(needed.noise).items():
            must(
                _agree(stated[part], sd),
                f"noise.{part} is impossible: the study at this epsilon and delta needs {sd}",
            )
        for field in ("mu", "sensitivity", "multiplier"):
            value = getattr(needed, field)
            must(
                _agree(getattr(self, field), value),
                f"{field} is impossible: the study at this epsilon and delta gives {value:.9g}",
            )
        must(self.lattice <= needed.lattice, "lattice is coarser than the noise allows")

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({self.holder!r} for study {self.study.name!r}: "
            f"epsilon = {self.epsilon:g} at delta = {self.delta:g}, {self.created})"
        )

    __str__ = __repr__

    def _repr_html_(self) -> str:
        """The document as a notebook shows it."""
        title = f"{self.kind.capitalize()} of {self.holder}"
        return facts_table(title, self._facts())

    def _facts(self) -> dict[str, str]:
        """What a reader asks of it first."""
        return {
            "study": f"{self.study.name}, {self.study_hash}",
            "guarantee": f"epsilon = {self.epsilon:g}, delta = {self.delta:g}, {self.relation}",
            "noise": "seeded: it protects nobody" if self.simulated else self.mechanism,
            "signed by": "nobody" if self.signature is None else self.signature.public_key,
            "created": f"{self.created} by {self.software}",
        }

    # The document.

    def document(self) -> dict[str, Any]:
        """The document as plain values."""
        fields = self.model_dump(mode="json") | {"study": self.study.document()}
        stated = [name for name in fields if name not in self.optional or fields[name] is not None]
        return {name: fields[name] for name in sorted(stated, key=_ORDER.index)}

    def paid_by(self, receipt: Receipt) -> Self:
        """The document with the charge that paid for it."""
        return self.model_copy(update={"ledger": receipt})

    def canonical(self) -> bytes:
        """What is signed: the document without its signature, in canonical JSON."""
        return joined(self.canonical_texts())

    def canonical_texts(self) -> dict[str, str]:
        """The text of every field that is signed, in canonical JSON."""
        apart = {"signature", "study", *self.numbers}
        fields = self.model_dump(mode="json", exclude=apart)
        texts = {
            name: canonical_text(value)
            for name, value in fields.items()
            if value is not None or name not in self.optional
        }
        texts["study"] = self.study.canonical
        for name in self.numbers:
            values = getattr(self, name)
            texts[name] = canonical_numbers(values, np.array(values, dtype=float))
        return texts

    @cached_property
    def hash(self) -> str:
        """SHA-256 of what is signed: names the document."""
        return hash_of(self.canonical())

    def to_json(self) -> str:
        """The document as JSON laid out for a reader: what fits on a line stands on a line."""
        return lay_out(self.document()) + "\n"

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """Read a document strictly and, where it is signed, verify the signature."""
        return cls.from_fields(parse(text))

    @classmethod
    def from_fields(cls, fields: dict[str, Any]) -> Self:
        """Validate plain values and, where the document is signed, verify the signature."""
        wanted = cls.model_fields["format"].default
        if fields.get("format") != wanted:
            refusal = f'format must be "{wanted}": this is not a {cls.kind}'
            raise ReleaseError(cls.instead.get(str(fields.get("format")), refusal))
        version = fields.get("version")
        if version not in VERSIONS or type(version) is not int:
            raise ReleaseError(
                f"version must be one of {VERSIONS}: "
                "this release was written by a newer Tacit, or is damaged"
            )
        try:
            document = cls.model_validate(fields)
        except ValidationError as error:
            raise ReleaseError(explain(error)) from None
        if document.signature is not None:
            # cryptography is needed for signed documents alone
            from tacit.release.signature import verify

            verify(document)
        return document

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a file, compressed by gzip or not."""
        text = read_text(path)
        try:
            return cls.from_json(unzipped(text))
        except ReleaseError as error:
            raise type(error)(f"{path}: {error}") from None

    def save(self, path: str | Path) -> None:
        """Write the document, compressed where its name ends in `.gz`.

        The file appears whole or not at all.
        """
        text = self.to_json()
        compressed = Path(path).suffix == ".gz"
        write_whole(path, gzip.compress(text.encode(), mtime=0) if compressed else text)


def read_text(path: str | Path) -> bytes:
    """What a document's file holds, no more than a document may be long."""
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - one of a hundred thousand
            most = MOST_BYTES + 1
            text = file.read(min(os.fstat(file.fileno()).st_size + 1, most))
            return text + file.read(most - len(text))  # of a pipe, whose size nobody knows
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not a valid path"
        raise ReleaseError(f"cannot read the release {str(path)!r}: {reason}") from None


def joined(texts: Mapping[str, str]) -> bytes:
    """Canonical JSON of an object, from that of its fields."""
    parts = [f'"{name}":{texts[name]}' for name in sorted(texts)]
    return ("{" + ",".join(parts) + "}").encode()


def hash_of(canonical: bytes) -> str:
    """What names a document."""
    return "sha256:" + hashlib.sha256(canonical).hexdigest()


def canonical_text(value: object) -> str:
    """A value in canonical JSON; a single number is written as Python does."""
    return repr(value) if type(value) in {int, float} else _CANONICAL.encode(value)


def canonical_numbers(values: Sequence[object], array: NDArray[np.float64]) -> str:
    """Numbers in canonical JSON: quickly where they have no exponent, which writers differ in."""
    sizes = np.abs(array)
    low, high = _PLAIN
    within = sizes.size and sizes.min() >= low and sizes.max() < high
    plain = within or bool(np.all((sizes == 0) | ((sizes >= low) & (sizes < high))))
    return to_json(values).decode() if plain else _CANONICAL.encode(values)


def provenance(mechanism: Calibrated, sampler: str, *, simulated: bool) -> dict[str, Any]:
    """The fields that say under which guarantee, by what and when a document was made."""
    stated = ("relation", "epsilon", "delta", "mu", "sensitivity", "multiplier", "lattice")
    return {field: getattr(mechanism, field) for field in stated} | {
        "mechanism": sampler,
        "simulated": simulated,
        "created": now(),
        "software": _software(),
    }


@cache
def _software() -> str:
    """Name and version of this program; the installed package's record is read once."""
    return f"tacit {version('tacit-dp')}"


def from_steps(steps: int, lattice: int) -> float:
    """A whole number of lattice steps as a float."""
    return float(steps * 2**lattice) if lattice >= 0 else steps / (1 << -lattice)


def _agree(stated: float | None, needed: float | None) -> bool:
    """Whether a stated number is the one that is needed, to a reader's rounding."""
    if stated is None or needed is None:
        return stated is needed
    return math.isclose(stated, needed, rel_tol=1e-6)


def is_time(text: str) -> bool:
    """Whether it is a time as documents state it."""
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return bool(_TIME.fullmatch(text))


def _check_time(text: str) -> None:
    must(is_time(text), "created must be a time in UTC such as 2026-01-31T09:30:00Z")


def check_holder(name: str) -> None:
    """Refuse, before anything is paid, a holder's name that no release could state."""
    try:
        TypeAdapter(Name).validate_python(name, strict=True)
    except ValidationError as error:
        raise ReleaseError(f"holder: {explain(error).removeprefix('the document: ')}") from None


def lay_out(value: Any, indent: str = "") -> str:  # noqa: ANN401
    """Plain values as JSON in which what fits on a line stands on a line."""
    line = json.dumps(value, ensure_ascii=False, allow_nan=False)
    if not isinstance(value, (dict, list)) or (indent and len(line) <= _LINE):
        return line
    inner = indent + "  "
    if isinstance(value, dict):
        items = [
            f"{json.dumps(name, ensure_ascii=False)}: {lay_out(item, inner)}"
            for name, item in value.items()
        ]
        begin, end = "{}"
    elif any(isinstance(item, (dict, list)) for item in value):
        items = [lay_out(item, inner) for item in value]
        begin, end = "[]"
    else:
        return line
    return f"{begin}\n{inner}" + f",\n{inner}".join(items) + f"\n{indent}{end}"
