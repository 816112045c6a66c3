"""The study that tests share: days in hospital by age, ward and body-mass index.

Covers nothing by itself. `agreed()` is the study; `agreed(features, epsilon=2.0, …)` is one with
other features or fields.
"""

from collections.abc import Sequence

from tacit.study import Study

AGE = {"name": "age", "range": [18, 100]}
WARD = {"name": "ward", "levels": ["1", "2", "3"]}
BMI = {"name": "bmi", "range": [15, 50]}
DAYS = {"name": "days", "range": [0, 30]}


def document(features: Sequence[dict] = (AGE, WARD, BMI), **fields) -> dict:
    """The shared study's document with these features and fields."""
    budget = {"name": "stay", "epsilon": 1.0, "delta": 1e-6}
    return budget | {"response": DAYS, "features": list(features)} | fields


def agreed(features: Sequence[dict] = (AGE, WARD, BMI), **fields) -> Study:
    """The shared study with these features and fields."""
    return Study.from_document(document(features, **fields))
