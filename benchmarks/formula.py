"""What centring and orthogonal polynomials are worth under noise.

The same formula, encoded in two ways.

One simulated holder with a numeric column x, evenly spread over a range [20, 60] that does not hold
zero, and two groups. The response is a quadratic in x whose slope differs between groups, plus a
residual; the formula is "y ~ poly(x, 2) + g + x:g". `terms` encodes it as Tacit does, by Legendre
polynomials and products of centred columns; `powers` has x, x² and x·g divided by their largest
size. Both span the same columns, and without noise give the same fit. Error is the mean squared
error of the fitted mean over the variance of the true one, averaged over runs that differ in data
and noise; (ε, 1e-6), replace-one, default form, default method.

Bar (--check): terms have at most a fifth of the error of powers at every ε and number of rows.

    python benchmarks/formula.py [--runs 20] [--quick] [--check]
"""

import numpy as np
import pyarrow as pa
from frame import Bench

from tacit.analyst.collection import collect
from tacit.analyst.fit import fit
from tacit.rows.design import Design
from tacit.simulation import simulate
from tacit.study import Study

FORMULA = "y ~ poly(x, 2) + g + x:g"
COLUMNS = {"y": (0, 10), "x": (20, 60), "g": ["a", "b"]}
EPSILONS = (0.5, 1.0, 3.0)
ROWS = (5000, 50_000)
LEAST_GAIN = 5.0


def studies(epsilon: float) -> dict[str, Study]:
    """The formula's study, and the same without centring."""
    terms = Study.from_formula(FORMULA, COLUMNS, name="formula", epsilon=epsilon, delta=1e-6)
    document = terms.document()
    del document["release"]  # defaults go with the columns
    x = {"of": "x", "centred": False}
    document["terms"] = [
        {"product": product} for product in ([x], [x | {"degree": 2}], ["g"], [x, "g"])
    ]
    return {"terms": terms, "powers": Study.from_document(document)}


def rows(rng: np.random.Generator, count: int) -> tuple[pa.RecordBatch, np.ndarray]:
    """A table, and the true mean of its response."""
    u, g = rng.uniform(-1, 1, count), rng.choice(["a", "b"], count)
    mean = 5 + 1.5 * u - 2 * u**2 + (g == "b") * (1 + u)
    return pa.record_batch({"x": 40 + 20 * u, "g": g, "y": mean + rng.normal(size=count)}), mean


def error(study: Study, batch: pa.RecordBatch, mean: np.ndarray, rng: np.random.Generator) -> float:
    posterior = fit(collect([simulate(study, batch, rng, holder="h")], allow_simulated=True))
    [design] = Design(study, response=False).blocks(batch, batch.num_rows)
    centre, half = study.response.mapping
    fitted = centre + half * posterior.mean("scaled") @ design
    return float(np.mean((fitted - mean) ** 2) / mean.var())


def cell(count: int, epsilon: float, runs: int) -> dict[str, float]:
    """Mean error of each way in one cell."""
    errors: dict[str, list[float]] = {}
    for run in range(runs):
        batch, mean = rows(np.random.default_rng([run, count]), count)
        for way, study in studies(epsilon).items():
            errors.setdefault(way, []).append(
                error(study, batch, mean, np.random.default_rng([run, int(1000 * epsilon)]))
            )
    return {way: float(np.mean(values)) for way, values in errors.items()}


def main() -> None:
    bench = Bench(__doc__, quick="three runs")
    bench.option("--runs", type=int, default=20)
    options = bench.options()
    columns = {"rows": ",", "ε": "g", "terms as encoded": ".4f", "plain powers": ".4f"}
    table = bench.table("error", columns | {"gain": ".1f"})
    for count in ROWS:
        for epsilon in EPSILONS:
            errors = cell(count, epsilon, 3 if options.quick else options.runs)
            gain = errors["powers"] / errors["terms"]
            table.row(count, epsilon, errors["terms"], errors["powers"], gain)
            bench.bar(
                f"{count:,} rows, epsilon {epsilon:g}: {gain:.1f} times", met=gain >= LEAST_GAIN
            )
    bench.finish()


if __name__ == "__main__":
    main()
