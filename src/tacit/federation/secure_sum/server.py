"""The server's side of a secure sum: five rounds with the holders, then the sum as one release.

The server sees masked vectors and shares of secrets, and learns the sum of those who stayed. Who
drops out after giving shares is made up for; with fewer than the study's `least` in a round,
holders unmask nothing.
"""

import json
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from flwr.app import RecordDict
from flwr.serverapp import Grid

from tacit.errors import FederationError
from tacit.federation.secure_sum import masks
from tacit.federation.secure_sum.statements import is_own_key, length_of, stay_statement
from tacit.federation.server.ask import Patience, Question, Standing, ask
from tacit.federation.wire import Round, Step, step_request
from tacit.release import Release
from tacit.study import Study
from tacit.study.form import SecureSum
from tacit.study.toml import study_toml

LARGEST = 2**112
"""No sum of statistics comes near it, and what is still masked hardly ever stays below."""
Told = dict[str, Any]
"""A holder's document of one round."""


@dataclass
class Sum:
    """A secure sum under way: one session with the holders behind the nodes of a grid."""

    grid: Grid
    study: Study
    patience: Patience
    on_change: Callable[[Standing[Told]], None] = lambda _standing: None
    session: str = field(default_factory=lambda: secrets.token_hex(16))
    names: dict[int, str] = field(default_factory=dict)
    standings: dict[int, Standing[Told]] = field(default_factory=dict)

    @property
    def agreed(self) -> SecureSum:
        """What the study says of its sum."""
        if self.study.secure_sum is None:
            raise FederationError("the study has no secure_sum")
        return self.study.secure_sum

    def run(self) -> Release:
        """All rounds, and the sum of those who stayed."""
        keys = self._keys()
        shares = self._round("shares", dict.fromkeys(keys, keys), _sealed)
        sharers = sorted(shares)
        passed = {
            name: {other: shares[other][name] for other in sharers if other != name}
            for name in sharers
        }
        length = length_of(self.study)
        vectors = self._round(
            "masked", passed, lambda _name, told: {"vector": masks.unpack(told["vector"], length)}
        )
        survivors = sorted(vectors)
        text = stay_statement(self.study, self.session, sharers, survivors)
        everyone = {name: {"survivors": survivors} for name in survivors}
        signatures = self._round(
            "agree",
            everyone,
            lambda name, told: self._signed(name, told, text),
            self.agreed.threshold,
        )
        agreeing = {name: told["signature"] for name, told in signatures.items()}
        unmasking = self._round(
            "unmask", dict.fromkeys(survivors, agreeing), _unmasking, self.agreed.threshold
        )
        gone = [name for name in sharers if name not in survivors]
        total = masks.add(*(vectors[name]["vector"] for name in survivors))
        masked = self._masks(unmasking, keys, survivors, gone, length)
        return release_of_sum(
            self.study, masks.signed(masks.add(total, masks.negative(masked))), len(survivors)
        )

    # Rounds.

    def _keys(self) -> dict[str, Told]:
        """Every holder's keys, signed; from here on a node is known by its holder's name."""
        names: dict[int, str] = {}

        def accept(node: int, text: str) -> Told:
            told = _object(text)
            for name in self.agreed.holders:
                if is_own_key(self.study, self.session, name, told) and name not in names.values():
                    names[node] = name
                    return told
            raise FederationError(
                "secure sum: keys that no holder of the study signed, or one holder's twice"
            )

        standings = self._ask(
            lambda _node: self._step("keys", {}), accept, len(self.agreed.holders)
        )
        self.names = names
        keys = {
            names[standing.node]: standing.document
            for standing in standings
            if standing.document is not None
        }
        return self._enough("keys", keys, self.agreed.least)

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

        standings = self._ask(
            request, lambda node, text: read(self.names[node], _object(text)), len(payloads)
        )
        documents = {
            self.names[standing.node]: standing.document
            for standing in standings
            if standing.document is not None
        }
        return self._enough(name, documents, self.agreed.least if least is None else least)

    def _ask(
        self,
        request: Callable[[int], RecordDict | None],
        accept: Callable[[int, str], Told],
        wanted: int,
    ) -> list[Standing[Told]]:
        standings = ask(self.grid, Question(request, accept, wanted, self.patience), self.on_change)
        self.standings |= {standing.node: standing for standing in standings}
        return standings

    def _step(self, name: Round, payload: object) -> RecordDict:
        return step_request(Step(study_toml(self.study), self.session, name, json.dumps(payload)))

    def _enough(self, name: Round, documents: dict[str, Told], least: int) -> dict[str, Told]:
        if len(documents) < least:
            others = [standing for standing in self.standings.values() if standing.document is None]
            why = (
                "; ".join(f"node {standing.node}: {standing.reason}" for standing in others)
                or "nobody else was there"
            )
            raise FederationError(
                f"secure sum: {len(documents)} of at least {least} holders came through "
                f"round {name!r}, so there is no sum ({why})"
            )
        return documents

    def _signed(self, name: str, told: Told, text: bytes) -> Told:
        if not masks.is_signed(self.agreed.holders[name], str(told.get("signature")), text):
            raise FederationError("secure sum: a signature on who stayed does not verify")
        return told

    # Unmasking.

    def _masks(
        self,
        told: dict[str, Told],
        keys: dict[str, Told],
        survivors: list[str],
        gone: list[str],
        length: int,
    ) -> masks.Vector:
        """All that masks the sum: survivors' own masks, and those shared with who is gone."""
        helpers = list(told.values())[: self.agreed.threshold]
        total = [0] * length
        for name in survivors:
            seed = _combined([helper["seeds"][name] for helper in helpers])
            total = masks.add(total, masks.mask(seed, length))
        for name in gone:
            private = X25519PrivateKey.from_private_bytes(
                _combined([helper["keys"][name] for helper in helpers])
            )
            if masks.public_text(private) != keys[name]["mask"]:
                raise FederationError(
                    f"secure sum: shares of the key of {name!r} do not fit together"
                )
            others = {survivor: keys[survivor]["mask"] for survivor in survivors}
            total = masks.add(
                total, masks.negative(masks.pairwise(private, others, name, self.session, length))
            )
        return total


def release_of_sum(study: Study, steps: list[int], survivors: int) -> Release:
    """The sum as one release, whose holder is all of them."""
    if max(map(abs, steps)) > LARGEST:
        raise FederationError(
            "secure sum: what was unmasked is no sum, so a holder sent a wrong vector or share"
        )
    mechanism = study.summed(survivors)
    entries = mechanism.layout.entries
    return Release.of(
        study,
        mechanism,
        steps[:entries],
        steps[-1] if len(steps) > entries else None,
        holder=f"secure sum of {survivors} holders",
        drawn_by="sum of shares of discrete Gaussian noise",
        survivors=survivors,
    )


def _sealed(_name: str, told: Told) -> Told:
    return {str(name): str(text) for name, text in told.items()}


def _unmasking(_name: str, told: Told) -> Told:
    if set(told) != {"seeds", "keys"} or not all(isinstance(part, dict) for part in told.values()):
        raise FederationError("secure sum: unmasking needs shares of seeds and of keys")
    return told


def _combined(shares: list[str]) -> bytes:
    try:
        return masks.combine_shares([masks.decode(share) for share in shares])
    except ValueError:
        raise FederationError("secure sum: shares of a secret do not fit together") from None


def _object(text: str) -> Told:
    try:
        told = json.loads(text)
    except (ValueError, RecursionError):
        told = None
    if not isinstance(told, dict):
        raise FederationError("secure sum: a document must be a JSON object")
    return told
