"""From proof to program: what Coq has proven and evaluates, against what the program computes."""

import ast
from fractions import Fraction
from pathlib import Path
from types import ModuleType

import pytest
from points import answers, float_points, points, rational

from tacit.privacy import sensitivity
from tacit.privacy.mechanism import Form, calibrate
from tacit.privacy.places import (
    SQUARE_WEIGHT,
    calibrate_places,
    places_entries,
    places_sensitivity,
)

pytestmark = pytest.mark.xdist_group("proofs")  # one process compiles them
ROUNDING = Fraction(1, 10**14)
"""Allowed between a square of a float result and the exact square: the program's few roundings."""
HEAD_ROOM = Fraction(3, 10**12)
"""Twice what `Form.sensitivity` adds to be on the safe side of them."""


def weights_of(point, module):
    return module.Weights(response=point.w, square=point.v, count=point.c, eigenvalue=point.e)


def form_of(point, shape, responses=1):
    """The form at a point, the weights of X'y and y'y divided over so many responses."""
    root = responses**0.5
    weights = sensitivity.Weights(
        float(point.w) / root, float(point.v) / root, float(point.c), float(point.e)
    )
    return Form(
        d=3,
        x=float(point.x),
        y=float(point.y),
        weights=weights,
        relation=point.relation,
        shape=shape,
        average=point.k,
        responses=responses,
    )


def disagreements(cases, proven_squares, module):
    """Points at which a module's `sensitivity` is not the proven one."""
    unlike = []
    for point, square in zip(cases, proven_squares, strict=True):
        weights = weights_of(point, module)
        value = module.sensitivity(point.x, point.y, weights, point.relation, point.k)
        if abs(Fraction(value) ** 2 / square - 1) > ROUNDING:
            unlike.append(point)
    return unlike


@pytest.fixture(scope="session")
def asked(proven):
    """All points and their proven squares."""
    cases = list(points())
    return cases, answers(proven, [point.coq() for point in cases])


def test_the_program_computes_the_proven_sensitivity(asked):
    cases, squares = asked
    assert len(cases) > 500
    assert not disagreements(cases, squares, sensitivity)


def test_the_sensitivity_that_is_used_is_never_below_the_proven_one_and_hardly_above(proven):
    """Of several responses, too: `as_one` of Model.v, at numbers of which the root is exact."""
    cases = list(float_points())
    for point, square in zip(cases, answers(proven, [case.coq() for case in cases]), strict=True):
        for responses in (1, 4, 16):
            form = form_of(point, "frobenius", responses)
            assert square <= Fraction(form.sensitivity) ** 2 <= square * (1 + HEAD_ROOM)


@pytest.mark.parametrize(("shape", "twice"), [("frobenius", 1), ("triangular", 2)])
def test_every_published_part_gets_the_noise_that_the_theorem_asks_for(proven, shape, twice):
    """`calibrated` of Model.v, in exact arithmetic: weight·sd is at least multiplier·Δ."""
    cases = list(float_points())
    for point, square in zip(cases, answers(proven, [case.coq() for case in cases]), strict=True):
        mechanism = calibrate(form_of(point, shape), 1.0, 1e-6)
        needed = Fraction(mechanism.multiplier) ** 2 * square
        noise = mechanism.noise
        off_diagonal = 2 * Fraction(noise.xtx_off_diagonal) ** 2
        assert Fraction(noise.xtx_diagonal) ** 2 >= needed
        assert needed <= off_diagonal <= twice * needed * (1 + HEAD_ROOM)
        assert Fraction(noise.xty) ** 2 * point.w**2 >= needed
        for weight, sd in ((point.v, noise.yty), (point.c, noise.count)):
            assert (sd is None) == (weight == 0)
            assert sd is None or Fraction(sd) ** 2 * weight**2 >= needed


def test_the_free_weight_is_the_proven_one(proven):
    cases = [point for point in points() if point.relation == "replace-one" and point.k == 1]
    questions = [
        f"free_at {rational(point.x)} {rational(point.y)} {rational(point.w)}" for point in cases
    ]
    for point, square in zip(cases, answers(proven, questions), strict=True):
        free = sensitivity.free_square_weight(point.x, point.y, point.w)
        assert abs(Fraction(free) ** 2 / square - 1) < ROUNDING


def test_the_places_are_the_proven_ones(proven):
    columns = [1, 2, 3, 7, 100, 512]
    questions = [f"places_at {rational(many)}" for many in columns]
    questions += [f"places_count_at {rational(many)}" for many in columns]
    *told, weight = answers(proven, [*questions, "places_weight_at"])
    assert abs(Fraction(SQUARE_WEIGHT) ** 2 / weight - 1) < ROUNDING
    for place, many in enumerate(columns):
        square = told[place]
        count = told[len(columns) + place]
        assert abs(Fraction(places_sensitivity(many)) ** 2 / square - 1) < ROUNDING
        entries = places_entries(many)
        mechanism = calibrate_places(many, "replace-one", 0.1, entries, (1.0, 1e-6))
        needed = Fraction(mechanism.multiplier) ** 2 * square
        assert count * Fraction(mechanism.noise.count) ** 2 >= needed
        assert Fraction(mechanism.noise.total) ** 2 >= needed
        assert weight * Fraction(mechanism.noise.square) ** 2 >= needed


# A wrong constant is noticed.

SOURCE = Path(sensitivity.__file__).read_text(encoding="utf-8")
JUDGED = {"sensitivity", "lever", "_add_remove", "_replace_one"}


def numbers_in(*nodes):
    """The places and values of all numbers written in some code."""
    parts = [part for node in nodes for part in ast.walk(node) if isinstance(part, ast.Constant)]
    return {
        (part.lineno, part.col_offset): part.value
        for part in parts
        if isinstance(part.value, int | float)
    }


def is_flat(node):
    """Whether code compares, or computes the maximum t."""
    if isinstance(node, ast.Assign):
        return any(isinstance(name, ast.Name) and name.id == "t" for name in node.targets)
    return isinstance(node, ast.Compare)


def changes():
    """Every number in the code that computes a sensitivity, with others to put in its place.

    Where a branch begins, or a maximum `t` lies, is moved by 1 only: there a billionth is no error,
    since branches meet smoothly and a maximum is flat.
    """
    tree = ast.parse(SOURCE)
    judged = [
        part
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and node.name in JUDGED
        for part in node.body
    ]
    slack = [node for node in tree.body if isinstance(node, ast.Assign)]
    branches = numbers_in(*(node for node in ast.walk(tree) if is_flat(node)))
    for place, value in numbers_in(*judged, *slack).items():
        nearby = [] if place in branches or not value else [value * (1 + 1e-9)]
        yield place, value, [value + 1, value - 1, *nearby]


def module_with(place, value):
    """`sensitivity.py` with another number in one place."""
    tree = ast.parse(SOURCE)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and (node.lineno, node.col_offset) == place:
            node.value = value
    module = ModuleType("changed_sensitivity")
    exec(compile(tree, "changed_sensitivity", "exec"), vars(module))  # noqa: S102  (our own source)
    return module


def noticed(asked, module):
    try:
        return bool(disagreements(*asked, module))
    except (ArithmeticError, ValueError):
        return True


def test_no_constant_of_the_program_can_be_changed_unnoticed(asked):
    places = list(changes())
    assert len(places) > 25
    for place, value, others in places:
        assert not noticed(asked, module_with(place, value))
        for other in others:
            message = f"line {place[0]}: {value} may become {other}"
            assert noticed(asked, module_with(place, other)), message
