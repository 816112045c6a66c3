"""Releases with all that `bernstein-sheldon` asks of them."""

import numpy as np

from tacit.analyst.evidence import Evidence
from tacit.analyst.methods import bernstein_sheldon as method

FALSE_ALARM = 1e-6  # seeds are fixed, but another processor rounds otherwise
SDS = {  # gram, off-diagonal, moment, square
    "frobenius": (8.0, 8.0 / np.sqrt(2), 3.0, 2.0),
    "frobenius, noisy square": (8.0, 8.0 / np.sqrt(2), 8.0, 90.0),
    "triangular": (8.0, 8.0, 3.0, 5.0),
    "quiet off the diagonal": (8.0, 4.0, 12.0, 9.0),
}


def evidence_of(rng, sds, counts=(300, 450, 200), d=2, *, theta=None):
    """Releases of rows drawn from the model, with noise of the given sds on diagonal, off-diagonal,
    moments and squares.
    """
    theta = np.linspace(1, -0.5, d) if theta is None else theta
    grams, moments, squares = [], [], []
    for n in counts:
        x = rng.standard_normal((n, d)) @ (np.eye(d) + 0.3)
        y = x @ theta + 0.7 * rng.standard_normal(n)
        noise = np.tril(rng.standard_normal((d, d)) * sds[1], -1)
        grams.append(x.T @ x + noise + noise.T + np.diag(rng.standard_normal(d)) * sds[0])
        moments.append(x.T @ y + sds[2] * rng.standard_normal(d))
        squares.append(y @ y + sds[3] * rng.standard_normal())
    every = [np.full(len(counts), float(sd)) for sd in sds]
    return Evidence(
        grams=np.array(grams),
        moments=np.array(moments),
        gram_sd=every[0],
        off_diagonal_sd=every[1],
        moment_sd=every[2],
        counts=np.array(counts, dtype=float),
        squares=np.array(squares),
        square_sd=every[3],
    )


def vech(matrix):
    rows, columns = np.triu_indices(matrix.shape[-1])
    return np.asarray(matrix)[..., rows, columns]


def unvech(vector, p):
    matrix = np.zeros((*np.shape(vector)[:-1], p, p))
    rows, columns = np.triu_indices(p)
    matrix[..., rows, columns] = matrix[..., columns, rows] = vector
    return matrix


def entry_noise(sds, c, d):
    """Noise variances of vech [[S, cz], [cz', c²u]]."""
    variances = np.where(np.eye(d + 1, dtype=bool), sds[0] ** 2, sds[1] ** 2)
    variances[:d, d] = (c * sds[2]) ** 2
    variances[d, d] = (c**2 * sds[3]) ** 2
    return vech(variances)


def without_the_two(values, vectors, released, problem, right=method.conditional):
    """The wrong law whose G has variances nλ_iλ_k in Frobenius' measure, half the right ones, and
    the right mean nλ.
    """
    return right(values / 2, vectors, released, problem._replace(counts=2 * problem.counts))
