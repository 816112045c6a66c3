"""How large slopes of public tables are, over what visits expect before anything is told.

Every file NAME.csv or NAME.csv.gz of DIR/real, or of DIR where there is no such folder, is a table
of numbers without a header, response last. Visits expect slopes to explain half of the response's
variance, in equal parts where X'X is not yet known: in standard deviations of column and response,
√(0.5/k) each of k slopes (`visits/estimate.py`).

*variance*: mean square of a table's least-squares slopes over that; *correlation*: root mean square
of its columns'. *beyond* N: share of slopes beyond 1.645 times √N of what is expected, which is a
tenth where slopes have N times the variance and a normal law. Intervals allow for N = 3
(`analyst/sizes.py`, `LARGER`) where noise hides slopes.

Bar (--check): over all tables at most 12 % of slopes lie beyond with N = 3.

    python benchmarks/usual_slopes.py --data DIR [--quick] [--check]
"""

import math
from pathlib import Path

import numpy as np
from frame import Bench
from public_tables import Population, load

from tacit.analyst.sizes import LARGER
from tacit.visits.estimate import UNEXPLAINED

TIMES = (1.0, 2.0, 1 + LARGER, 5.0)
MOST_BEYOND = 0.12
END = 1.645
QUICK = 5


def over_expected(population: Population) -> np.ndarray:
    """Slopes over the standard deviation that is expected of them."""
    slopes = population.slopes[1:] * population.x.std(axis=0) / population.y.std()
    return np.abs(slopes) / math.sqrt((1 - UNEXPLAINED) / len(slopes))


def correlation(population: Population) -> float:
    """Root mean square of the columns' correlations."""
    every = np.corrcoef(population.x.T)
    return float(np.sqrt(np.mean(every[np.triu_indices(len(every), 1)] ** 2)))


def main() -> None:
    bench = Bench(__doc__, quick="five tables")
    bench.option("--data", type=Path, required=True, help="the folder of the tables")
    options = bench.options()
    folder = options.data / "real" if (options.data / "real").is_dir() else options.data
    paths = sorted(folder.glob("*.csv")) + sorted(folder.glob("*.csv.gz"))
    columns = {"table": "<30", "slopes": "d", "correlation": ".2f", "variance": ".2f"}
    table = bench.table("slopes", columns | {f"beyond {times:g}": ".1f%" for times in TIMES})
    variances = []
    every = []
    for population in map(load, paths[:QUICK] if options.quick else paths):
        sizes = over_expected(population)
        variance = float(np.mean(sizes**2))
        beyond = [float(np.mean(sizes > END * math.sqrt(times))) for times in TIMES]
        table.row(population.name, len(sizes), correlation(population), variance, *beyond)
        variances.append(variance)
        every.append(beyond)
    means = np.mean(every, axis=0).tolist()
    table.row("all", None, None, float(np.median(variances)), *means)
    share = means[TIMES.index(1 + LARGER)]
    sentence = f"{share:.1%} of slopes beyond {1 + LARGER:g} times what is expected, 12 %"
    bench.bar(sentence, met=share <= MOST_BEYOND)
    bench.say(f"{len(every)} tables; of variances the median is told")
    bench.finish()


if __name__ == "__main__":
    main()
