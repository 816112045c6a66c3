"""A holder's five rounds in a secure sum: keys, shares, the masked share, who stayed, unmasking.

What the holder must remember between rounds lies in a file of its own beside the ledger. Each round
is answered once: asked again, it gives the stored answer, so that no server can draw two different
ones. What a server sends is believed only as far as holders' signatures carry it (docs/privacy.md,
"Secure sum").
"""

import json
import secrets
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Self

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from tacit.errors import FederationError
from tacit.federation.secure_sum import masks
from tacit.federation.secure_sum.statements import is_own_key, keys_statement, stay_statement
from tacit.federation.wire import ROUNDS, Step
from tacit.files import write_whole
from tacit.release.signature import load_key
from tacit.study import Study
from tacit.study.form import SecureSum

Named = dict[str, str]
Publish = Callable[[Callable[[list[int]], str]], str]
"""Publishes this holder's share through a function that masks it; gives the masked text."""


class SumError(FederationError):
    """What the server sent does not fit the study, or what was sent before."""


@dataclass
class Session:
    """What a holder knows in one session.

    `keys` are all holders' mask keys, `held` the shares that others gave into keeping.
    """

    path: Path
    study_hash: str
    cipher: str
    masking: str
    seed: str
    keys: Named = field(default_factory=dict)
    ciphers: Named = field(default_factory=dict)
    held: dict[str, Named] = field(default_factory=dict)
    survivors: list[str] = field(default_factory=list)
    answers: Named = field(default_factory=dict)

    @classmethod
    def of(cls, folder: Path, session: str, study: Study) -> Self:
        """The session by this name, begun with fresh keys where it is new."""
        path = folder / f"{session}.json"
        if path.exists():
            session_known = cls(path=path, **json.loads(path.read_text(encoding="utf-8")))
            _require(session_known.study_hash == study.hash, "a session is of one study")
            return session_known
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        cipher, masking = (
            masks.encode(X25519PrivateKey.generate().private_bytes_raw()) for _ in range(2)
        )
        return cls(path, study.hash, cipher, masking, masks.encode(secrets.token_bytes(32)))

    def save(self) -> None:
        """Write it, durably, before anything is answered."""
        fields = {name: value for name, value in asdict(self).items() if name != "path"}
        write_whole(self.path, json.dumps(fields), mode=0o600)

    @property
    def sharers(self) -> list[str]:
        """Holders whose shares are held here, this one included."""
        return sorted(self.held)


@dataclass(frozen=True)
class Holder:
    """A holder in a session: its name and signing key, the study, how it publishes its share."""

    name: str
    key: str
    study: Study
    folder: Path
    publish: Publish

    @property
    def agreed(self) -> SecureSum:
        """What the study says of its sum."""
        _require(
            self.study.secure_sum is not None and self.name in self.study.secure_sum.holders,
            "the study has no sum with this holder",
        )
        return self.study.secure_sum  # type: ignore[return-value]

    def answer(self, step: Step) -> str:
        """The document of this holder for a round."""
        session = Session.of(self.folder, step.session, self.study)
        if step.round not in session.answers:
            before = ROUNDS[: ROUNDS.index(step.round)]
            _require(
                all(name in session.answers for name in before), "rounds come one after the other"
            )
            work = {
                "keys": self._keys,
                "shares": self._shares,
                "masked": self._masked,
                "agree": self._agree,
                "unmask": self._unmask,
            }
            session.answers[step.round] = json.dumps(work[step.round](session, step))
            session.save()
        return session.answers[step.round]

    # The rounds.

    def _keys(self, session: Session, step: Step) -> Named:
        """My public keys, signed."""
        cipher, masking = (
            masks.public_text(_private(text)) for text in (session.cipher, session.masking)
        )
        text = keys_statement(self.study, step.session, self.name, cipher, masking)
        return {"cipher": cipher, "mask": masking, "signature": self._sign(text)}

    def _shares(self, session: Session, step: Step) -> Named:
        """Shares of my two secrets, sealed for the others; only keys that holders signed count."""
        keys = _payload(step)
        _require(
            self.agreed.least <= len(keys) and set(keys) <= set(self.agreed.holders),
            "too few keys, or of strangers",
        )
        for name, told in keys.items():
            _require(
                is_own_key(self.study, step.session, name, told),
                f"a key that {name!r} did not sign",
            )
        own = json.loads(session.answers["keys"])
        _require(keys.get(self.name) == own, "my own keys are not among them")
        names = sorted(keys)
        session.keys = {name: keys[name]["mask"] for name in names}
        session.ciphers = {name: keys[name]["cipher"] for name in names}
        seeds, maskings = (
            masks.create_shares(masks.decode(secret), self.agreed.threshold, len(names))
            for secret in (session.seed, session.masking)
        )
        sealed = {}
        for name, seed, key in zip(names, seeds, maskings, strict=True):
            shares = {"seed": masks.encode(seed), "key": masks.encode(key)}
            if name == self.name:
                session.held[name] = shares
            else:
                sealed[name] = masks.seal(
                    self._channel(session, step, self.name, name),
                    shares,
                    _route(step, self.name, name),
                )
        return sealed

    def _masked(self, session: Session, step: Step) -> Named:
        """My share of the sum, under my own mask and those that I share with the others."""
        told = _payload(step)
        _require(
            set(told) | {self.name} <= set(session.keys) and self.name not in told,
            "shares of strangers",
        )
        _require(len(told) + 1 >= self.agreed.least, "too few holders gave shares")
        for name, sealed in told.items():
            _require(isinstance(sealed, str), "shares must be sealed")
            session.held[name] = masks.open_sealed(
                self._channel(session, step, name, self.name), sealed, _route(step, name, self.name)
            )
        session.save()
        others = {name: session.keys[name] for name in told}

        def masked(share: list[int]) -> str:
            own = masks.mask(masks.decode(session.seed), len(share))
            shared = masks.pairwise(
                _private(session.masking), others, self.name, step.session, len(share)
            )
            return masks.pack(masks.add([entry % masks.MODULUS for entry in share], own, shared))

        return {"vector": self.publish(masked)}

    def _agree(self, session: Session, step: Step) -> Named:
        """My signature on who gave shares and who stayed: only one such pair can find enough."""
        survivors = [str(name) for name in _payload(step).get("survivors", ())]
        _require(len(set(survivors)) == len(survivors) >= self.agreed.least, "too few stayed")
        _require(
            set(survivors) <= set(session.sharers) and self.name in survivors,
            "survivors must have given shares, and hold me",
        )
        session.survivors = sorted(survivors)
        return {
            "signature": self._sign(
                stay_statement(self.study, step.session, session.sharers, session.survivors)
            )
        }

    def _unmask(self, session: Session, step: Step) -> dict[str, Named]:
        """Shares of survivors' seeds and of the others' keys, once enough agree on who stayed."""
        signatures = _payload(step)
        text = stay_statement(self.study, step.session, session.sharers, session.survivors)
        agreeing = [
            name
            for name, signature in signatures.items()
            if name in session.survivors
            and isinstance(signature, str)
            and masks.is_signed(self.agreed.holders[name], signature, text)
        ]
        _require(len(agreeing) >= self.agreed.threshold, "too few agree on who stayed")
        gone = [name for name in session.sharers if name not in session.survivors]
        return {
            "seeds": {name: session.held[name]["seed"] for name in session.survivors},
            "keys": {name: session.held[name]["key"] for name in gone},
        }

    def _sign(self, text: bytes) -> str:
        return masks.encode(load_key(self.key).sign(text))

    def _channel(self, session: Session, step: Step, sender: str, receiver: str) -> bytes:
        other = receiver if sender == self.name else sender
        return masks.agree(
            _private(session.cipher), session.ciphers[other], _route(step, sender, receiver)
        )


def _route(step: Step, sender: str, receiver: str) -> str:
    return masks.statement("tacit sum shares", step.session, sender, receiver).decode()


def _private(text: str) -> X25519PrivateKey:
    return X25519PrivateKey.from_private_bytes(masks.decode(text))


def _payload(step: Step) -> dict[str, Any]:
    try:
        payload = json.loads(step.payload)
    except (ValueError, RecursionError):
        payload = None
    _require(isinstance(payload, dict), "a payload must be a JSON object")
    return payload  # type: ignore[no-any-return]


def _require(holds: bool, rule: str) -> None:  # noqa: FBT001
    if not holds:
        raise SumError(rule)
