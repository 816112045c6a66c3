"""Collection: releases of one study from distinct holders, checked before they are used.

The batches of a stream are pooled into what reads like one release of their holder.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tacit.analyst.evidence import Evidence
from tacit.analyst.plausibility import check_plausible, doubt_of, refuse_doubted
from tacit.analyst.reading import MANY, Filed, read_many
from tacit.analyst.streams import Batches, Streams
from tacit.errors import ReleaseError, SignatureError
from tacit.release import Release
from tacit.release.document import Published
from tacit.release.log import Entry, LogReader, is_log
from tacit.study import Study
from tacit.study.responses import place_of

TrustedKeys = Mapping[str, str] | Iterable[str]
"""Each holder's public key in base64."""
KEY_LETTERS = 44
MOST_NAMED = 5
"""Holders that a collection's short form names."""


@dataclass(frozen=True)
class Collection:
    """Releases that may be used together; their budgets, and so their noise, may differ."""

    study: Study
    releases: tuple[Release | Filed | Batches, ...]
    left_out: tuple[str, ...] = ()  # implausible releases, by holder, and why

    @cached_property
    def evidence(self) -> Evidence:
        """The releases as arrays, holder by holder."""
        if self.study.visit_count > 1:
            from tacit.analyst.visited import evidence_of

            whole = [one for one in self.releases if not isinstance(one, Filed)]  # every one
            return evidence_of(self.study, whole)
        releases = self.releases
        return Evidence.of(
            self.study,
            [release.noise for release in releases],
            grams=np.array([release.gram for release in releases]),
            moments=np.array([release.moment for release in releases]),
            rows=_column([release.n for release in releases]),
            squares=_column([release.yty for release in releases]),
            eigenvalues=_column([release.smallest_eigenvalue for release in releases]),
        )

    def of_response(self, name: str | None) -> Evidence:
        """The same where that one of the study's responses is asked about."""
        place = place_of(self.study, name)
        if place == 0:
            return self.evidence
        whole = [release for release in self.releases if not isinstance(release, Filed)]  # all
        return replace(
            self.evidence,
            moments=np.array([release.moments[place] for release in whole]),
            squares=_column([None if one.squares is None else one.squares[place] for one in whole]),
        )

    @property
    def absent(self) -> tuple[str, ...]:
        """Holders that the study expects and that are not there; a secure sum is of all of its."""
        there = {release.holder for release in self.releases}
        if self.study.secure_sum is not None:
            return ()
        return tuple(holder for holder in self.study.holders if holder not in there)

    @property
    def unexpected(self) -> tuple[str, ...]:
        """Holders that are there and that the study, which names its holders, does not name."""
        there = [release.holder for release in self.releases]
        expected = self.study.holders
        if self.study.secure_sum is not None or not expected:
            return ()
        named = set(expected)
        return tuple(holder for holder in there if holder not in named)

    def __repr__(self) -> str:
        holders = [release.holder for release in self.releases]
        named = ", ".join(holders[:MOST_NAMED]) + (", …" if len(holders) > MOST_NAMED else "")
        count = "1 release" if len(holders) == 1 else f"{len(holders)} releases"
        return f"<Collection of {count} for {self.study.name!r}: {named}>"

    def _repr_html_(self) -> str:
        """The releases in a table, as a notebook shows them."""
        from tacit.analyst.report.notebook import collection_html

        return collection_html(self)


def collect(
    sources: str | Path | Release | Iterable[str | Path | Release],
    *,
    allow_simulated: bool = False,
    trusted_keys: TrustedKeys | None = None,
    without_implausible: bool = False,
) -> Collection:
    """Collect releases, given as documents, paths or release logs.

    A folder stands for its `.json` and `.json.gz` files and logs (`.log`). A thousand files and
    more are read by several processes, and their numbers alone are kept.

    Signatures are verified where there are any; with `trusted_keys`, as {"north": key} or
    ["north=key"], every release must be signed by its own holder's key. Releases with seeded noise
    are refused unless `allow_simulated`. A release that breaks the study's public bounds is refused
    by name, or left out with `without_implausible`.
    """
    if isinstance(sources, (str, Path, Release)):
        sources = [sources]
    given = _loaded(sources)
    doubts = [
        item.doubt if isinstance(item, Filed) else doubt_of(_document(item)) for item in given
    ]
    if not without_implausible:
        refuse_doubted((_stated(item).holder for item in given), doubts)
    plausible = [item for item, doubt in zip(given, doubts, strict=True) if not doubt]
    streams = Streams()
    for item in plausible:
        if isinstance(item, Entry):
            streams.add(item)
    releases = [item for item in plausible if not isinstance(item, Entry)]
    together: list[Release | Filed | Batches] = [*releases, *streams.summed()]
    check_distinct(together)
    documents = [_stated(item) for item in plausible]
    check_origin(documents, allow_simulated=allow_simulated, trusted_keys=trusted_keys)
    return Collection(
        study=together[0].study,
        releases=tuple(together),
        left_out=tuple(
            f"{_stated(item).holder}: {doubt}"
            for item, doubt in zip(given, doubts, strict=True)
            if doubt
        ),
    )


def _document(item: Release | Entry) -> Release:
    return item.release if isinstance(item, Entry) else item


def _stated(item: Release | Entry | Filed) -> Release | Filed:
    return item if isinstance(item, Filed) else _document(item)


def check_together(
    releases: Sequence[Published], *, allow_simulated: bool, trusted_keys: TrustedKeys | None
) -> None:
    """Refuse documents that may not be used together.

    Such are those of several studies, of one holder twice, implausible, simulated or not trusted.
    """
    check_plausible(releases)
    check_distinct(releases)
    check_origin(releases, allow_simulated=allow_simulated, trusted_keys=trusted_keys)


def check_distinct(releases: Sequence[Published | Filed | Batches]) -> None:
    """Refuse none at all, several studies, and a holder that is there twice."""
    if not releases:
        raise ReleaseError("a collection needs at least one release")
    _check_study(releases)
    _check_holders(releases)
    _check_numbers(releases)


def check_origin(
    releases: Sequence[Published | Filed],
    *,
    allow_simulated: bool,
    trusted_keys: TrustedKeys | None,
) -> None:
    """Refuse simulated documents unless they are allowed.

    Where keys are given, those that their holder did not sign are refused too.
    """
    if not allow_simulated and (
        simulated := [release.holder for release in releases if release.simulated]
    ):
        raise ReleaseError(
            f"the release of {simulated[0]!r} is simulated and protects nobody: "
            "allow it with allow_simulated=True"
        )
    if trusted_keys is not None:
        _check_keys(releases, keys_by_holder(trusted_keys))


def _loaded(sources: Iterable[str | Path | Release]) -> list[Release | Entry | Filed]:
    """All releases, in the order in which they are given."""
    items = [item for source in sources for item in _items(source)]
    files = [item for item in items if isinstance(item, Path)]
    if len(files) < MANY:
        return [one for item in items for one in _read(item)]
    filed = iter(read_many([path for path in files if not is_log(path)]))
    loaded: list[Release | Entry | Filed] = []
    for item in items:
        if isinstance(item, Path) and not is_log(item):
            loaded.append(next(filed))
        else:
            loaded += _read(item)
    return loaded


def _items(source: str | Path | Release) -> Sequence[Release | Path]:
    if isinstance(source, Release):
        return [source]
    if not isinstance(source, (str, Path)):
        raise ReleaseError(
            f"releases are given as documents, paths or release logs; got {type(source).__name__}"
        )
    return release_files(source)


def _read(item: Release | Path) -> Iterable[Release | Entry]:
    if isinstance(item, Release):
        return [item]
    return LogReader(item).entries() if is_log(item) else [Release.load(item)]


def release_files(source: str | Path) -> list[Path]:
    """The files behind a path; a folder stands for its `.json` and `.json.gz` files and logs."""
    place = Path(source)
    if not place.is_dir():
        return [place]
    names = sorted(path.name for path in place.iterdir())
    return [
        *(place / name for name in names if name.endswith((".json", ".json.gz"))),
        *(place / name for name in names if name.endswith(".log") and is_log(place / name)),
    ]


def _check_study(releases: Sequence[Published | Filed | Batches]) -> None:
    first = releases[0]
    for release in releases[1:]:
        if release.relation != first.relation:
            raise ReleaseError(
                f"{release.holder!r} published under {release.relation}, "
                f"{first.holder!r} under {first.relation}: these never mix"
            )
        if release.study_hash != first.study_hash:
            raise ReleaseError(
                f"{release.holder!r} and {first.holder!r} published for different studies: "
                "all must use the same study file"
            )


def _check_holders(releases: Sequence[Published | Filed | Batches]) -> None:
    seen: set[str] = set()
    for release in releases:
        if release.holder in seen:
            raise ReleaseError(
                f"holder {release.holder!r} is there twice: give each holder's release once"
            )
        seen.add(release.holder)


def _check_numbers(releases: Sequence[Published | Filed | Batches]) -> None:
    """Noise never repeats: equal numbers under two names are one release, given twice."""
    seen: dict[int, str] = {}
    for release in releases:
        if not isinstance(release, (Release, Filed)):
            continue
        other = seen.setdefault(hash(release.gram.tobytes()), release.holder)
        if other != release.holder:
            raise ReleaseError(
                f"the releases of {other!r} and {release.holder!r} hold the same numbers: "
                "one of them is a copy under another name"
            )


def keys_by_holder(keys: TrustedKeys) -> dict[str, str]:
    """Each holder's public key, from a mapping or from texts such as "north=KEY"."""
    from tacit.release.signature import check_key  # cryptography is needed for signatures alone

    pairs = dict(keys) if isinstance(keys, Mapping) else dict(map(_named_key, keys))
    for key in pairs.values():
        check_key(key)
    return pairs


def _named_key(text: str) -> tuple[str, str]:
    """Holder and key; a key in base64 ends in an equals sign of its own."""
    holder, equals, key = (
        text[: -KEY_LETTERS - 1],
        text[-KEY_LETTERS - 1 : -KEY_LETTERS],
        text[-KEY_LETTERS:],
    )
    if not holder or equals != "=":
        raise SignatureError(
            f"a trusted key goes with its holder, as north=KEY; got {text[:60]!r}: "
            "`tacit key new` prints the key"
        )
    return holder, key


def _check_keys(releases: Sequence[Published | Filed], trusted: Mapping[str, str]) -> None:
    for release in releases:
        if isinstance(release, Release) and release.study.secure_sum is not None:
            _check_sum(release, trusted)
            continue
        signer = None if release.signature is None else release.signature.public_key
        if release.holder not in trusted:
            raise SignatureError(
                f"no trusted key was given for {release.holder!r}: name it as {release.holder}=KEY"
            )
        if signer != trusted[release.holder]:
            raise SignatureError(
                f"the release of {release.holder!r} is not signed by that holder's trusted key"
            )


def _check_sum(release: Release, trusted: Mapping[str, str]) -> None:
    """A secure sum counts if enough of its holders signed it, each with its trusted key."""
    from tacit.release.attestation import attesting

    for holder, key in attesting(release).items():
        if trusted.get(holder) != key:
            raise SignatureError(
                f"the secure sum is signed by {holder!r} with another key than its trusted one, "
                f"or none was given: name it as {holder}=KEY"
            )


def _column(values: Sequence[float | None]) -> NDArray[np.float64] | None:
    """What every release holds of a part, or none."""
    return None if values[0] is None else np.array(values, dtype=float)
