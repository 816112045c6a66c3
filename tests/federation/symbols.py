"""Cryptography of a secure sum in symbols, for the explorer: nothing is computed, all is named.

Stands in for tacit.federation.secure_sum.masks behind `Arithmetic`. A masked vector is the list of
masks that are in it, with their signs; a share says of which secret it is; what is sealed can be
opened by whoever names one of its two keys. An adversary that plays by these rules knows what it
can derive, and `Knowledge` derives it.
"""

import hashlib
import json
from dataclasses import dataclass, field
from fractions import Fraction

from tacit.federation.secure_sum.masks import SumError

LOW = "public low"
"""A key of low order: with it everybody shares the same secret."""


@dataclass(frozen=True)
class Symbols:
    """One holder's arithmetic in one session.

    `bound` says whether masks are made from names too, as they are now and once were not.
    """

    owner: str
    session: str
    bound: bool = True
    drawn: list[int] = field(default_factory=list)

    def new_secret(self):
        self.drawn.append(0)
        return f"secret {self.owner} {self.session[:2]} {len(self.drawn)}"

    @staticmethod
    def public_of(private):
        return private.replace("secret", "public", 1)

    @staticmethod
    def is_usable(_private, public):
        return public.startswith("public ") and public != LOW

    @staticmethod
    def split(secret, threshold, count):
        return [f"{k} of {count}, {threshold} give: {secret}" for k in range(count)]

    def seal(self, private, public, route, shares):
        ends = sorted([self.public_of(private), public])
        return json.dumps({"ends": ends, "route": route.decode(), "shares": shares})

    def open_sealed(self, private, public, route, text):
        try:
            sealed = json.loads(text)
        except ValueError:
            raise SumError("not sealed") from None
        ends = sorted([self.public_of(private), public])
        if not isinstance(sealed, dict) or sealed.get("ends") != ends:
            raise SumError("sealed for others")
        if sealed["route"] != route.decode():
            raise SumError("sealed for another way")
        return sealed["shares"]

    def masked(self, share, secret, others, me, session):
        del session
        signs = {f"own {secret['seed']}": 1}
        for name, public in others.items():
            if not self.is_usable(secret["masking"], public):
                raise SumError("no secret with this key")
            ends = sorted([self.public_of(secret["masking"]), public])
            pair = sorted([me, name]) if self.bound else []
            mask = " | ".join(["mask", *ends, *pair])
            signs[mask] = signs.get(mask, 0) + (1 if me < name else -1)
        return json.dumps({"holder": me, "noise": share[0], "signs": signs}, sort_keys=True)

    @staticmethod
    def sign(key, text):
        return f"{key} signed {hashlib.sha256(text).hexdigest()}"

    def is_signed(self, public_key, signature, text):
        return signature == self.sign(public_key, text)


class Knowledge:
    """What the server and its colluders can derive from what they were given."""

    def __init__(self, threshold):
        self.threshold = threshold
        self.secrets = set()
        self.shares = {}
        self.vectors = set()

    def learn_share(self, share):
        """A share of a secret; with enough of them the secret is known."""
        number, _, secret = share.partition(" give: ")
        held = self.shares.setdefault(secret, set())
        held.add(number)
        if len(held) >= self.threshold:
            self.secrets.add(secret)

    def remaining(self, vector):
        """The masks of a vector that are not known, with their signs."""
        public = {secret.replace("secret", "public", 1) for secret in self.secrets}
        known = {f"own {secret}" for secret in self.secrets}
        return {
            mask: sign
            for mask, sign in json.loads(vector)["signs"].items()
            if sign and mask not in known and not public & set(mask.split(" | "))
        }

    def sums(self):
        """A basis of all combinations of vectors in which no unknown mask is left.

        Each is given as {holder and draw of noise: weight}.
        """
        vectors = sorted(self.vectors)
        rows = [self.remaining(vector) for vector in vectors]
        masks = sorted({mask for row in rows for mask in row})
        matrix = [[Fraction(row.get(mask, 0)) for mask in masks] for row in rows]
        origin = [[Fraction(k == i) for k in range(len(rows))] for i in range(len(rows))]
        names = [(json.loads(vector)["holder"], json.loads(vector)["noise"]) for vector in vectors]
        free = [weights for row, weights in _reduced(matrix, origin) if not any(row)]
        return [
            {name: weight for name, weight in zip(names, weights, strict=True) if weight}
            for weights in free
        ]


def _reduced(matrix, origin):
    """Rows in echelon form, each with the combination of old rows that it is."""
    rows = list(zip(matrix, origin, strict=True))
    place = 0
    for column in range(len(matrix[0]) if matrix else 0):
        pivot = next((k for k in range(place, len(rows)) if rows[k][0][column]), None)
        if pivot is None:
            continue
        rows[place], rows[pivot] = rows[pivot], rows[place]
        for k in range(place + 1, len(rows)):
            factor = rows[k][0][column] / rows[place][0][column]
            if factor:
                rows[k] = tuple(
                    [x - factor * y for x, y in zip(mine, base, strict=True)]
                    for mine, base in zip(rows[k], rows[place], strict=True)
                )
        place += 1
    return rows
