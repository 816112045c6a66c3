"""The server's side of a secure sum: five rounds with the holders, then the sum as one release.

The server sees masked vectors and shares of secrets, and learns the sum of those who stayed. Who
drops out after giving shares is made up for; with fewer than the study's `least` in a round,
holders unmask nothing.

An attempt that fails before anybody was asked for a vector has cost nobody anything, so another
begins at once, in a session of its own, with those who are there. One that fails later is not
tried again by itself: a new session is charged anew, and that is for people to decide.
"""

import json
import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from flwr.app import RecordDict
from flwr.serverapp import Grid

from tacit import limits
from tacit.errors import FederationError
from tacit.federation.secure_sum import masks
from tacit.federation.secure_sum.masks import SumError
from tacit.federation.secure_sum.statements import digest, is_own_key
from tacit.federation.server.ask import Patience, Question, Standing, ask
from tacit.federation.wire import Round, Step, step_request
from tacit.release.attestation import Attestation, stay_statement
from tacit.study import SecureSum
from tacit.study.toml import study_toml
from tacit.visits.sitting import Message, Sitting

MOST_ATTEMPTS = 3
"""Sessions that one run begins, as long as they cost nothing."""
LARGEST = 2**112
"""No sum of statistics comes near it, and what is still masked hardly ever stays below."""
Told = dict[str, Any]
"""A holder's document of one round."""


@dataclass(frozen=True)
class Unmasking:
    """What the masks of a sum are made from: who stayed and who did not, keys, and shares."""

    session: str
    threshold: int
    survivors: list[str]
    gone: list[str]
    keys: Mapping[str, str]
    told: Mapping[str, Told]

    def masks(self, length: int) -> masks.Vector:
        """All that masks the sum: survivors' own masks, and those shared with who is gone."""
        total = [0] * length
        for name in self.survivors:
            seed = masks.decode(self._secret("seeds", name))
            total = masks.add(total, masks.mask(seed, length))
        others = {name: self.keys[name] for name in self.survivors}
        for name in self.gone:
            private = self._secret("keys", name)
            if masks.public_of(private) != self.keys[name]:
                raise SumError(f"secure sum: shares of the key of {name!r} do not fit together")
            shared = masks.pairwise(private, others, name, self.session, length)
            total = masks.add(total, masks.negative(shared))
        return total

    def _secret(self, kind: str, name: str) -> str:
        helpers = list(self.told.values())[: self.threshold]
        return masks.joined([helper[kind][name] for helper in helpers])


class TooFewError(FederationError):
    """Too few holders came through a round."""


@dataclass
class Sum:
    """A secure sum under way: one session with the holders behind the nodes of a grid.

    `before` is the sum of the visit before, where there was one. `names` are holders' as their
    signatures prove them, and `known` what is believed before.
    `missing` are holders of the study that did not come through the last round, with the reason,
    and `paid` those who sent a masked vector in the last session.
    """

    grid: Grid
    sitting: Sitting
    patience: Patience
    before: Message | None = None
    on_change: Callable[[Standing[Told]], None] = lambda _standing: None
    session: str = field(default_factory=lambda: secrets.token_hex(16))
    known: Mapping[int, str] = field(default_factory=dict)
    names: dict[int, str] = field(default_factory=dict)
    standings: dict[int, Standing[Told]] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)
    paid: tuple[str, ...] = ()
    _asked_for_vectors: bool = False

    @property
    def agreed(self) -> SecureSum:
        """What the study says of its sum."""
        if self.sitting.study.secure_sum is None:
            raise FederationError("the study has no secure_sum")
        return self.sitting.study.secure_sum

    def run(self) -> Message:
        """The sum of those who stayed; tried again as long as an attempt has cost nothing."""
        end = time.monotonic() + self.patience.deadline
        for _ in range(MOST_ATTEMPTS - 1):
            try:
                return self._attempt()
            except TooFewError:
                if self._asked_for_vectors or time.monotonic() > end:
                    raise
            self.session = secrets.token_hex(16)
        return self._attempt()

    def _attempt(self) -> Message:
        """All rounds of one session."""
        self._asked_for_vectors = False
        keys = self._keys()
        shares = self._round("shares", dict.fromkeys(keys, keys), _sealed)
        vectors = self._vectors(shares)
        attestation = self._agreement(sorted(shares), vectors)
        told = self._round(
            "unmask",
            dict.fromkeys(attestation.signatures, attestation.signatures),
            lambda _name, told: _unmasking(told, attestation),
            self.agreed.threshold,
        )
        unmasking = Unmasking(
            session=self.session,
            threshold=self.agreed.threshold,
            survivors=sorted(vectors),
            gone=[name for name in attestation.sharers if name not in vectors],
            keys={name: keys[name]["mask"] for name in shares},
            told=told,
        )
        length = self.sitting.length
        total = masks.add(*(masks.unpack(text, length) for text in vectors.values()))
        steps = masks.signed(masks.add(total, masks.negative(unmasking.masks(length))))
        return message_of_sum(
            self.sitting, steps, len(vectors), before=self.before, attestation=attestation
        )

    # Rounds.

    def _keys(self) -> dict[str, Told]:
        """Every holder's keys, signed; from here on a node is known by its holder's name."""
        names: dict[int, str] = {}

        def accept(node: int, text: str) -> Told:
            told = _object(text)
            for name in self.agreed.holders:
                own = is_own_key(self.sitting, self.session, name, told, masks.is_signed)
                if own and name not in names.values():
                    names[node] = name
                    return told
            raise SumError(
                "secure sum: keys that no holder of the study signed, or one holder's twice"
            )

        question = Question(
            request=lambda _node: self._step("keys", {}),
            accept=accept,
            wanted=len(self.agreed.holders),
            patience=self.patience,
            least=self.agreed.least,
        )
        standings = self._ask(question)
        self.names = names
        return self._enough("keys", self._documents(standings), self.agreed.least)

    def _vectors(self, shares: dict[str, Told]) -> dict[str, str]:
        """The masked vectors of those who sent one, as text."""
        passed = {
            name: {other: given[name] for other, given in shares.items() if name in given}
            for name in shares
        }
        length = self.sitting.length

        def read(_name: str, told: Told) -> Told:
            masks.unpack(str(told.get("vector")), length)
            return told

        self._asked_for_vectors = True
        documents = self._round("masked", passed, read)
        return {name: document["vector"] for name, document in documents.items()}

    def _agreement(self, sharers: list[str], vectors: dict[str, str]) -> Attestation:
        """Survivors' signatures on who gave shares, who stayed, and what those sent."""
        digests = {name: digest(text) for name, text in vectors.items()}
        text = stay_statement(self.sitting.subject, self.session, sharers, digests)

        def read(name: str, told: Told) -> Told:
            if not masks.is_signed(self.agreed.holders[name], str(told.get("signature")), text):
                raise SumError("secure sum: a signature on who stayed does not verify")
            return told

        everyone = {name: {"survivors": digests} for name in vectors}
        documents = self._round("agree", everyone, read, self.agreed.threshold)
        return Attestation(
            session=self.session,
            sharers=tuple(sharers),
            vectors=digests,
            signatures={name: told["signature"] for name, told in documents.items()},
        )

    def _round(
        self,
        name: Round,
        payloads: Mapping[str, object],
        read: Callable[[str, Told], Told],
        least: int | None = None,
    ) -> dict[str, Told]:
        """One round: each who is still there is told its payload, and what it says is read."""

        def request(node: int) -> RecordDict | None:
            payload = payloads.get(self.names.get(node, ""))
            return None if payload is None else self._step(name, payload)

        enough = self.agreed.least if least is None else least
        question = Question(
            request=request,
            accept=lambda node, text: read(self.names[node], _object(text)),
            wanted=len(payloads),
            patience=self.patience,
            least=enough,
            expected=frozenset(node for node, holder in self.names.items() if holder in payloads),
        )
        documents = self._documents(self._ask(question))
        if name == "masked":
            self.paid = tuple(sorted(documents))
        return self._enough(name, documents, enough)

    def _ask(self, question: Question[Told]) -> list[Standing[Told]]:
        standings = ask(self.grid, question, self.on_change)
        self.standings |= {standing.node: standing for standing in standings}
        return standings

    def _documents(self, standings: list[Standing[Told]]) -> dict[str, Told]:
        """What came, by holder's name."""
        return {
            self.names[standing.node]: standing.document
            for standing in standings
            if standing.document is not None
        }

    def _step(self, name: Round, payload: object) -> RecordDict:
        asked = self.sitting.question
        return step_request(
            Step(
                study=study_toml(self.sitting.study),
                session=self.session,
                round=name,
                payload=json.dumps(payload),
                question="" if asked is None else asked.to_json(),
                opening=self.sitting.opening,
            )
        )

    def _enough(self, name: Round, documents: dict[str, Told], least: int) -> dict[str, Told]:
        """What came, if it is enough; else who was missing, and what the attempt has cost."""
        label = {**self.known, **self.names}
        reasons = {
            label.get(standing.node, f"node {standing.node}"): standing.reason
            for standing in self.standings.values()
        }
        others = [holder for holder in self.agreed.holders if holder not in documents]
        self.missing = {holder: reasons.get(holder, "no word from it") for holder in others}
        if len(documents) < least:
            strangers = {
                node: reason for node, reason in reasons.items() if node.startswith("node ")
            }
            why = "; ".join(f"{who}: {why}" for who, why in (self.missing | strangers).items())
            raise TooFewError(
                f"secure sum: {len(documents)} of at least {least} holders came through "
                f"round {name!r}, so there is no sum ({why}); {self._cost()}"
            )
        return documents

    def _cost(self) -> str:
        if not self._asked_for_vectors:
            return "nobody has paid for it"
        return f"it is charged at {', '.join(self.paid) or 'whoever masked a vector'}"


def message_of_sum(
    sitting: Sitting,
    vector: list[int],
    survivors: int,
    *,
    before: Message | None = None,
    attestation: Attestation | None = None,
) -> Message:
    """The sum as one document, whose holder is all of them."""
    if max(map(abs, vector)) > LARGEST:
        raise SumError(
            "secure sum: what was unmasked is no sum, so a holder sent a wrong vector or share"
        )
    return sitting.message(
        vector,
        survivors,
        before,
        drawn_by="sum of shares of discrete Gaussian noise",
        attestation=attestation,
    )


def _sealed(_name: str, told: Told) -> Told:
    return {str(name): str(text) for name, text in told.items()}


def _unmasking(told: Told, attestation: Attestation) -> Told:
    """A holder's shares, if they are of just the secrets that unmasking needs."""
    gone = set(attestation.sharers) - set(attestation.vectors)
    wanted = {"seeds": set(attestation.vectors), "keys": gone}
    for kind, names in wanted.items():
        shares = told.get(kind)
        if not isinstance(shares, dict) or set(shares) != names:
            raise SumError("secure sum: unmasking needs shares of survivors' seeds, others' keys")
        if not all(isinstance(share, str) for share in shares.values()):
            raise SumError("secure sum: shares must be texts")
    return told


def _object(text: str) -> Told:
    try:
        limits.RELEASE.check_json(text)
        told = json.loads(text)
    except (ValueError, RecursionError):
        told = None
    if not isinstance(told, dict):
        raise SumError("secure sum: a document must be a JSON object")
    return told
