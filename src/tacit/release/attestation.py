"""Attestation: what the holders of a secure sum signed about it.

No holder sees the sum before it is published, so none can sign its numbers. What each can say
honestly, and signs in the agreement round, is: in this session of this study I masked my share for
just these `sharers`, I sent the vector with this digest, and was told that these others stayed and
sent vectors with those digests. The digests bind the sum: whoever has the masked vectors, which
are no secret, can see that they are the ones that were signed.
"""

import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Annotated

from pydantic import Field, StringConstraints

from tacit.errors import SignatureError
from tacit.records import Name, Record, must

if TYPE_CHECKING:
    from tacit.release.places import PlacesRelease
    from tacit.release.statistics import Release
    from tacit.study.form import SecureSum

Digest = Annotated[str, StringConstraints(pattern="^[0-9a-f]{64}$")]
Names = Annotated[tuple[Name, ...], Field(strict=False, max_length=1000)]


class Attestation(Record):
    """Who gave shares, the digest of each survivor's masked vector, and survivors' signatures."""

    session: Annotated[str, StringConstraints(pattern="^[0-9a-f]{32}$")]
    sharers: Names
    vectors: Annotated[dict[Name, Digest], Field(max_length=1000)]
    signatures: Annotated[
        dict[Name, Annotated[str, Field(max_length=200)]], Field(min_length=1, max_length=1000)
    ]

    def check(self, agreed: "SecureSum | None", survivors: int | None) -> None:
        """Refuse what does not fit the sum; whether it is signed, `attesting` finds out."""
        stayed = set(self.vectors)
        must(len(stayed) == survivors, "attestation must name as many as stayed")
        must(
            agreed is not None
            and set(self.signatures) <= stayed <= set(self.sharers)
            and set(self.sharers) <= set(agreed.holders),
            "attestation must name holders of the study, who gave shares, stayed and signed",
        )


def statement(*parts: str | Iterable[str]) -> bytes:
    """What is signed: an unambiguous text of its parts; of a list the order does not count."""
    return json.dumps(
        [part if isinstance(part, str) else sorted(part) for part in parts], ensure_ascii=False
    ).encode()


def stay_statement(
    subject: str, session: str, sharers: Iterable[str], vectors: Mapping[str, str]
) -> bytes:
    """What a holder signs of who gave shares, who stayed, and what each of those sent."""
    sent = [f"{digest} {name}" for name, digest in vectors.items()]
    return statement("tacit sum stay", subject, session, sharers, sent)


def subject_of(study_hash: str, visit: int, opening: str, question: str) -> str:
    """What holders sign for in a sum of several visits: the study, and which visit and question.

    A later visit names the session of the first one, `opening`, and its question's hash.
    """
    return "/".join(part for part in (study_hash, f"visit-{visit}", opening, question) if part)


def check_sum(document: "PlacesRelease | Release") -> None:
    """Refuse a document that says of a secure sum what its study does not."""
    agreed = document.study.secure_sum
    survivors = document.survivors
    must(
        (survivors is None) == (agreed is None),
        "survivors must be there exactly in a secure sum",
    )
    if document.attestation is not None:
        document.attestation.check(agreed, survivors)
    if agreed is None or survivors is None:
        return
    must(
        agreed.least <= survivors <= len(agreed.holders),
        "survivors must be as many as the study allows",
    )
    must(
        (document.epsilon, document.delta) == (document.study.epsilon, document.study.delta),
        "epsilon and delta must be the study's in a secure sum",
    )


def attesting(release: "PlacesRelease | Release") -> dict[str, str]:
    """The holders who signed a secure sum, with the keys that the study names for them.

    Of several visits every one must be signed. Raises where a signature does not verify, or fewer
    signed than unmasking needs. Whether the keys are those of the holders, the reader must know.
    """
    agreed = release.study.secure_sum
    signers: dict[str, str] = {}
    for subject, attestation in release.attested:
        if agreed is None or attestation is None:
            raise SignatureError(f"the release of {release.holder!r} is not signed by its holders")
        signers |= _signing(agreed, subject, attestation)
    return signers


def _signing(agreed: "SecureSum", subject: str, attestation: Attestation) -> dict[str, str]:
    """Who signed the sum of one sitting."""
    from tacit.release.signature import is_signed  # cryptography is needed for signatures alone

    text = stay_statement(subject, attestation.session, attestation.sharers, attestation.vectors)
    for name, signature in attestation.signatures.items():
        if not is_signed(agreed.holders[name], signature, text):
            raise SignatureError(f"the signature of {name!r} on the secure sum does not verify")
    if len(attestation.signatures) < agreed.threshold:
        raise SignatureError(
            f"the secure sum is signed by {len(attestation.signatures)} holders, "
            f"and {agreed.threshold} must agree"
        )
    return {name: agreed.holders[name] for name in attestation.signatures}
