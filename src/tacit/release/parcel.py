"""Parcel: studies and releases in one signed file, for machines that no network joins.

    {"format": "tacit-parcel", "version": 1, "sender": "analyst", "made": "2026-03-01T09:30:00Z",
     "expects": {"sha256:…": ["north", "south"]},
     "items": [{"name": "study.toml", "kind": "study", "text": "…"}],
     "public_key": "…", "signature": "…"}

A parcel carries documents that Tacit knows and nothing else: what is not a study, a release or
private scales cannot be packed, so no table travels by mistake. `expects` says who is to publish
about a study. A folder of unpacked parcels remembers it, and tells who is still missing.
"""

import base64
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, StringConstraints, ValidationError

from tacit.errors import ReleaseError, SignatureError, TacitError
from tacit.files import write_whole
from tacit.records import Name, Record, explain, now
from tacit.release.scales import ScalesRelease
from tacit.release.signature import check_key, is_signed, load_key, public_key
from tacit.release.statistics import Release
from tacit.study import Study

MOST_BYTES = 64 * 2**20
EXPECTED = "expected.json"
Kind = Literal["study", "release", "scales"]
FileName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-][A-Za-z0-9._-]{0,150}$")]
PublicKey = Annotated[str, StringConstraints(pattern="^[A-Za-z0-9+/]{43}=$")]


Document = Study | Release | ScalesRelease
_READERS: Mapping[Kind, Callable[[str], Document]] = {
    "study": Study.from_toml,
    "release": Release.from_json,
    "scales": ScalesRelease.from_json,
}


class Item(Record):
    """One document: its file's name, what it is, and its text."""

    name: FileName
    kind: Kind
    text: str

    @classmethod
    def of(cls, path: Path) -> Self:
        """A file as an item; what is no document of Tacit's is refused."""
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            raise ReleaseError(_refusal(path)) from None
        except OSError as error:
            raise ReleaseError(f"cannot read {str(path)!r}: {error.strerror}") from None
        for kind, read in _READERS.items():
            try:
                read(text)
            except TacitError:
                continue
            return cls(name=path.name, kind=kind, text=text)
        raise ReleaseError(_refusal(path))

    def document(self) -> Document:
        """What the text says, read as strictly as a file of its own."""
        return _READERS[self.kind](self.text)


def _refusal(path: Path) -> str:
    return (
        f"{str(path)!r} is no study, release or private scales: a parcel carries nothing else, so "
        "that no table travels by mistake"
    )


class Parcel(Record):
    """What is carried from one house to another."""

    format: Literal["tacit-parcel"] = "tacit-parcel"
    version: Literal[1] = 1
    sender: FileName
    made: str
    expects: dict[str, tuple[Name, ...]] = Field(default_factory=dict)
    items: Annotated[tuple[Item, ...], Field(strict=False)]
    public_key: PublicKey
    signature: str = ""

    @classmethod
    def of(cls, sender: str, files: Iterable[Path], key: Path, expects: Iterable[str] = ()) -> Self:
        """A parcel, signed; with `expects`, each of these publishes about every study in it."""
        private = load_key(key)
        items = tuple(Item.of(path) for path in files)
        names = tuple(sorted(set(expects)))
        studies = [Study.from_toml(item.text) for item in items if item.kind == "study"]
        try:
            parcel = cls(
                sender=sender,
                made=now(),
                expects={study.hash: names for study in studies} if names else {},
                items=items,
                public_key=public_key(private),
            )
        except ValidationError as error:
            raise ReleaseError(f"the parcel: {explain(error)}") from None
        signature = base64.b64encode(private.sign(parcel.canonical())).decode()
        return parcel.model_copy(update={"signature": signature})

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read a parcel and check its signature; a changed one is refused."""
        try:
            content = path.read_bytes()
        except OSError as error:
            raise ReleaseError(f"cannot read {str(path)!r}: {error.strerror}") from None
        if len(content) > MOST_BYTES:
            raise ReleaseError(f"{path}: a parcel is at most {MOST_BYTES // 2**20} MB long")
        try:
            parcel = cls.model_validate_json(content)
        except ValidationError as error:
            raise ReleaseError(f"{path}: {explain(error)}") from None
        check_key(parcel.public_key)
        if not is_signed(parcel.public_key, parcel.signature, parcel.canonical()):
            raise SignatureError(
                f"{path}: its signature does not fit: the parcel was changed on its way, so ask "
                f"{parcel.sender!r} for it again"
            )
        return parcel

    def save(self, path: Path) -> None:
        """Write it whole."""
        write_whole(path, self.model_dump_json(indent=1) + "\n")

    def canonical(self) -> bytes:
        """What is signed: everything but the signature."""
        fields = self.model_dump(mode="json", exclude={"signature"})
        return json.dumps(fields, sort_keys=True, ensure_ascii=True).encode()

    def check_sender(self, trusted: Mapping[str, str]) -> None:
        """Refuse a parcel whose sender is known by another key."""
        known = trusted.get(self.sender)
        if trusted and known != self.public_key:
            raise SignatureError(
                f"the parcel says it is from {self.sender!r}, and is not signed by a key that is "
                "trusted for that name: compare its fingerprint by telephone, or leave it"
            )


@dataclass(frozen=True)
class Standing:
    """Where a study stands in a folder: who has published, and who is missing."""

    study: str
    study_hash: str
    published: tuple[str, ...]
    missing: tuple[str, ...]


def unpack(parcel: Parcel, folder: Path) -> list[Path]:
    """Write a parcel's documents below a folder; one that is there with other content is refused.

    Every document is read first: nothing is written where one of them is not what it says.
    """
    place = folder / parcel.sender
    for item in parcel.items:
        item.document()
        path = place / item.name
        if path.exists() and path.read_text(encoding="utf-8") != item.text:
            raise ReleaseError(
                f"{str(path)!r} is there already with other content: unpack into another folder"
            )
    place.mkdir(parents=True, exist_ok=True)
    for item in parcel.items:
        write_whole(place / item.name, item.text)
    _remember(folder, parcel.expects)
    return [place / item.name for item in parcel.items]


def remember(parcel: Parcel, folder: Path) -> None:
    """Keep in a folder whom a parcel that was sent expects to publish."""
    folder.mkdir(parents=True, exist_ok=True)
    _remember(folder, parcel.expects)


def _remember(folder: Path, expects: Mapping[str, tuple[str, ...]]) -> None:
    known = _expected(folder)
    for study_hash, names in expects.items():
        known[study_hash] = sorted({*known.get(study_hash, []), *names})
    if expects:
        write_whole(folder / EXPECTED, json.dumps(known, indent=2) + "\n")


def _expected(folder: Path) -> dict[str, list[str]]:
    try:
        return dict(json.loads((folder / EXPECTED).read_text(encoding="utf-8")))
    except (OSError, ValueError):
        return {}


def standings(folder: Path) -> list[Standing]:
    """Where every study of which something lies in a folder stands."""
    names: dict[str, str] = {}
    published: dict[str, set[str]] = {}
    for path in sorted(folder.rglob("*")):
        if not path.is_file() or path.name == EXPECTED:
            continue
        try:
            document = Item.of(path).document()
        except TacitError:
            continue
        study = document if isinstance(document, Study) else document.study
        names[study.hash] = study.name
        if isinstance(document, Release):
            published.setdefault(study.hash, set()).add(document.holder)
    expected = _expected(folder)
    return [
        Standing(
            study=names.get(study_hash, "?"),
            study_hash=study_hash,
            published=tuple(sorted(published.get(study_hash, ()))),
            missing=tuple(
                sorted(set(expected.get(study_hash, ())) - published.get(study_hash, set()))
            ),
        )
        for study_hash in sorted({*names, *expected})
    ]
