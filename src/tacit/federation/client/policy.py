"""Policy: what a site allows, in a file of its own that no message can change.

    holder = "north"
    data = ["/srv/tacit/patients.parquet"]  # or a database, or a Spark table: see sources.py
    dataset = "patients"
    ledger = "/var/lib/tacit/ledger.db"
    key = "/etc/tacit/north.key"
    approval = true
    least_rows = 100
    studies = ["length-of-stay*", "sha256:…"]
    columns = ["age", "bmi", "days"]

    [most]
    epsilon = 1.0
    delta = 1e-6
    epsilon_in_all = 2.0
    delta_in_all = 1e-6

    [peers]
    south = "6BzF…="

Paths are relative to the file. A study must be named by `studies`, as a hash or a pattern of its
name, and ask for `columns` only; one of the two may be left out, not both. `peers` are the holders
whose public keys this site knows: where it is there, a secure sum is of these alone. Without
`approval` a person is asked all the same about a study that is not named by its hash and either is
a secure sum or could be refused for what rows say (`telling`).
"""

from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Self

from pydantic import Field, StringConstraints, ValidationError, model_validator

from tacit.errors import PolicyError
from tacit.federation.wire import Reason
from tacit.files import read_toml
from tacit.privacy.gaussian import DELTA_RANGE, EPSILON_RANGE
from tacit.records import Name, Record, explain
from tacit.release.signature import load_key, public_key
from tacit.rows.sql import holds_password
from tacit.study import Study
from tacit.study.words import telling

Epsilon = Annotated[float, Field(ge=EPSILON_RANGE[0], le=EPSILON_RANGE[1])]
Delta = Annotated[float, Field(ge=DELTA_RANGE[0], le=DELTA_RANGE[1])]
PublicKey = Annotated[str, StringConstraints(pattern="^[A-Za-z0-9+/]{43}=$")]
SPARK = "spark:"
"""Begins the name of a Spark table among a policy's places of data."""
Names = Annotated[tuple[Name, ...], Field(strict=False, min_length=1)]


class Most(Record):
    """The most that may be spent: on one study, and on all of them together."""

    epsilon: Epsilon
    delta: Delta
    epsilon_in_all: Epsilon
    delta_in_all: Delta


class Policy(Record):
    """A site's policy; see the module's docstring for the file."""

    holder: Name
    data: Names
    query: Annotated[str, StringConstraints(min_length=1, max_length=100_000)] | None = None
    spark_master: Name | None = None
    dataset: Name
    ledger: Name
    key: Name | None = None
    approval: bool = True
    least_rows: Annotated[int, Field(ge=0)] = 0
    studies: Names | None = None
    columns: Names | None = None
    peers: dict[Name, PublicKey] | None = None
    most: Most

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.studies is None and self.columns is None:
            raise ValueError(
                'name studies or columns: a site that takes part in everything says studies = ["*"]'
            )
        databases = [_is_database(place) for place in self.data]
        if any(databases) != (self.query is not None) or (any(databases) and len(databases) > 1):
            raise ValueError(
                "data: a database stands alone and needs a query, such as "
                'query = "select age, days from stays"; files and Spark tables need none'
            )
        tables = [place.startswith(SPARK) for place in self.data]
        if any(tables) and len(tables) > 1:
            raise ValueError('data: a Spark table stands alone, such as ["spark:ward.stays"]')
        if self.spark_master is not None and not any(tables):
            raise ValueError('spark_master: it goes with a Spark table, data = ["spark:…"]')
        if any(databases) and holds_password(self.data[0]):
            raise ValueError(
                "data: an address in a policy must hold no password; put the whole address into "
                'a file that only the site reads, and give data = ["file:/etc/tacit/database"]'
            )
        return self

    @property
    def is_spark(self) -> bool:
        """Whether the rows are those of a Spark table."""
        return self.data[0].startswith(SPARK)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a policy file; its paths become absolute."""
        fields = read_toml(path, "the policy", PolicyError)
        try:
            policy = cls.model_validate(fields)
        except ValidationError as error:
            raise PolicyError(f"{path}: {explain(error)}") from None
        return policy.beside(Path(path).parent)

    def beside(self, folder: Path) -> Self:
        """The same policy with its paths taken from a folder."""
        folder = folder.absolute()
        key = None if self.key is None else str(folder / self.key)
        data = tuple(_placed(place, folder) for place in self.data)
        return self.model_copy(
            update={"ledger": str(folder / self.ledger), "key": key, "data": data}
        )

    @property
    def requests(self) -> Path:
        """The folder, beside the ledger, of requests that a person decides or has decided on."""
        return Path(self.ledger).with_name("requests")

    def asks_a_person(self, study: Study) -> bool:
        """Whether a person must approve: always, or what only a person can judge.

        A refusal for what rows say costs no budget, so whoever may ask for any study could learn by
        it. A secure sum is as private as its other holders are real. A study that the policy names
        by its hash was seen by a person already.
        """
        seen = study.hash in (self.studies or ())
        return self.approval or (
            not seen and (study.secure_sum is not None or bool(telling(study)))
        )

    def objection(self, study: Study) -> Reason:
        """Why a study may not be published here; `Reason.NONE` where nothing speaks against it."""
        asked = set(study.table_names)
        objections = {
            Reason.STUDY: self.studies is not None
            and not any(_names(pattern, study) for pattern in self.studies),
            Reason.COLUMNS: self.columns is not None and not asked <= set(self.columns),
            Reason.EPSILON: study.epsilon > self.most.epsilon,
            Reason.DELTA: study.delta > self.most.delta,
            Reason.COUNT: self.least_rows > 0 and study.count not in {"exact", "public"},
            Reason.PEERS: not self._knows_holders(study),
        }
        return next((reason for reason, holds in objections.items() if holds), Reason.NONE)

    def _knows_holders(self, study: Study) -> bool:
        """Whether the keys in a secure sum are this site's own and, where stated, its peers'."""
        if study.secure_sum is None or self.key is None:
            return True  # without a key the site takes part in no sum
        own = public_key(load_key(self.key))
        known = study.secure_sum.holders if self.peers is None else self.peers
        expected = {**known, self.holder: own}
        return self.holder in study.secure_sum.holders and all(
            expected.get(name) == key for name, key in study.secure_sum.holders.items()
        )


def _is_database(place: str) -> bool:
    return "://" in place or place.startswith(("env:", "file:"))


def _placed(place: str, folder: Path) -> str:
    """A place of data with its path, if it has one, taken from a folder."""
    for kind in ("sqlite:///", "duckdb:///", "file:"):
        if place.startswith(kind):
            return kind + str(folder / place.removeprefix(kind))
    is_file = not _is_database(place) and not place.startswith(SPARK)
    return str(folder / place) if is_file else place


def _names(pattern: str, study: Study) -> bool:
    return (
        study.hash == pattern if pattern.startswith("sha256:") else fnmatchcase(study.name, pattern)
    )
