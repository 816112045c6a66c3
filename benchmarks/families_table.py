"""Yes/no answers of a public table: log-loss beside logistic regression and another private one.

The table is DIR/real/NAME.csv.gz (or DIR/NAME.csv.gz): numbers without a header, response last,
thresholded at its median, or where --share says. The first four fifths of its rows train, the rest
tests. Public ranges are those of the data; `typical` states mean ± √3 sd of each feature beside
them, as who knows the table would; `ten visits` states `visits = 10`. Beside it logistic regression
without privacy, and diffprivlib's at the same ε where --diffprivlib names a Python that has it (it
needs an older scikit-learn than ours). Its δ is 0; its bound on the length of rows is read off the
data. Lost: of what logistic regression without privacy gains in log-loss over the rate alone,
median of five runs. No bar: it is a comparison.

    python benchmarks/families_table.py --data DIR [--table protein] [--share 0.5]
        [--diffprivlib PYTHON] [--quick]
"""

import itertools
import json
import math
import subprocess
import tempfile
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from families import loss, regression
from frame import Bench

from tacit.analyst.collection import collect
from tacit.analyst.families.links import LINKS
from tacit.analyst.fit import fit
from tacit.simulation import simulate
from tacit.study import Study

RIVAL = """
import json, sys, warnings
import numpy as np
from diffprivlib.models import LogisticRegression
warnings.simplefilter("ignore")
data = np.load(sys.argv[1])
norm = float(np.sqrt((data["x"] ** 2).sum(axis=1)).max())
seed = int(sys.argv[3])
model = LogisticRegression(epsilon=float(sys.argv[2]), data_norm=norm, random_state=seed)
model.fit(data["x"], data["y"])
print(json.dumps(model.predict_proba(data["new"])[:, 1].tolist()))
"""


def rival(python: Path, epsilon: float, run_number: int, **arrays: np.ndarray) -> np.ndarray:
    """Probabilities by diffprivlib's logistic regression, in a Python of its own."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.npz"
        np.savez(path, **arrays)  # type: ignore[arg-type]
        words = [str(python), "-c", RIVAL, str(path), str(epsilon), str(run_number)]
        done = subprocess.run(words, check=True, capture_output=True, text=True)
    return np.array(json.loads(done.stdout))


@dataclass(frozen=True)
class Task:
    """A public table: features mapped to [−1, 1] by range, answers, and where tests begin."""

    name: str
    x: np.ndarray
    y: np.ndarray
    cut: int

    @classmethod
    def of(cls, path: Path, share: float) -> "Task":
        numbers = np.loadtxt(path, delimiter=",")
        numbers = numbers[:, [k for k in range(numbers.shape[1]) if np.ptp(numbers[:, k]) > 0]]
        y = (numbers[:, -1] > np.quantile(numbers[:, -1], 1 - share)) * 1.0
        x = 2 * (numbers[:, :-1] - numbers.min(axis=0)[:-1]) / np.ptp(numbers, axis=0)[:-1] - 1
        return cls(name=path.name.split(".")[0], x=x, y=y, cut=len(x) * 4 // 5)

    @property
    def names(self) -> list[str]:
        return [f"x{k}" for k in range(self.x.shape[1])]

    def study(self, epsilon: float, *, typical: bool, visits: int) -> Study:
        middle = self.x.mean(axis=0)
        reach = math.sqrt(3) * self.x.std(axis=0)
        ends = np.clip([middle - reach, middle + reach], -1, 1).T.tolist()
        features: list[dict[str, object]] = [
            {"name": name, "range": [-1, 1]} | ({"typical": pair} if typical else {})
            for name, pair in zip(self.names, ends, strict=True)
        ]
        return Study.from_document(
            {
                "name": self.name,
                "epsilon": epsilon,
                "delta": 1e-6,
                "planned_rows": [self.cut],
                "visits": visits,
                "response": {"name": "y", "range": [0, 1]},
                "features": features,
            }
        )

    def ours(
        self, epsilon: float, number: int, *, typical: bool = False, visits: int = 1
    ) -> np.ndarray:
        """Probabilities of the test rows."""
        study = self.study(epsilon, typical=typical, visits=visits)
        rows = np.column_stack([self.x, self.y])[: self.cut]
        table = dict(zip([*self.names, "y"], rows.T, strict=True))
        release = simulate(study, table, np.random.default_rng(number), holder="a")
        posterior = fit(collect([release], allow_simulated=True), family="logistic")
        new = dict(zip(self.names, self.x[self.cut :].T, strict=True))
        means: np.ndarray = posterior.predict(new)["mean"].to_numpy()
        return means

    def theirs(self, epsilon: float, number: int, *, python: Path) -> np.ndarray:
        cut = self.cut
        rows = {"x": self.x[:cut], "y": self.y[:cut], "new": self.x[cut:]}
        return rival(python, epsilon, number, **rows)


def public(bench: Bench, task: Task, runs: int, python: Path | None) -> None:
    """Log-loss on the last fifth of a public table."""
    cut = task.cut
    link = LINKS["logistic"]
    design = np.column_stack([np.ones(len(task.x)), task.x])
    exact = link.mean(design[cut:] @ regression(link, design[:cut], task.y[:cut]))
    best = loss(link, task.y[cut:], exact)
    base = loss(link, task.y[cut:], np.full(len(task.y) - cut, task.y[:cut].mean()))
    ways = {
        "tacit": task.ours,
        "tacit, typical": partial(task.ours, typical=True),
        "tacit, ten visits": partial(task.ours, visits=10),
    }
    if python is not None:
        ways["diffprivlib"] = partial(task.theirs, python=python)
    table = bench.table("public", {"way": "<18", "ε": "g", "loss": ".4f", "% lost": ".1f"})
    for epsilon, (name, way) in itertools.product((0.3, 1.0, 3.0, 10.0, 100.0), ways.items()):
        losses = [loss(link, task.y[cut:], way(epsilon, number)) for number in range(runs)]
        middle = float(np.median(losses))
        table.row(name, epsilon, middle, 100 * (middle - best) / (base - best))
    bench.say(f"{task.name}: without privacy {best:.4f}, the rate alone {base:.4f}")


def main() -> None:
    bench = Bench(__doc__, quick="one run")
    bench.option("--data", type=Path, required=True, help="the folder of the tables")
    bench.option("--table", default="protein", help="the table's name")
    bench.option("--diffprivlib", type=Path, help="a Python that has diffprivlib, to compare with")
    bench.option("--share", type=float, default=0.5, help="share of rows that answer yes")
    options = bench.options()
    folder = options.data / "real" if (options.data / "real").is_dir() else options.data
    path = folder / f"{options.table}.csv.gz"
    task = Task.of(path, options.share)
    public(bench, task, 1 if options.quick else 5, options.diffprivlib)
    bench.finish()


if __name__ == "__main__":
    main()
