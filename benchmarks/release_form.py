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

import argparse
import math
import sys

import numpy as np

from tacit.plan import Guess, forecast
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
    [found] = forecast(study, rows, [epsilon], Guess(fill=fill))
    return float(np.exp(np.mean(np.log(found.scaled_widths[1:]))))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="one design, one epsilon")
    parser.add_argument("--check", action="store_true", help="exit 1 when a bar is missed")
    options = parser.parse_args()
    designs = dict(list(DESIGNS.items())[:1]) if options.quick else DESIGNS
    epsilons = [1.0] if options.quick else [0.3, 1.0, 4.0]
    met, tables = True, []
    for relation in ("replace-one", "add-remove"):
        cells = [
            (design, epsilon, fill)
            for design in designs.values()
            for epsilon in epsilons
            for fill in (1.0, 0.5, 0.25)
        ]
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
        widths = {name: found[told] for name, found in widths.items()}
        fills = np.array([fill for *_, fill in cells])[told]
        best = np.min(list(widths.values()), axis=0)
        tables.append(
            f"\n{relation}: width over the default's      {'all':>8}{'fill 1':>8}{'1/2':>8}{'1/4':>8}{'worst':>8}{'best':>8}"
        )
        for name, found in widths.items():
            logs = np.log(found / widths["default"])
            means = [
                math.exp(float(logs[chosen].mean()))
                for chosen in (fills > 0, fills == 1.0, fills == 0.5, fills == 0.25)
            ]
            row = [*means, float(np.exp(logs.max())), float(np.exp(logs.min()))]
            tables.append(f"{name:<40}" + "".join(f"{value:>8.2f}" for value in row))
            met &= means[0] > 0.75
        met &= bool((widths["default"] / best).max() < 2)
        tables.append(
            f"default over the best form of each design, at most {float((widths['default'] / best).max()):.2f}"
        )
    print("\n".join(tables))
    print("bars met" if met else "bars missed")
    sys.exit(0 if met or not options.check else 1)


if __name__ == "__main__":
    main()
