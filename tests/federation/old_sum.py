"""A holder's rounds in a secure sum as they were before TACIT-2026-002, for the explorer to break.

The logic of `client/sum.py` of 0.1.0 before its release, line by line, over the same `Arithmetic`
and `Store` as today's holder. What is wrong with it: in round 3 the shares that arrive are added to
those of an attempt that failed, while masks are shared with the holders of the last attempt alone;
keys are never tried before they are used; and masks do not depend on names.
"""

import json

from tacit.federation.secure_sum.masks import SumError
from tacit.federation.secure_sum.statements import digest, is_own_key, keys_statement, route
from tacit.federation.wire import ROUNDS
from tacit.release.attestation import stay_statement


class OldHolder:
    """The old holder: a dictionary of what is known, added to as rounds come."""

    bound = False
    """Whether names are part of masks."""

    def __init__(self, *, name, key, sitting, store, publish, arithmetic):
        self.name = name
        self.key = key
        self.sitting = sitting
        self.store = store
        self.publish = publish
        self.arithmetic = arithmetic
        self.agreed = sitting.study.secure_sum

    def answer(self, step):
        text = self.store.read(step.session)
        session = json.loads(text) if text else self._new()
        if step.round not in session["answers"]:
            before = ROUNDS[: ROUNDS.index(step.round)]
            _require(all(name in session["answers"] for name in before), "rounds in their order")
            document = getattr(self, f"_{step.round}")(session, step, json.loads(step.payload))
            session["answers"][step.round] = json.dumps(document)
            self._save(session, step)
        return session["answers"][step.round]

    def _new(self):
        new = self.arithmetic.new_secret
        secrets = {"cipher": new(), "masking": new(), "seed": new()}
        return {"secrets": secrets, "keys": {}, "held": {}, "vectors": {}, "answers": {}}

    def _save(self, session, step):
        self.store.write(step.session, json.dumps(session))

    def _keys(self, session, step, _payload):
        cipher, mask = (
            self.arithmetic.public_of(session["secrets"][use]) for use in ("cipher", "masking")
        )
        text = keys_statement(self.sitting, step.session, self.name, cipher, mask)
        return {"cipher": cipher, "mask": mask, "signature": self.arithmetic.sign(self.key, text)}

    def _shares(self, session, step, keys):
        known = self.agreed.least <= len(keys) and set(keys) <= set(self.agreed.holders)
        _require(known, "too few keys, or of strangers")
        for name, told in keys.items():
            own = is_own_key(self.sitting, step.session, name, told, self.arithmetic.is_signed)
            _require(own, "a key that was not signed")
        _require(keys.get(self.name) == json.loads(session["answers"]["keys"]), "not my own keys")
        names = sorted(keys)
        session["keys"] = keys
        split = self.arithmetic.split
        seeds = split(session["secrets"]["seed"], self.agreed.threshold, len(names))
        maskings = split(session["secrets"]["masking"], self.agreed.threshold, len(names))
        sealed = {}
        for name, seed, masking in zip(names, seeds, maskings, strict=True):
            shares = {"seed": seed, "key": masking}
            if name == self.name:
                session["held"][name] = shares
            else:
                way = route(step.session, self.name, name)
                private = session["secrets"]["cipher"]
                sealed[name] = self.arithmetic.seal(private, keys[name]["cipher"], way, shares)
        return sealed

    def _masked(self, session, step, told):
        known = set(told) | {self.name} <= set(session["keys"]) and self.name not in told
        _require(known, "shares of strangers")
        _require(len(told) + 1 >= self.agreed.least, "too few holders gave shares")
        private = session["secrets"]["cipher"]
        for name, sealed in told.items():
            way = route(step.session, name, self.name)
            public = session["keys"][name]["cipher"]
            session["held"][name] = self.arithmetic.open_sealed(private, public, way, sealed)
        self._save(session, step)
        others = {name: session["keys"][name]["mask"] for name in told}

        def masked(share):
            secret = session["secrets"]
            return self.arithmetic.masked(share, secret, others, self.name, step.session)

        return {"vector": self.publish(masked)}

    def _agree(self, session, step, payload):
        vectors = payload["survivors"]
        _require(len(vectors) >= self.agreed.least, "too few stayed")
        inside = set(vectors) <= set(session["held"]) and self.name in vectors
        _require(inside, "survivors must have given shares, and hold me")
        mine = digest(json.loads(session["answers"]["masked"])["vector"])
        _require(vectors[self.name] == mine, "my own vector is not among theirs")
        session["vectors"] = vectors
        text = stay_statement(self.sitting.subject, step.session, session["held"], vectors)
        return {"signature": self.arithmetic.sign(self.key, text)}

    def _unmask(self, session, step, signatures):
        held = session["held"]
        survivors = session["vectors"]
        text = stay_statement(self.sitting.subject, step.session, held, survivors)
        agreeing = [
            name
            for name, signature in signatures.items()
            if name in survivors
            and self.arithmetic.is_signed(self.agreed.holders[name], signature, text)
        ]
        _require(len(agreeing) >= self.agreed.threshold, "too few agree on who stayed")
        return {
            "seeds": {name: held[name]["seed"] for name in survivors},
            "keys": {name: held[name]["key"] for name in held if name not in survivors},
        }


def _require(holds, rule):
    if not holds:
        raise SumError(rule)
