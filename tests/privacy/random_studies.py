"""Random studies from the whole space that is accepted: every field, every kind, wide extremes.

Fields are drawn one by one and the study is built; what its rules refuse is drawn again. Budgets
are drawn evenly on a log scale over all that a study may state.
"""

import math

import numpy as np

from tacit.errors import StudyError
from tacit.release.question import LEAST_BOUND, LEAST_RADIUS, MOST_ENTRY, Question
from tacit.study import Study

FUNCTIONS = ["log", "log2", "log10", "log1p", "sqrt", "exp"]
KEYS = {name: letter * 43 + "=" for name, letter in zip(("h0", "h1", "h2"), "ABC", strict=True)}
FORMS = (
    *("table", "averaged", "places", "sum", "stream", "visits"),
    *("questions", "persons", "weighted", "summed", "responses"),
)
VISITED = ("places", "visits", "questions", "summed")
TINY = (0.0, -0.0, 5e-324, 1e-300)
"""Entries of a map that are nothing, or as good as that."""


def random_study(rng: np.random.Generator, form: str = "table", **fixed) -> Study:
    """A study to be published in this form, drawn until it is accepted."""
    while True:
        document = _document(rng, form) | fixed
        try:
            study = Study.from_document(document)
            release = document["release"] | _weight(rng, study)
            return Study.from_document(document | {"release": release})
        except StudyError:
            continue


def _document(rng, form):
    relation = _choice(rng, ["replace-one", "add-remove"])
    features = [_feature(rng, k) for k in range(int(rng.integers(1, 5)))]
    document = {
        "name": "random",
        "relation": relation,
        "epsilon": 10 ** rng.uniform(-3, 2),
        "delta": 10 ** rng.uniform(-15, -1),
        "intercept": bool(rng.integers(2)),
        "missing": _choice(rng, ["drop", "impute", "refuse"]),
        "response": _response(rng),
        "features": features,
        "release": _release(rng, form, relation),
    }
    if rng.random() < 0.25:
        document["terms"] = _terms(rng, features)
    several = form in {"table", "stream", "sum", "persons", "weighted"}
    if form == "responses" or (several and rng.random() < 0.25):
        further = [f"z{k}" for k in range(int(rng.integers(1, 5)))]
        document["features"] += [{"name": name, "range": _range(rng)} for name in further]
        document["responses"] = ["y", *further]
    if form in VISITED:
        visits = 3 if form == "places" else 2
        document |= {"visits": visits, "planned_rows": [7] * len(KEYS)}
    if form == "persons" or (form in VISITED and rng.random() < 0.3):
        document |= {"person": "id", "missing_person": _choice(rng, ["refuse", "alone"])}
    if form == "weighted":
        most = 10 ** rng.uniform(-6, 8.9)
        document |= {"weight": {"column": "weight", "most": most}, "intercept": True}
    if form in {"sum", "summed"}:
        document["secure_sum"] = {"holders": KEYS, "least": 3, "colluding": int(rng.integers(3))}
    return document


def _range(rng):
    span = 10 ** rng.uniform(-6, 9)
    low = float(rng.choice([0.0, span * rng.normal(), abs(span * rng.normal())]))
    return [low, low + span]


def _feature(rng, number):
    if rng.random() < 0.3:
        levels = [f"level {k}" for k in range(int(rng.integers(2, 6)))]
        return {"name": f"c{number}", "levels": levels} | _choice(rng, [{}, {"other": "other"}])
    low, high = _range(rng)
    feature = {"name": f"x{number}", "range": [low, high]}
    if rng.random() < 0.3:
        inner = low + (high - low) * rng.uniform(0, 0.5)
        width = (high - low) * 10 ** rng.uniform(-3, -0.4)
        feature["typical"] = [inner, min(high, inner + width)]
    return feature


def _response(rng):
    response = {"name": "y", "range": _range(rng), "centred": bool(rng.random() < 0.8)}
    return response | ({"function": _choice(rng, FUNCTIONS)} if rng.random() < 0.2 else {})


def _terms(rng, features):
    """Each feature in a term of its own, and a product of some of them."""
    alone = [{"product": [_factor(rng, feature)]} for feature in features]
    together = rng.permutation(len(features))[: int(rng.integers(1, 4))]
    return [*alone, {"product": [_factor(rng, features[k]) for k in together]}]


def _factor(rng, feature):
    if "levels" in feature:
        return {"of": feature["name"]}
    factor = {"of": feature["name"], "degree": int(rng.integers(1, 9))}
    if rng.random() < 0.3:
        factor["function"] = _choice(rng, FUNCTIONS)
    return factor | {"centred": bool(rng.random() < 0.8)}


def _release(rng, form, relation):
    release = {
        "noise": _choice(rng, ["frobenius", "triangular"]),
        "row_radius": _choice(rng, [None, 10 ** rng.uniform(-3, 0.9)]),
        "response_bound": _choice(rng, [None, 10 ** rng.uniform(-3.99, 0)]),
        "response_square": _choice(rng, [None, True, False]),
        "smallest_eigenvalue": bool(form not in {"sum", "stream"} and rng.random() < 0.3),
    }
    if relation == "add-remove":
        release["count"] = (
            "public" if form == "stream" else _choice(rng, ["noisy", "withheld", "public"])
        )
    if form in VISITED:
        release |= {"noise": "frobenius", "response_square": None, "smallest_eigenvalue": False}
        if relation == "add-remove":
            release["count"] = _choice(rng, ["noisy", "public"])
    if form == "averaged":
        release["average"] = int(rng.integers(2, 8))
    return release


def _weight(rng, study):
    """A response weight anywhere in what is allowed, or the default."""
    if rng.random() < 0.5:
        return {}
    ratio = study.row_radius / study.response_bound
    return {"response_weight": ratio * 10 ** rng.uniform(-2.99, 2.99)}


def _choice(rng, options):
    return options[int(rng.integers(len(options)))]


def hostile_question(study: Study, rng: np.random.Generator, visit: int = 2) -> Question:
    """What a server that means harm might ask: any map, offset and bounds that are accepted.

    Sizes are drawn evenly on a log scale up to the very bounds; a map may have no inverse, columns
    of nothing, or all of its entries at the bound. Half of the radii suit the map, so that rows
    fill the ball and its edge.
    """
    d = study.d
    matrix = rng.normal(size=(d, d)) * 10.0 ** rng.uniform(-12, 9, size=d)
    change = rng.integers(5)
    if change == 0:
        matrix = np.outer(matrix[0], rng.normal(size=d))
    elif change == 1:
        matrix = np.where(rng.random((d, d)) < 0.5, MOST_ENTRY, -MOST_ENTRY)
    elif change == 2:
        matrix = np.eye(d) * 10.0 ** rng.uniform(-12, 9, size=d)
    matrix[:, rng.random(d) < 0.15] = _choice(rng, TINY)
    offset = rng.normal(size=d) * 10.0 ** rng.uniform(-3, 9)
    matrix = np.clip(matrix, -MOST_ENTRY, MOST_ENTRY)
    radius = _choice(rng, [LEAST_RADIUS, 10 ** rng.uniform(-6, 9), MOST_ENTRY])
    bound = _choice(rng, [LEAST_BOUND, 10 ** rng.uniform(-4, 2), 100.0])
    if rng.random() < 0.5:
        share = 10 ** rng.uniform(-3.5, 0)
        radius = share * float(np.linalg.norm(rng.normal(size=d) @ matrix))
        bound = max(share, LEAST_BOUND)
    return Question(
        study_hash=study.hash,
        visit=visit,
        map=tuple(map(tuple, matrix.tolist())),
        offset=tuple(np.clip(offset, -MOST_ENTRY, MOST_ENTRY).tolist()),
        radius=float(np.clip(radius, LEAST_RADIUS, MOST_ENTRY)),
        bound=bound,
    )


def extreme_study() -> Study:
    """Noise of very different sizes: y'y's is over 2**33 times smaller than that of X'X."""
    typical = [-1.0, 1.0]
    features = [{"name": f"x{k}", "range": [-4.0, 4.0], "typical": typical} for k in range(8)]
    return Study.from_document(
        {
            "name": "extreme",
            "epsilon": 1.0,
            "delta": 1e-6,
            "intercept": False,
            "response": {"name": "y", "range": [-1.0, 1.0]},
            "features": features,
            "release": {"row_radius": 4 * math.sqrt(8), "response_bound": 1.01e-4},
        }
    )
