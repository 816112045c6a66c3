"""Release forms compared.

What the row radius, the response's weight, y'y and the shape of noise do to expected intervals.

Widths of slopes' 90 % intervals, geometric mean over slopes, by the planner (tacit.plan), relative
to the default form: below 1 is better. Designs: numbers of numeric and two-level features, rows per
holder; features that fill all, half or a quarter of their public ranges.

Cells in which the default leaves more than 0.25 of scaled width are left out: noise swamps them,
and widths there tell of shrinkage only.

Bars (--check): no alternative is better than the default by more than a quarter in the geometric
mean over designs, and the default is never worse than twice the best form of a design.

    python benchmarks/release_form.py [--quick] [--check]
"""

import itertools
import math

import numpy as np
from frame import Bench

from tacit.imagined import Guess
from tacit.plan import forecast
from tacit.study import Study

DESIGNS = {
    "3 + 2, 6k 9k 4k": (3, 2, [6000, 9000, 4000]),
    "12 + 0, 10k": (12, 0, [10000]),
    "19 + 0, 4 x 5k": (19, 0, [5000] * 4),
    "5 + 5, 10 x 2k": (5, 5, [2000] * 10),
}
TELLING = 0.25
FORMS = {
    "default": {},
    "radius 1 (sphere)": {"radius": "sphere"},
    "radius 0.5 usual": {"radius": 0.5},
    "radius 0.65 usual": {"radius": 0.65},
    "radius 1.0 usual": {"radius": 1.0},
    "radius longest row": {"radius": "longest"},
    "weight x 0.5": {"weight": 0.5},
    "weight x 1.4": {"weight": 1.4},
    "weight x 2": {"weight": 2.0},
    "common weight 1": {"weight": "one"},
    "without y'y": {"square": False},
    "triangular noise": {"noise": "triangular"},
    "the paper's": {"radius": "longest", "weight": "one", "noise": "triangular", "square": False},
}


def study_of(design: tuple[int, int, list[int]], relation: str, form: dict[str, object]) -> Study:
    numeric, categorical, _ = design
    features: list[dict[str, object]] = [
        {"name": f"x{k}", "range": [-1, 1]} for k in range(numeric)
    ]
    features += [{"name": f"c{k}", "levels": ["a", "b"]} for k in range(categorical)]
    document = {
        "name": "form",
        "relation": relation,
        "epsilon": 1.0,
        "delta": 1e-6,
        "features": features,
    }
    document["response"] = {"name": "y", "range": [-1, 1]}
    usual = Study.from_document(document)
    radius = {"sphere": 1.0, "longest": usual.longest_row}.get(str(form.get("radius")))
    if radius is None:
        radius = (
            max(1.0, float(form["radius"]) * usual.usual_row)
            if "radius" in form
            else usual.row_radius
        )
    weight = form.get("weight", 1.0)
    release = {
        "row_radius": radius,
        "response_weight": 1.0 if weight == "one" else float(weight) * radius,
        "noise": form.get("noise", "frobenius"),
    }
    return Study.from_document(
        document | {"release": release | {"response_square": form.get("square", True)}}
    )


def width(study: Study, rows: list[int], epsilon: float, fill: float) -> float:
    [outlook] = forecast(study, rows, [epsilon], Guess(fill=fill))
    return float(np.exp(np.mean(np.log(outlook.scaled_widths[1:]))))


COLUMNS = {"relation": "<13", "form": "<20", "all": ".2f", "fill 1": ".2f", "1/2": ".2f"}
COLUMNS |= {"1/4": ".2f", "worst": ".2f", "best": ".2f"}


def main() -> None:
    bench = Bench(__doc__, quick="one design, one epsilon")
    options = bench.options()
    designs = list(DESIGNS.values())[: 1 if options.quick else None]
    epsilons = [1.0] if options.quick else [0.3, 1.0, 4.0]
    table = bench.table("width", COLUMNS)
    for relation in ("replace-one", "add-remove"):
        widths, fills = compared(relation, designs, epsilons)
        default = widths["default"]
        for name, values in widths.items():
            logs = np.log(values / default)
            means = [
                math.exp(float(logs[chosen].mean()))
                for chosen in (fills > 0, fills == 1.0, fills == 0.5, fills == 0.25)
            ]
            table.row(relation, name, *means, math.exp(logs.max()), math.exp(logs.min()))
            bench.bar(f"{relation}: {name} is no better by a quarter", met=means[0] > 0.75)
        most = float((default / np.min(list(widths.values()), axis=0)).max())
        bench.say(f"{relation}: default over the best form of each design, at most {most:.2f}")
        bench.bar(f"{relation}: default never twice the best form of a design", met=most < 2)
    bench.finish()


def compared(
    relation: str, designs: list[tuple[int, int, list[int]]], epsilons: list[float]
) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Widths of every form in the cells that tell anything, and what features fill there."""
    cells = list(itertools.product(designs, epsilons, (1.0, 0.5, 0.25)))
    widths = {
        name: np.array(
            [
                width(study_of(design, relation, form), design[2], epsilon, fill)
                for design, epsilon, fill in cells
            ]
        )
        for name, form in FORMS.items()
    }
    told = widths["default"] < TELLING
    fills = np.array([fill for *_, fill in cells])
    return {name: values[told] for name, values in widths.items()}, fills[told]


if __name__ == "__main__":
    main()
