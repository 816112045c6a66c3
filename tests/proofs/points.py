"""Rational points at which proof and program are compared, and Coq's values there."""

import random
import re
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

from proofs.check import ask

NAMES = {"replace-one": "ReplaceOne", "add-remove": "AddRemove"}
LEAST_SHARES = [Fraction(1, 2), Fraction(1, 4), Fraction(1, 8), Fraction(3, 8), Fraction(2, 7)]
"""m such that V/W = (1 + 2m²)/2m, at which the one root of the formula is a rational number."""


@dataclass(frozen=True)
class Point:
    """What `sensitivity` is a function of, in rational numbers."""

    relation: str
    k: int
    x: Fraction
    y: Fraction
    w: Fraction
    v: Fraction
    c: Fraction
    e: Fraction

    def coq(self):
        numbers = (self.k, self.x, self.y, self.w, self.v, self.c, self.e)
        return f"sensitivity_at {NAMES[self.relation]} {' '.join(map(rational, numbers))}"


def rational(number):
    exact = Fraction(number)
    return f"({exact.numerator} # {exact.denominator})"


def answers(folder, questions):
    """Coq's exact values, each of which it has proven to be that of the theorems."""
    settings = "Set Printing Depth 1000000.\nOpen Scope Q_scope.\n"
    text = ask(folder, f"{settings}Eval vm_compute in [{'; '.join(questions)}].\n")
    values = re.findall(r"(true|false),\s*(-?\d+)(?:%Z)?,\s*(\d+)(?:%Z)?\)", text)
    assert len(values) == len(questions), "Coq did not answer every question"
    assert all(trusted == "true" for trusted, *_ in values), "a root is not a rational number"
    return [Fraction(int(above), int(below)) for _, above, below in values]


def ratios():
    """(W, V) on every branch of the formula, near where branches meet, and far from it."""
    low = [Fraction(1, 5), Fraction(1), Fraction(7, 5), Fraction(141, 100)]
    high = [Fraction(142, 100), Fraction(3, 2), Fraction(17, 10), Fraction(3), Fraction(40)]
    squares = [Fraction(0), Fraction(1, 3), Fraction(1), Fraction(7, 5), Fraction(5)]
    steep = [(1 + 2 * m * m) / (2 * m) for m in LEAST_SHARES]
    yield from product(low, [*squares, *steep])
    yield from ((wide, wide * share) for wide in high for share in [*squares[:4], *steep])


def dyadic(chance, low, high):
    """A random number that a float holds exactly."""
    return Fraction(chance.randint(low * 64, high * 64), 64)


def points():
    """Every branch with every relation and group size, at random bounds, counts and eigenvalues."""
    chance = random.Random(22)  # noqa: S311  (a seed on purpose)
    for (wide, heavy), relation, k in product(ratios(), NAMES, (1, 2, 3, 7)):
        x, y = dyadic(chance, 1, 4), dyadic(chance, 1, 9)
        count = chance.choice([Fraction(0), dyadic(chance, 1, 3)])
        eigenvalue = chance.choice([Fraction(0), dyadic(chance, 1, 3) / 8])
        yield Point(
            relation=relation,
            k=k,
            x=x,
            y=y,
            w=wide * x / y,
            v=heavy * (x / y) ** 2,
            c=count,
            e=eigenvalue,
        )


def float_points():
    """The same for the program as it is used: every number is a float, and so exact too."""
    chance = random.Random(23)  # noqa: S311  (a seed on purpose)
    heavy = [0.0, 0.25, 1.0, 1.375, 1.5, 2.25, 4.125]
    for share, wide, relation, k in product(heavy, (0.25, 1.25, 1.5, 6.0), NAMES, (1, 2, 5)):
        x = 2.0 ** chance.randint(-3, 3)
        y = 2.0 ** chance.randint(-3, 3)
        sizes = (x, y, wide * x / y, share * wide * (x / y) ** 2, chance.choice([0.0, 0.625]), 0.0)
        yield Point(relation, k, *map(Fraction, sizes))
