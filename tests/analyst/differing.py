"""Evidence of holders that differ, drawn from the law that the model states, and its fits."""

import numpy as np
from scipy import stats
from scipy.special import ndtr

from tacit.analyst.evidence import Evidence
from tacit.analyst.methods import noise_aware
from tacit.analyst.methods.method import Mixture, Settings
from tacit.analyst.methods.noise_aware.spreads import DEGREES, MOST, SCALE
from tacit.analyst.prior import Prior


def draw_spreads(rng: np.random.Generator, d: int) -> np.ndarray:
    """τ from its prior: 0 with probability 1 − π, π of density 4(1 − π)³, else half-Student."""
    share = rng.beta(1.0, 4.0)
    tau = np.minimum(SCALE * np.abs(rng.standard_t(DEGREES, size=d)), MOST)
    return np.where(rng.uniform(size=d) < share, tau, 0.0)


def simulated(
    rng: np.random.Generator,
    tau: np.ndarray,
    *,
    holders: int,
    rows: int | np.ndarray,
    noise: float,
    sigma: float = 0.25,
    together: np.ndarray | None = None,
    mixing: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray, Evidence]:
    """θ, every θ_j and the evidence; an intercept and features of sd 0.5.

    `together` is the covariance of holders' differences beside τ², `mixing` turns features into
    those that go with each other.
    """
    d = len(tau)
    theta = 0.2 * rng.normal(size=d)
    own = theta + tau * rng.normal(size=(holders, d))
    if together is not None:
        own = own + rng.multivariate_normal(np.zeros(d), together, size=holders)
    counts = np.broadcast_to(rows, holders)
    parts = []
    for n, coefficients in zip(counts.tolist(), own, strict=True):
        features = 0.5 * rng.normal(size=(n, d - 1))
        x = np.column_stack([np.ones(n), features if mixing is None else features @ mixing.T])
        y = x @ coefficients + sigma * rng.normal(size=n)
        parts.append((x.T @ x, x.T @ y, y @ y))
    grams, moments, squares = (np.array(part) for part in zip(*parts, strict=True))
    full = rng.normal(size=grams.shape)
    sd = np.full(holders, noise)
    evidence = Evidence(
        grams=grams + noise * (full + full.swapaxes(1, 2)) / 2,
        moments=moments + noise / 2 * rng.normal(size=moments.shape),
        gram_sd=sd,
        off_diagonal_sd=sd / np.sqrt(2),
        moment_sd=sd / 2,
        counts=counts.astype(float),
        squares=squares + noise / 2 * rng.normal(size=holders),
        square_sd=sd / 2,
        intercept=True,
    )
    return theta, own, evidence


def fitted(evidence: Evidence, settings: Settings | None = None) -> Mixture:
    return noise_aware.fit(evidence, Prior.weak(evidence.d), settings or Settings())


def level(mixture: Mixture, truth: np.ndarray) -> np.ndarray:
    widths = np.sqrt(np.einsum("kaa->ka", mixture.covariances))
    return mixture.weights @ ndtr((truth - mixture.locations) / widths)


def p_values(values: np.ndarray) -> np.ndarray:
    """Of uniformity, by chi-squared over ten bins, one per coefficient."""
    bins = np.minimum((10 * values).astype(int), 9)
    return np.array([stats.chisquare(np.bincount(c, minlength=10)).pvalue for c in bins.T])
