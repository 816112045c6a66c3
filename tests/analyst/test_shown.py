"""X'X as corrections show it, and how much of that is sure.

Covers `tacit.analyst.shown` and `tacit.visits.known`.
"""

import numpy as np
import pytest

from tacit.analyst.shown import LEAST, Shown, shown_of, sure_of
from tacit.visits.known import Known

D = 6
SD = 0.1
LEVEL = 0.8


def noise(rng, sd):
    """Symmetric noise with this sd on the diagonal, 1/√2 of it beside."""
    drawn = rng.normal(size=(D, D))
    return sd * (drawn + drawn.T) / 2


def known(sd):
    """Rows that are expected to be as long in every direction, with errors of this sd."""
    return Known(np.eye(D), variance=sd**2 / 2 * (1 + np.eye(D)), axes=np.eye(D))


def seen(truth, rng):
    return Shown(LEVEL * truth + noise(rng, SD), SD)


def flat():
    """Two directions without rows, where as many were expected as elsewhere."""
    values = np.array([0.02, 0.02, 1.0, 1.0, 1.6, 1.8])
    axes = np.linalg.qr(np.random.default_rng(1).normal(size=(D, D)))[0]
    return (axes * values) @ axes.T, axes


def test_what_was_expected_counts_as_it_says_where_it_is_right():
    """40 matrices about what was expected: the sd told is that of the error, or up to 15 % more.

    Fifteen entries tell the factor, which is never below 1, with an error.
    """
    rng = np.random.default_rng(2)
    errors = []
    told = []
    for _ in range(40):
        truth = np.eye(D) + noise(rng, SD)
        shown = shown_of(known(SD), seen(truth, rng), LEVEL)
        errors.append(np.diag(shown.gram - LEVEL * truth))
        told.append(shown.sd)
    assert 0.85 < np.sqrt(np.mean(np.square(errors))) / np.mean(told) < 1.05
    assert np.mean(told) < 0.8 * SD


def test_flat_directions_that_nobody_expected_are_shown():
    """Taken at its word what was expected would keep a third of them, more than six sds."""
    truth, axes = flat()
    rng = np.random.default_rng(3)
    along = []
    for _ in range(20):
        shown = shown_of(known(0.05), seen(truth, rng), LEVEL)
        along.append(np.diag(axes.T @ shown.gram @ axes)[:2])
        assert shown.sd < 1.1 * SD
    assert np.mean(along) < 0.17


def test_columns_that_lost_unlike_shares_are_not_taken_for_such_as_go_together():
    """Their entries on the diagonal are not as expected, those beside it are."""
    truth = np.diag([0.5, 0.6, 0.7, 1.3, 1.4, 1.5])
    rng = np.random.default_rng(5)
    sds = [shown_of(known(0.05), seen(truth, rng), LEVEL).sd for _ in range(20)]
    assert np.mean(sds) < 0.7 * SD


def test_no_direction_is_taken_for_shorter_than_a_tenth_of_its_noise():
    truth, _ = flat()
    shown = shown_of(known(1.0), seen(truth - 0.3 * np.eye(D), np.random.default_rng(4)), LEVEL)
    assert np.linalg.eigvalsh(shown.gram).min() == pytest.approx(LEAST * shown.sd)


def test_what_is_sure_falls_off_below_the_noise():
    shown = Shown(np.diag([2.0, 0.1, 0.01]), SD)
    assert sure_of(shown, 0.0) == pytest.approx(shown.gram)
    told = np.diag([8 / 4.01, 0.1 / 2, 1e-6 / (1e-4 + 0.01)])
    assert sure_of(shown, 1.0) == pytest.approx(told)
