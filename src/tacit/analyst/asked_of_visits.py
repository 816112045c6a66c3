r"""What else a study of several visits can be asked: sub-models, and models against each other.

Its evidence is of columns u = T'x that mix the study's, with residuals r = y − x'θ₀. A sub-model
keeps the columns x_K = E'x. With the QR decomposition T⁻¹E = WR its own mapped columns are
u_K = W'u = (R⁻¹)'x_K. W has orthonormal columns, so noise on W'SW has the law of noise on S. Let
γ = (I − WW')T⁻¹θ₀ be the part of the offset that the kept columns cannot hold: residuals from
R⁻¹W'T⁻¹θ₀ are r + u'γ, hence

    X_K'r_K = W'(X'r + Sγ),    Σr_K² = Σr² + 2γ'X'r + γ'Sγ.

γ is orthogonal to W, so what noise on S adds to the first is independent of that on W'SW, and is
‖γ‖²/2 of its variance for each entry: the result is evidence like any other, exactly.

The first answer b of the whole model is (W'SW)⁻¹W'Sb in the sub-model, as in least squares. Where
models are compared it is left aside: there a prior must say what is usual of slopes, not what was
found before.
"""

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tacit.analyst.evidence import Evidence
from tacit.analyst.frame import Frame
from tacit.analyst.methods.noise_aware.slopes import LEAST_VARIANCE, usual_covariance
from tacit.analyst.prior import Prior

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Kept:
    """What a sub-model keeps of mapped columns."""

    basis: Array  # (d, k): W
    factor: Array  # (k, k): R
    rest: Array  # (d,): γ


def kept_of(frame: Frame, places: list[int]) -> Kept:
    """The mapped columns of a sub-model that keeps these columns of the study."""
    back = np.linalg.inv(frame.map)
    if places == list(range(len(back))):
        d = len(back)
        return Kept(basis=np.eye(d), factor=np.asarray(back, dtype=float), rest=np.zeros(d))
    basis, factor = _positive_qr(np.asarray(back[:, places], dtype=float))
    start = back @ frame.start
    return Kept(basis=basis, factor=factor, rest=start - basis @ (basis.T @ start))


def kept_columns(evidence: Evidence, frame: Frame, places: list[int]) -> Evidence:
    """What visits say of a sub-model that keeps these columns of the study."""
    squares, square_sd = _residuals(evidence)
    kept = kept_of(frame, places)
    basis = kept.basis
    rest = kept.rest
    size = float(rest @ rest)
    along = evidence.grams @ rest
    moment_sd = np.sqrt(evidence.moment_sd**2 + size * evidence.gram_sd**2 / 2)
    added = 2 * evidence.moments @ rest + along @ rest
    noise = 4 * size * evidence.moment_sd**2 + size**2 * evidence.gram_sd**2
    return replace(
        evidence,
        grams=basis.T @ evidence.grams @ basis,
        moments=(evidence.moments + along) @ basis,
        moment_sd=moment_sd,
        squares=squares + added,
        square_sd=np.sqrt(square_sd**2 + noise),
        frame=_sub_frame(
            frame,
            basis,
            np.linalg.inv(kept.factor).astype(float),
            added=max(float(added.sum() / squares.sum()), 0.0),
            noisier=float(np.mean(moment_sd**2 / evidence.moment_sd**2)),
        ),
    )


def _sub_frame(frame: Frame, basis: Array, matrix: Array, *, added: float, noisier: float) -> Frame:
    """The sub-model's frame; its residuals' squares are 1 + `added` times the whole model's."""
    gram = frame.gram
    inner = np.linalg.inv(basis.T @ gram @ basis)
    project = inner @ basis.T @ gram
    back = np.linalg.inv(frame.map)
    first = back @ frame.first
    rest = first - basis @ (project @ first)
    noise = frame.gram_sd**2 / 2 * float(rest @ rest)
    covariance = project @ frame.covariance @ project.T + noise * inner @ inner
    return Frame(
        map=matrix,
        start=matrix @ (basis.T @ (back @ frame.start)),
        first=matrix @ (project @ first),
        covariance=(covariance + covariance.T) / 2,
        shared=frame.shared * (1 + added),
        later=frame.later * noisier,
        gram=basis.T @ gram @ basis,
        gram_sd=frame.gram_sd,
        whole=(frame.whole + added / frame.inside) / (1 + added),
        rate=frame.rate,
        level=frame.level,
        misfit=None if frame.misfit is None else (1 + added) * project @ frame.misfit @ project.T,
        unexpected=None if frame.unexpected is None else project @ frame.unexpected @ project.T,
        shown=None if frame.shown is None else basis.T @ frame.shown @ basis,
        shown_sd=frame.shown_sd,
        attenuation=None if frame.attenuation is None else frame.attenuation @ basis,
        tail=math.log((math.exp(frame.tail) + added) / (1 + added)),
        tail_sd=frame.tail_sd / (1 + added),
    )


def usual_prior(
    evidence: Evidence,
    frame: Frame,
    prior: Prior,
    *,
    variance: float,
    shares: tuple[float, ...],
) -> Prior:
    """The default prior as one of mapped columns, the first answer aside; a stated one as it is.

    `variance` is the response's; slopes are expected to explain one of `shares` of it.
    """
    if not prior.by_spread:
        return frame.prior(prior)
    back = np.linalg.inv(frame.map)
    gram = back.T @ frame.gram @ back
    first = int(evidence.intercept)
    level = max(float(gram[0, 0]), 1e-12) if first else frame.rate
    features = gram[first:, first:]
    if first:
        features = features - np.outer(gram[0, 1:], gram[0, 1:]) / level
    spreads, axes = np.linalg.eigh(features / level)
    covariance = prior.covariance.copy()
    usual = usual_covariance(axes, np.maximum(spreads, LEAST_VARIANCE), variance)
    covariance[first:, first:] = usual
    mapped = back @ covariance @ back.T
    return replace(
        prior,
        mean=back @ (prior.mean - frame.start),
        covariance=(mapped + mapped.T) / 2,
        by_spread=False,
        widths=shares,
        feature_scale=frame.map.T @ prior.feature_scale @ frame.map,
    )


def _residuals(evidence: Evidence) -> tuple[Array, Array]:
    """Σr² and the sd of its noise, which every visit publishes."""
    if evidence.squares is None or evidence.square_sd is None:  # pragma: no cover - always there
        raise AssertionError
    return evidence.squares, evidence.square_sd


def _positive_qr(matrix: Array) -> tuple[Array, Array]:
    """QR with a positive diagonal: an intercept stays one."""
    basis, factor = np.linalg.qr(matrix)
    signs = np.where(np.diag(factor) < 0, -1.0, 1.0)
    return basis * signs, signs[:, None] * factor
