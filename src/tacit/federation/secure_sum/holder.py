"""A holder's five rounds in a secure sum, as a state machine.

    state      asked for   checked                                     becomes
    (new)      keys                                                    keyed
    keyed      shares      keys: signed, usable, all different         shared
    shared     masked      sealed shares: of holders with such keys    masking, then masked
    masking    masked      the same question as before                 masked
    masked     agree       who stayed, and my own vector among theirs  agreed
    agreed     unmask      enough signatures on just that              ended

What is asked in any other state is refused. A round that was answered gives the same answer to the
same question, and none to another. Everything is decided at its first arrival, is on disk before it
is answered, and never grows: with whom masks are shared above all, since a holder signs later that
it shared them with just these. What a server sends is believed only as far as holders' signatures
carry it (docs/privacy.md, "Secure sum").
"""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from tacit import limits
from tacit.federation.secure_sum import masks
from tacit.federation.secure_sum.masks import SumError
from tacit.federation.secure_sum.session import (
    Agreed,
    Ended,
    Keyed,
    Keys,
    Masked,
    Masking,
    Secrets,
    Session,
    Shared,
    Shares,
    Store,
    ended,
    read_session,
    write_session,
)
from tacit.federation.secure_sum.statements import (
    digest,
    is_digest,
    is_own_key,
    keys_statement,
    route,
)
from tacit.federation.wire import Step
from tacit.release.attestation import stay_statement
from tacit.study import SecureSum
from tacit.visits.sitting import Sitting

Publish = Callable[[Callable[[list[int]], str]], str]
"""Publishes this holder's share through a function that masks it; gives what the ledger has."""


class Arithmetic(Protocol):
    """The cryptography of masks.py, in whose place a test may put symbols."""

    def new_secret(self) -> str: ...  # noqa: D102
    def public_of(self, private: str) -> str: ...  # noqa: D102
    def is_usable(self, private: str, public: str) -> bool: ...  # noqa: D102
    def split(self, secret: str, threshold: int, count: int) -> list[str]: ...  # noqa: D102
    def seal(  # noqa: D102
        self, private: str, public: str, route: bytes, shares: Mapping[str, str]
    ) -> str: ...
    def open_sealed(  # noqa: D102
        self, private: str, public: str, route: bytes, text: str
    ) -> dict[str, str]: ...
    def masked(  # noqa: D102
        self,
        share: Sequence[int],
        secret: Mapping[str, str],
        others: Mapping[str, str],
        me: str,
        session: str,
    ) -> str: ...
    def sign(self, key: str, text: bytes) -> str: ...  # noqa: D102
    def is_signed(self, public_key: str, signature: str, text: bytes) -> bool: ...  # noqa: D102


@dataclass(frozen=True)
class Holder:
    """A holder in a session: its name and signing key, what is summed, how it publishes."""

    name: str
    key: str
    sitting: Sitting
    store: Store
    publish: Publish
    arithmetic: Arithmetic = masks

    def answer(self, step: Step) -> str:
        """The document of this holder for a round of the sum that it takes part in."""
        payload, question = _read(step)
        with self.store.alone():
            session = read_session(self.store, step.session)
            if session is not None:
                same = session.subject == self.sitting.subject
                _require(same, "a session is of one study, and of one question")
                if step.round in session.answers:
                    same = session.questions[step.round] == question
                    _require(same, "a round is answered once, and was asked otherwise before")
                    return session.answers[step.round]
            after = self._after(session, step, payload, question)
            write_session(self.store, step.session, after)
            return after.answers[step.round]

    def _after(
        self, session: Session | None, step: Step, payload: dict[str, Any], question: str
    ) -> Session:
        """The state that follows; raises where none does."""
        match session, step.round:
            case None, "keys" if not payload:
                return self._keyed(step, question)
            case Keyed(), "shares":
                return self._shared(session, step, payload, question)
            case Shared(), "masked":
                masking = self._masking(session, step, payload, question)
                write_session(self.store, step.session, masking)
                return self._masked(masking, step)
            case Masking(), "masked":
                same = session.questions["masked"] == question
                _require(same, "with whom masks are shared was decided before")
                return self._masked(session, step)
            case Masked(), "agree":
                return self._agreed(session, step, payload, question)
            case Agreed(), "unmask":
                return self._ended(session, step, payload, question)
            case _:
                raise SumError("rounds come one after the other, each once")

    # The transitions.

    def _keyed(self, step: Step, question: str) -> Keyed:
        """New secrets; what is told of them is public and signed."""
        _require(self.name in self._agreed_sum.holders, "the study has no sum with this holder")
        new = self.arithmetic.new_secret
        secrets = Secrets(cipher=new(), masking=new(), seed=new())
        cipher = self.arithmetic.public_of(secrets.cipher)
        mask = self.arithmetic.public_of(secrets.masking)
        text = keys_statement(self.sitting, step.session, self.name, cipher, mask)
        signature = self.arithmetic.sign(self.key, text)
        told = {"cipher": cipher, "mask": mask, "signature": signature}
        return Keyed(
            subject=self.sitting.subject,
            questions={"keys": question},
            answers={"keys": json.dumps(told)},
            secrets=secrets,
        )

    def _shared(self, session: Keyed, step: Step, payload: dict[str, Any], question: str) -> Shared:
        """Shares of my two secrets, sealed for the others whose signed keys were sent."""
        keys = self._checked_keys(session, step, payload)
        names = sorted(keys)
        split = self.arithmetic.split
        seeds = split(session.secrets.seed, self._agreed_sum.threshold, len(names))
        maskings = split(session.secrets.masking, self._agreed_sum.threshold, len(names))
        shares = {
            name: Shares(seed=seed, key=masking)
            for name, seed, masking in zip(names, seeds, maskings, strict=True)
        }
        own = shares.pop(self.name)
        sealed = {
            name: self.arithmetic.seal(
                session.secrets.cipher,
                keys[name].cipher,
                route(step.session, self.name, name),
                given.model_dump(),
            )
            for name, given in shares.items()
        }
        return Shared(
            subject=session.subject,
            questions=session.questions | {"shares": question},
            answers=session.answers | {"shares": json.dumps(sealed)},
            secrets=session.secrets,
            keys=keys,
            own=own,
        )

    def _checked_keys(self, session: Keyed, step: Step, payload: dict[str, Any]) -> dict[str, Keys]:
        """Everybody's public keys: signed by holders of the study, usable, and all different.

        A key of low order, or one that is another's too, would leave a mask that anybody knows, or
        that cancels itself: it is refused here, before anything depends on it.
        """
        agreed = self._agreed_sum
        _require(
            agreed.least <= len(payload) and set(payload) <= set(agreed.holders),
            "too few keys, or of strangers",
        )
        _require(
            payload.get(self.name) == json.loads(session.answers["keys"]),
            "my own keys are not among them",
        )
        is_signed = self.arithmetic.is_signed
        for name, told in payload.items():
            own = is_own_key(self.sitting, step.session, name, told, is_signed)
            _require(own, f"a key that {name!r} did not sign")
            for use, private in (
                ("cipher", session.secrets.cipher),
                ("mask", session.secrets.masking),
            ):
                usable = self.arithmetic.is_usable(private, told[use])
                _require(usable, f"a key of {name!r} with which no secret can be shared")
        every = [told[use] for told in payload.values() for use in ("cipher", "mask")]
        _require(len(set(every)) == len(every), "a key that is there twice")
        return {
            name: Keys(cipher=told["cipher"], mask=told["mask"]) for name, told in payload.items()
        }

    def _masking(
        self, session: Shared, step: Step, payload: dict[str, Any], question: str
    ) -> Masking:
        """With whom masks are shared: those whose sealed shares came; decided once, here."""
        _require(
            set(payload) <= set(session.keys) and self.name not in payload, "shares of strangers"
        )
        _require(len(payload) + 1 >= self._agreed_sum.least, "too few holders gave shares")
        held = {self.name: session.own}
        for name, sealed in payload.items():
            _require(isinstance(sealed, str), "shares must be sealed")
            shares = self.arithmetic.open_sealed(
                session.secrets.cipher,
                session.keys[name].cipher,
                route(step.session, name, self.name),
                sealed,
            )
            held[name] = Shares(**shares)
        return Masking(
            subject=session.subject,
            questions=session.questions | {"masked": question},
            answers=session.answers,
            secrets=session.secrets,
            keys={name: session.keys[name] for name in held},
            held=held,
        )

    def _masked(self, session: Masking, step: Step) -> Masked:
        """My share of the sum under my own mask and those with `held`, once it is in the ledger.

        What the ledger has says for whom it was masked: where it was stored by a session that is no
        longer known here, nothing is sent.
        """
        others = {name: keys.mask for name, keys in session.keys.items() if name != self.name}
        made_for = {"sharers": sorted(session.held), "mask": session.keys[self.name].mask}

        def sealed(share: list[int]) -> str:
            secret = session.secrets.model_dump()
            vector = self.arithmetic.masked(share, secret, others, self.name, step.session)
            return json.dumps({"vector": vector} | made_for)

        stored = json.loads(self.publish(sealed))
        vector = stored.pop("vector")
        _require(stored == made_for, "the share of this session was masked for others")
        return Masked(
            subject=session.subject,
            questions=session.questions,
            answers=session.answers | {"masked": json.dumps({"vector": vector})},
            held=session.held,
        )

    def _agreed(
        self, session: Masked, step: Step, payload: dict[str, Any], question: str
    ) -> Agreed:
        """My signature on who gave shares and who stayed: only one such pair can find enough."""
        vectors = payload.get("survivors")
        if not isinstance(vectors, dict) or not all(map(is_digest, vectors.values())):
            raise SumError("survivors must be told with the digests of their vectors")
        _require(len(vectors) >= self._agreed_sum.least, "too few stayed")
        _require(set(vectors) <= set(session.held), "survivors must have given shares")
        mine = digest(json.loads(session.answers["masked"])["vector"])
        _require(vectors.get(self.name) == mine, "my own vector is not among theirs")
        text = stay_statement(self.sitting.subject, step.session, session.held, vectors)
        signature = json.dumps({"signature": self.arithmetic.sign(self.key, text)})
        return Agreed(
            subject=session.subject,
            questions=session.questions | {"agree": question},
            answers=session.answers | {"agree": signature},
            held=session.held,
            vectors=vectors,
        )

    def _ended(self, session: Agreed, step: Step, payload: dict[str, Any], question: str) -> Ended:
        """Shares of survivors' seeds and of the others' keys, once enough agree on who stayed."""
        agreed = self._agreed_sum
        text = stay_statement(self.sitting.subject, step.session, session.held, session.vectors)
        agreeing = [
            name
            for name, signature in payload.items()
            if name in session.vectors
            and isinstance(signature, str)
            and self.arithmetic.is_signed(agreed.holders[name], signature, text)
        ]
        _require(len(agreeing) >= agreed.threshold, "too few agree on who stayed")
        given = {
            "seeds": {name: session.held[name].seed for name in sorted(session.vectors)},
            "keys": {
                name: shares.key
                for name, shares in sorted(session.held.items())
                if name not in session.vectors
            },
        }
        after = session.model_copy(
            update={
                "questions": session.questions | {"unmask": question},
                "answers": session.answers | {"unmask": json.dumps(given)},
            }
        )
        return ended(after)

    @property
    def _agreed_sum(self) -> SecureSum:
        """What the study says of its sum."""
        agreed = self.sitting.study.secure_sum
        if agreed is None or self.name not in agreed.holders:
            raise SumError("the study has no sum with this holder")
        return agreed


def _read(step: Step) -> tuple[dict[str, Any], str]:
    """What a round tells, and the digest by which the same question is known again."""
    try:
        limits.RELEASE.check_json(step.payload)
        payload = json.loads(step.payload)
        canonical = json.dumps(payload, sort_keys=True)
    except (ValueError, RecursionError):
        raise SumError("a payload must be a JSON object") from None
    if not isinstance(payload, dict):
        raise SumError("a payload must be a JSON object")
    return payload, hashlib.sha256(canonical.encode()).hexdigest()


def _require(holds: bool, rule: str) -> None:  # noqa: FBT001
    if not holds:
        raise SumError(rule)
