"""Formulas, the studies that they make, and their designs, ours and Formulaic's."""

import numpy as np
import pandas as pd
import pyarrow as pa
from formulaic import model_matrix

from tacit.rows.design import Design
from tacit.study import Study
from tacit.study.transforms import FUNCTIONS

COLUMNS = {
    "days": (1, 30),
    "age": (18, 100),
    "bmi": (10, 60),
    "income": (100, 1e6),
    "sex": ["female", "male"],
    "ward": ["a", "b", "c"],
}
BUDGET = {"epsilon": 1.0, "delta": 1e-6}
FORMULAS = [
    "days ~ age + sex + age:sex + poly(bmi, 2)",
    "days ~ .",
    "days ~ age * sex * bmi",
    "days ~ (age + bmi + ward)**2 - age:bmi",
    "days ~ 0 + age",
    "days ~ sex + age - 1",
    "days ~ 0 + sex:age",
    "days ~ age:sex",
    "days ~ age:bmi",
    "days ~ sex:ward",
    "days ~ 0 + C(ward) + C(sex) + {bmi**2}",
    "days ~ age + I(age**3)",
    "days ~ log(income) * sex + sqrt(bmi) + log1p(age) + I(age * bmi)",
    "days ~ np.log10(income) + log2(bmi) + income",
    "days ~ exp(bmi) + bmi",
    "days ~ poly(age, 3):sex + sex",
    "days ~ poly(log(income), degree=2) + age/ward",
    "log(days) ~ age + poly(bmi, 4)",
    "days ~ 1",
]


def study_of(formula, columns=COLUMNS, **fields):
    named = {
        name: column for name, column in columns.items() if name in formula or "~ ." in formula
    }
    return Study.from_formula(formula, named, **BUDGET | fields)


def rows(seed, count=300):
    rng = np.random.default_rng(seed)
    frame = {
        name: rng.uniform(*column, count)
        for name, column in COLUMNS.items()
        if isinstance(column, tuple)
    }
    frame |= {
        name: rng.choice(column, count)
        for name, column in COLUMNS.items()
        if isinstance(column, list)
    }
    return pd.DataFrame(frame)


def formulaic_design(formula, frame):
    """Formulaic's design, and its response."""
    frame = frame.assign(
        **{name: pd.Categorical(frame[name], categories=COLUMNS[name]) for name in ("sex", "ward")}
    )
    context = {name: function.forward for name, function in FUNCTIONS.items()}
    both = model_matrix(formula, frame, context=context)
    return np.asarray(both.rhs, dtype=float), np.asarray(both.lhs, dtype=float)[:, 0]


def our_design(study, frame):
    batch = pa.RecordBatch.from_pandas(frame, preserve_index=False)
    return np.hstack(list(Design(study, response=False).blocks(batch, 1000))).T


def same_space(first, second):
    """Two designs have the same columns up to a linear map, by what each leaves of the other."""
    first, second = (design / np.linalg.norm(design, axis=0) for design in (first, second))
    assert (
        np.linalg.matrix_rank(first)
        == np.linalg.matrix_rank(second)
        == first.shape[1]
        == second.shape[1]
    )
    for one, other in ((first, second), (second, first)):
        left = other - one @ np.linalg.lstsq(one, other)[0]
        assert np.abs(left).max() < 1e-7


def column(name, frame):
    """A raw column by its name in the user's units."""
    found = np.ones(len(frame))
    for factor in [] if name == "(intercept)" else name.split(":"):
        variable, _, power = factor.partition("^")
        base, _, level = variable.partition("[")
        if level:
            values = (frame[base] == level.removesuffix("]")).to_numpy(float)
        elif "(" in base:
            function, _, inner = base.partition("(")
            values = FUNCTIONS[function].forward(frame[inner.removesuffix(")")].to_numpy())
        else:
            values = frame[base].to_numpy()
        found = found * values ** int(power or 1)
    return found
