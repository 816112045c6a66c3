"""Parcel: studies and releases in one signed file, for machines that no network joins.

    {"format": "tacit-parcel", "version": 1, "sender": "analyst", "made": "2026-03-01T09:30:00Z",
     "expects": {"sha256:…": ["north", "south"]},
     "items": [{"name": "study.toml", "kind": "study", "text": "…"}],
     "public_key": "…", "signature": "…"}

A parcel carries documents that Tacit knows and nothing else: what is not a study, a release
or a message of a visit cannot be packed, so no table travels by mistake. `expects` says who is to
publish about a study. A folder of unpacked parcels remembers it, and tells who is still missing.
"""

import base64
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, StringConstraints, ValidationError, model_validator

from tacit import limits
from tacit.errors import ReleaseError, SignatureError, TacitError
from tacit.files import write_whole
from tacit.records import Name, Record, explain, must, now
from tacit.release.places import PlacesRelease
from tacit.release.question import Question
from tacit.release.signature import check_key, is_signed, load_key, public_key
from tacit.release.statistics import Release
from tacit.release.texts import MOST_BYTES as MOST_DOCUMENT_BYTES
from tacit.study import Study
from tacit.study.form import MOST_HOLDERS

MOST_BYTES = limits.PARCEL.letters
MOST_ITEMS = 100
EXPECTED = "expected.json"
Kind = Literal["study", "release", "places", "question"]
FileName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-][A-Za-z0-9._-]{0,150}$")]
PublicKey = Annotated[str, StringConstraints(pattern="^[A-Za-z0-9+/]{43}=$")]


Document = Study | Release | PlacesRelease | Question
Names = Annotated[tuple[Name, ...], Field(strict=False, max_length=MOST_HOLDERS)]
_READERS: Mapping[Kind, Callable[[str], Document]] = {
    "study": Study.from_toml,
    "release": Release.from_json,
    "places": PlacesRelease.from_json,
    "question": Question.from_json,
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
            with path.open("rb") as file:
                text = file.read(MOST_DOCUMENT_BYTES + 1).decode()
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
        f"{str(path)!r} is no study, release or message of a visit: a parcel carries "
        "nothing else, so that no table travels by mistake"
    )


class Parcel(Record):
    """What is carried from one house to another."""

    format: Literal["tacit-parcel"] = "tacit-parcel"
    version: Literal[1] = 1
    sender: FileName
    made: str
    expects: Annotated[dict[str, Names], Field(max_length=MOST_ITEMS)] = Field(default_factory=dict)
    items: Annotated[tuple[Item, ...], Field(strict=False, max_length=MOST_ITEMS)]
    public_key: PublicKey
    signature: str = ""

    @model_validator(mode="after")
    def _check(self) -> Self:
        names = {item.name.casefold() for item in self.items}
        must(len(names) == len(self.items), "items must have different names")
        must(self.sender.casefold() != EXPECTED, f"sender must not be {EXPECTED!r}")
        return self

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
            with path.open("rb") as file:
                content = file.read(MOST_BYTES + 1)
        except OSError as error:
            raise ReleaseError(f"cannot read {str(path)!r}: {error.strerror}") from None
        if len(content) > MOST_BYTES:
            raise ReleaseError(f"{path}: a parcel is at most {MOST_BYTES // 2**20} MB long")
        try:
            limits.PARCEL.check_json(content.decode())
            parcel = cls.model_validate_json(content)
        except (ValidationError, limits.LimitError) as error:
            reason = explain(error) if isinstance(error, ValidationError) else error
            raise ReleaseError(f"{path}: {reason}") from None
        except UnicodeDecodeError:
            raise ReleaseError(f"{path}: a parcel is text in UTF-8, and this is not") from None
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
        if _is_other(path, item.text):
            raise ReleaseError(
                f"{str(path)!r} is there already with other content: unpack into another folder"
            )
    _make(place)
    for item in parcel.items:
        write_whole(place / item.name, item.text)
    _remember(folder, parcel.expects)
    return [place / item.name for item in parcel.items]


def _is_other(path: Path, text: str) -> bool:
    """Whether something else than this text is there."""
    try:
        return path.read_bytes() != text.encode()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ReleaseError(f"cannot make the folder {str(folder)!r}: {error.strerror}") from None


def remember(parcel: Parcel, folder: Path) -> None:
    """Keep in a folder whom a parcel that was sent expects to publish."""
    _make(folder)
    _remember(folder, parcel.expects)


def _remember(folder: Path, expects: Mapping[str, tuple[str, ...]]) -> None:
    known = _expected(folder)
    for study_hash, names in expects.items():
        known[study_hash] = sorted({*known.get(study_hash, []), *names})
    if expects:
        write_whole(folder / EXPECTED, json.dumps(known, indent=2) + "\n")


def _expected(folder: Path) -> dict[str, list[str]]:
    try:
        known = json.loads((folder / EXPECTED).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return known if isinstance(known, dict) else {}


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
        if isinstance(document, Question):
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
