"""Invitation and reply: the one file that goes to a site, and the one that comes back.

An invitation holds nothing secret: where the server is, its certificate authority and the study.
The policy is not in it, but made at the site by the site's own Tacit.

A reply holds a site's two public keys, and is signed with the second; that
they are this site's, people find out by reading a fingerprint to each other.
"""

import base64
import hashlib
import json
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import StringConstraints, ValidationError

from tacit.errors import FederationError
from tacit.federation.keys import fingerprint
from tacit.files import write_whole
from tacit.records import Record, explain
from tacit.release.parcel import PublicKey
from tacit.release.signature import is_signed, load_key, public_key
from tacit.study import Study

MOST_BYTES = 2**21
Holder = Annotated[str, StringConstraints(pattern="^[A-Za-z0-9_-]{1,100}$")]
Address = Annotated[
    str, StringConstraints(pattern=r"^([A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\]):[0-9]{1,5}$")
]
Certificate = Annotated[
    str, StringConstraints(pattern="^-----BEGIN CERTIFICATE-----[\nA-Za-z0-9+/= -]*$")
]
NodeKey = Annotated[str, StringConstraints(pattern="^ecdsa-sha2-nistp384 [A-Za-z0-9+/=]{1,400}$")]


class _Letter(Record):
    """A small JSON file that one person sends to another."""

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read one; what else a file may hold is refused."""
        try:
            with Path(path).open("rb") as file:
                content = file.read(MOST_BYTES + 1)
        except OSError as error:
            raise FederationError(f"cannot read {str(path)!r}: {error.strerror}") from None
        if len(content) > MOST_BYTES:
            raise FederationError(f"{path}: such a file is at most {MOST_BYTES // 2**20} MB long")
        try:
            return cls.model_validate_json(content)
        except ValidationError as error:
            raise FederationError(f"{path}: {explain(error)}") from None

    def save(self, path: Path) -> None:
        """Write it whole."""
        write_whole(path, self.model_dump_json(indent=2) + "\n")


class Invitation(_Letter):
    """What a site needs to join."""

    format: Literal["tacit-invitation"] = "tacit-invitation"
    version: Literal[1] = 1
    holder: Holder
    address: Address
    authority: Certificate
    study: str

    def agreement(self) -> Study:
        """The study that the site is invited to."""
        return Study.from_toml(self.study)

    @property
    def fingerprint(self) -> str:
        """The authority's certificate as people read it out."""
        return fingerprint(base64.b64encode(self.authority.encode()).decode())


class Reply(_Letter):
    """A site's public keys."""

    format: Literal["tacit-reply"] = "tacit-reply"
    version: Literal[1] = 1
    holder: Holder
    node_key: NodeKey
    sign_key: PublicKey
    signature: str

    @classmethod
    def of(cls, holder: str, node_key: str, key: Path) -> Self:
        """A reply, signed with the key that will sign releases."""
        private = load_key(key)
        public = public_key(private)
        text = _statement(holder, node_key, public)
        signature = base64.b64encode(private.sign(text)).decode()
        return cls(holder=holder, node_key=node_key, sign_key=public, signature=signature)

    def check(self) -> None:
        """Refuse a reply that was changed on its way."""
        text = _statement(self.holder, self.node_key, self.sign_key)
        if not is_signed(self.sign_key, self.signature, text):
            raise FederationError(
                f"the reply of {self.holder!r} is not signed by the key in it: it was changed on "
                "its way, so ask for it again"
            )

    @property
    def fingerprint(self) -> str:
        """Both keys as people read them out."""
        digest = hashlib.sha256(_statement(self.holder, self.node_key, self.sign_key)).digest()
        return fingerprint(base64.b64encode(digest).decode())


def _statement(holder: str, node_key: str, sign_key: str) -> bytes:
    return json.dumps(["tacit reply", holder, node_key, sign_key]).encode()
