"""A study of stays in hospital, for tests of what is read off a posterior."""

import tacit

DOCUMENT = {
    "name": "stays",
    "epsilon": 1.0,
    "delta": 1e-6,
    "response": {"name": "days", "range": [0, 30]},
    "features": [{"name": "age", "range": [20, 100]}, {"name": "sex", "levels": ["f", "m"]}],
}
STUDY = tacit.Study.from_document(DOCUMENT)
