"""What every published document shares: who made it under which guarantee, strict reading, layout, whole files.

Rules of the formats: each only grows, by a new version with its own reader; data never names code; reading is
strict, so a field that is missing, extra, not finite or out of shape is refused with its own sentence.
"""

import hashlib
import json
import math
import os
import re
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO, ClassVar, Literal, NoReturn, Protocol, Self

from pydantic import Field, TypeAdapter, ValidationError

from tacit.columns import Document, Name, explain
from tacit.errors import ReleaseError

if TYPE_CHECKING:
    from tacit.privacy.sensitivity import Relation
    from tacit.study import Study

VERSIONS = (1,)
MOST_BYTES = 32 * 2**20
"""Longest document that is read: 512 columns need about 7 MB."""

_LINE = 110

Number = Annotated[float, Field(allow_inf_nan=False)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Lattice = Annotated[int, Field(ge=-200, le=100)]


class Calibrated(Protocol):
    """A mechanism as the documents state it; `scales` is a record of the noise on each published part."""

    @property
    def mu(self) -> float: ...  # noqa: D102
    @property
    def sensitivity(self) -> float: ...  # noqa: D102
    @property
    def multiplier(self) -> float: ...  # noqa: D102
    @property
    def scales(self) -> object: ...  # noqa: D102
    @property
    def lattice(self) -> int: ...  # noqa: D102


class Signature(Document):
    """Ed25519 signature over the document without it; key and signature in base64."""

    algorithm: Literal["ed25519"]
    public_key: Annotated[str, Field(max_length=100)]
    value: Annotated[str, Field(max_length=200)]


class Published(Document):
    """A document that leaves a holder. Each kind states all its fields itself, in their order; every kind has these."""

    kind: ClassVar[str]
    """What a message calls it."""

    if TYPE_CHECKING:
        format: str
        study_hash: str
        study: Study
        holder: str
        relation: Relation
        epsilon: float
        delta: float
        lattice: int
        simulated: bool
        created: str
        signature: Signature | None

    def _check_provenance(self) -> None:
        _check_time(self.created)
        must(self.study_hash == self.study.hash, "study_hash does not match the study inside the release: one of them was changed")
        must(self.relation == self.study.relation, "relation must be the study's")

    def _check_noise(self, needed: Calibrated, stated: dict[str, float | None]) -> None:
        """The stated noise must be what the study needs for the stated ε and δ: no less is private, no more is honest."""
        for part, sd in vars(needed.scales).items():
            noise = stated[part]
            must(
                (sd is None) == (noise is None) and (sd is None or noise is None or math.isclose(noise, sd, rel_tol=1e-6)),
                f"noise.{part} is impossible: the study at this epsilon and delta needs {sd}",
            )
        for field in ("mu", "sensitivity", "multiplier"):
            must(
                math.isclose(getattr(self, field), getattr(needed, field), rel_tol=1e-6),
                f"{field} is impossible: the study at this epsilon and delta gives {getattr(needed, field):.9g}",
            )
        must(self.lattice <= needed.lattice, "lattice is coarser than the noise allows")

    # The document.

    def document(self) -> dict[str, Any]:
        """The document as plain values."""
        document = self.model_dump(mode="json")
        document["study"] = self.study.document()
        return document

    def canonical(self) -> bytes:
        """What is signed: the document without its signature, in canonical JSON."""
        document = self.document()
        del document["signature"]
        return json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()

    @cached_property
    def hash(self) -> str:
        """SHA-256 of what is signed: names the document."""
        return "sha256:" + hashlib.sha256(self.canonical()).hexdigest()

    def to_json(self) -> str:
        """The document as JSON laid out for a reader: what fits on a line stands on a line."""
        return _lay_out(self.document()) + "\n"

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """Read a document strictly and, where it is signed, verify the signature."""
        return cls.from_fields(parse(text))

    @classmethod
    def from_fields(cls, fields: dict[str, Any]) -> Self:
        """Validate the plain values of a document and, where it is signed, verify the signature."""
        wanted = cls.model_fields["format"].default
        if fields.get("format") != wanted:
            message = f'format must be "{wanted}": this is not a {cls.kind}'
            raise ReleaseError(message)
        version = fields.get("version")
        if version not in VERSIONS or not isinstance(version, int) or isinstance(version, bool):
            message = f"version must be one of {VERSIONS}: this release was written by a newer Tacit, or is damaged"
            raise ReleaseError(message)
        try:
            document = cls.model_validate(fields)
        except ValidationError as error:
            raise ReleaseError(explain(error)) from None
        if document.signature is not None:
            from tacit.signature import verify  # cryptography is needed for signed documents alone

            verify(document)
        return document

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a file."""
        try:
            with Path(path).open("rb") as file:
                text = file.read(MOST_BYTES + 1)
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else "not a valid path"
            message = f"cannot read the release {str(path)!r}: {reason}"
            raise ReleaseError(message) from None
        try:
            return cls.from_json(text)
        except ReleaseError as error:
            message = f"{path}: {error}"
            raise type(error)(message) from None

    def save(self, path: str | Path) -> None:
        """Write the document; the file appears whole or not at all."""
        write_whole(path, self.to_json())


def now() -> str:
    """The time as ledger and releases state it."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def provenance(mechanism: Calibrated, sampler: str, *, simulated: bool) -> dict[str, Any]:
    """The fields that say under which guarantee, by what and when a document was made."""
    stated = ("relation", "epsilon", "delta", "mu", "sensitivity", "multiplier", "lattice")
    return {field: getattr(mechanism, field) for field in stated} | {
        "mechanism": sampler,
        "simulated": simulated,
        "created": now(),
        "software": f"tacit {version('tacit')}",
    }


def must(holds: bool, rule: str) -> None:  # noqa: FBT001
    """Refuse a document, while it is validated, that breaks a rule."""
    if not holds:
        raise ValueError(rule)


def _check_time(text: str) -> None:
    try:
        written = re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", text, re.ASCII) and datetime.strptime(text, "%Y-%m-%dT%H:%M:%S%z")
    except ValueError:
        written = None
    must(bool(written), "created must be a time in UTC such as 2026-01-31T09:30:00Z")


def check_holder(name: str) -> None:
    """Refuse, before anything is paid, a holder's name that no release could state."""
    try:
        TypeAdapter(Name).validate_python(name, strict=True)
    except ValidationError as error:
        message = f"holder: {explain(error).removeprefix('the document: ')}"
        raise ReleaseError(message) from None


def write_whole(path: str | Path, content: str | bytes, *, mode: int = 0o644) -> None:
    """Write a file under a temporary name beside its place, make it durable, and move it there."""
    with whole_file(path, mode=mode) as file:
        file.write(content.encode() if isinstance(content, str) else content)


@contextmanager
def whole_file(path: str | Path, *, mode: int = 0o644) -> Iterator[BinaryIO]:
    """A file to write to under a temporary name beside its place; at the end it is made durable and moved there."""
    path = Path(path)
    try:
        descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:100]}.", suffix=".part")
        try:
            with os.fdopen(descriptor, "wb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            Path(temporary).chmod(mode)
            Path(temporary).replace(path)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not a valid path"
        message = f"cannot write {str(path)!r}: {reason}"
        raise ReleaseError(message) from None


def refuse_unwritable(path: str | Path) -> None:
    """Find out before anything is paid that a release could not be written there."""
    path = Path(path)
    try:
        writable = not path.is_dir() and path.parent.is_dir() and os.access(path.parent, os.W_OK)
    except (OSError, ValueError):  # a name too long, a folder that may not be entered
        writable = False
    if not writable:
        message = f"cannot write {str(path)!r}: its folder must exist and be writable"
        raise ReleaseError(message)


def refuse_overwriting(out: str | Path, read: Iterable[str | Path]) -> None:
    """Find out before anything is done that what would be written is also what is read, or a ledger or key in use."""
    if Path(out).resolve() in {Path(path).resolve() for path in read}:
        message = f"--out {str(out)!r} would overwrite what is read: choose another"
        raise ReleaseError(message)


def _lay_out(value: Any, indent: str = "") -> str:  # noqa: ANN401
    line = json.dumps(value, ensure_ascii=False, allow_nan=False)
    if not isinstance(value, (dict, list)) or (indent and len(line) <= _LINE):
        return line
    inner = indent + "  "
    if isinstance(value, dict):
        items = [f"{json.dumps(name, ensure_ascii=False)}: {_lay_out(item, inner)}" for name, item in value.items()]
        return "{\n" + inner + f",\n{inner}".join(items) + f"\n{indent}" + "}"
    if not any(isinstance(item, (dict, list)) for item in value):
        return line
    return "[\n" + inner + f",\n{inner}".join(_lay_out(item, inner) for item in value) + f"\n{indent}]"


def parse(text: str | bytes) -> dict[str, Any]:
    """A JSON object with finite numbers and no field twice."""
    if len(text) > MOST_BYTES:
        message = f"a release is at most {MOST_BYTES // 2**20} MB long"
        raise ReleaseError(message)
    try:
        fields = json.loads(text, parse_constant=_not_finite, parse_float=_finite, object_pairs_hook=_unique)
    except (ValueError, RecursionError):
        message = "the release is not valid JSON"
        raise ReleaseError(message) from None
    if not isinstance(fields, dict):
        message = "a release must be a JSON object"
        raise ReleaseError(message)
    return fields


def _not_finite(constant: str) -> NoReturn:
    message = f"a release holds finite numbers only, not {constant}"
    raise ReleaseError(message)


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        _not_finite(text[:20])
    return number


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        message = "a release must not name a field twice"
        raise ReleaseError(message)
    return fields
