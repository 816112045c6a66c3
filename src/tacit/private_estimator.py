"""What the scikit-learn estimators share: holder and analyst in one process.

It is for rows that one program may hold but must not give away. A fit encodes rows by public
ranges, adds noise to their statistics once, and infers the posterior from these: coefficients,
predictions and the estimator itself may then be shown. Rows are not kept.
"""

import threading
import warnings
from collections.abc import Mapping
from contextlib import nullcontext
from functools import partial
from typing import Any, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tacit.analyst.collection import Collection
from tacit.analyst.fit import prior_of
from tacit.budget import Budget
from tacit.errors import BudgetError, StudyError
from tacit.holder.charge import Purpose
from tacit.holder.persons import batches_of
from tacit.holder.perturb import privatise
from tacit.holder.statistics import statistics_of
from tacit.holder.visits import converse, read_table
from tacit.privacy.gaussian import compose, epsilon_of
from tacit.privacy.noise import Sampler
from tacit.privacy.sensitivity import Relation
from tacit.rows.design import Block, Design
from tacit.rows.objects import texts_of
from tacit.scikit import BaseEstimator, check_consistent_length, check_is_fitted, validate_data
from tacit.simulation import seeded
from tacit.study import Study

Array = NDArray[np.float64]


class PrivacyWarning(UserWarning):
    """A fit protects less than it may seem to."""


class PrivateEstimator(BaseEstimator):  # type: ignore[misc]
    """What every private estimator is: a study from public ranges, and fits that are charged."""

    _given = "ranges and response_range"

    def __init__(
        self,
        *,
        epsilon: float,
        delta: float,
        ranges: Any,  # noqa: ANN401
        relation: Relation,
        prior: Any,  # noqa: ANN401
        budget: Budget | None,
        visits: int,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.ranges = ranges
        self.relation = relation
        self.prior = prior
        self.budget = budget
        self.visits = visits

    def fit(self, X: Any, y: Any, groups: Any = None) -> Self:  # noqa: ANN401, N803
        """Spend (ε, δ) on the rows and infer the posterior.

        Rows with the same of `groups` are one person's, and are protected together; without it
        each row is a person.
        """
        return self._fit(X, y, _persons(X, groups), None)

    def simulate(
        self,
        X: Any,  # noqa: ANN401, N803
        y: Any,  # noqa: ANN401
        rng: np.random.Generator,
        groups: Any = None,  # noqa: ANN401
    ) -> Self:
        """The same with noise from `rng`, which protects nobody and costs no budget."""
        if self.budget is not None:
            raise BudgetError(
                "a simulation cannot be paid for: simulate with an estimator that has no budget"
            )
        return self._fit(X, y, _persons(X, groups), seeded(rng))

    def _fit(
        self,
        X: Any,  # noqa: ANN401, N803
        y: Any,  # noqa: ANN401
        persons: pa.Array | None,
        sampler: Sampler | None,
    ) -> Self:
        raise NotImplementedError

    def _design(self, X: Any) -> Block:  # noqa: ANN401, N803
        """The encoded rows at which a fitted estimator predicts."""
        check_is_fitted(self)
        x = validate_data(self, X, dtype=np.float64, reset=False)
        [design] = Design(self.study_, response=False).blocks(_batch_of(self.study_, x), len(x))
        return design

    def _release(
        self,
        study: Study,
        x: Array,
        response: Array,
        persons: pa.Array | None,
        sampler: Sampler | None,
    ) -> Collection:
        """Charge the budget and publish, to nobody but the estimator itself."""
        if self.visits != 1:
            study = _with_visits(study, self.visits, response, persons)
        batch = _batch_of(study, x, response, persons)
        prior_of(self.prior, study)  # a wrong one is found before anything is paid
        purpose = Purpose("estimator")
        statistics = None
        if study.visit_count == 1:
            statistics = statistics_of(study, batches_of(study, batch))
        if sampler is None:
            self._charge(study)
        if statistics is None:
            self.release_ = converse(study, partial(read_table, study, batch), purpose, sampler)
        else:
            self.release_ = privatise(study, statistics, purpose, sampler)
        self.study_ = study
        self.simulated_ = self.release_.simulated
        return Collection(study, (self.release_,))

    # The study.

    def _agreed(self, response_range: Any, *, intercept: bool, persons: bool) -> Study:  # noqa: ANN401
        """The study of the columns that `validate_data` has met."""
        unnamed = [f"x{k}" for k in range(self.n_features_in_)]
        names = [str(name) for name in getattr(self, "feature_names_in_", unnamed)]
        if self.ranges is None or response_range is None:
            raise StudyError(
                f"{self._given} must be given, such as ranges=(0, 100) or "
                "ranges={'age': (18, 100)} and response_range=(0, 30): they are public knowledge, "
                "and reading them off the data would leak it"
            )
        features = [
            {"name": name, "range": _pair(bounds)}
            for name, bounds in zip(names, self._ranges(names), strict=True)
        ]
        response_name = _unused("y", names)
        person = _unused("group", [*names, response_name]) if persons else None
        response = {
            "name": response_name,
            "range": _pair(response_range),
            "centred": intercept,
        }
        through_origin = [{"product": [{"of": name, "centred": False}]} for name in names]
        return Study.from_document(
            {
                "name": type(self).__name__,
                "relation": self.relation,
                "epsilon": float(self.epsilon),
                "delta": float(self.delta),
                "intercept": intercept,
                "person": person,
                "response": response,
                "features": features,
                "terms": [] if intercept else through_origin,
            }
        )

    def _ranges(self, names: list[str]) -> list[Any]:
        """The range of each feature, in their order."""
        if isinstance(self.ranges, Mapping):
            for wrong in sorted(set(map(str, self.ranges)) ^ set(names)):
                reason = "is not among the columns of X (an array's are x0, x1, …)"
                if wrong in names:
                    reason = "has no range"
                raise StudyError(f"ranges: {wrong!r} {reason}: give each column one")
            return [self.ranges[name] for name in names]
        shape = np.shape(self.ranges)
        if shape == (2,):
            return [self.ranges] * len(names)
        if shape != (len(names), 2):
            raise StudyError(
                "ranges must be one pair (low, high), "
                f"or one for each of the {len(names)} columns of X; its shape is {shape}"
            )
        return list(self.ranges)

    # The budget.

    def _charge(self, study: Study) -> None:
        """Charge the budget, and say what a fit is worth that nothing limits."""
        mu = study.mechanism().mu
        if self.budget is not None:
            self.budget.charge(mu, study.relation)
            return
        many = self._fits.count(mu)
        if self._fits.is_copy:
            warnings.warn(
                "this estimator came from a pickle, as in a worker process, and has no budget: "
                "its fits there and elsewhere are not added up, and each spends "
                f"epsilon = {study.epsilon:g}; share a tacit.Budget, with n_jobs=1",
                PrivacyWarning,
                4,
            )
        elif many > 1:
            together = epsilon_of(self._fits.mu, study.delta)
            warnings.warn(
                f"this estimator and its clones were fitted {many} times without a budget: "
                f"on the same rows that is epsilon = {together:.4g}, not {study.epsilon:g}; "
                "share a tacit.Budget between fits to set a limit",
                PrivacyWarning,
                4,
            )

    @property
    def _fits(self) -> "_Fits":
        """Every fit without a budget, shared with all clones."""
        if not hasattr(self, "_unlimited_fits"):
            self._unlimited_fits = _Fits()
        return self._unlimited_fits

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()
        return state | {"_unlimited_fits": self._fits}

    def __sklearn_clone__(self) -> Self:
        twin: Self = super().__sklearn_clone__()
        twin._unlimited_fits = self._fits
        return twin

    def __sklearn_tags__(self) -> Any:  # noqa: ANN401
        tags = super().__sklearn_tags__()
        tags.non_deterministic = True  # noise is fresh in every fit
        return tags


class _Fits:
    """μ of fits that no budget limits; copies are the list itself, but for those from a pickle."""

    def __init__(self) -> None:
        self._mus: list[float] = []
        self._lock: threading.Lock | None = threading.Lock()

    @property
    def is_copy(self) -> bool:
        """Whether it came from a pickle, so that others may be counting the same rows."""
        return self._lock is None

    @property
    def mu(self) -> float:
        """μ of all fits together."""
        return compose(self._mus)

    def count(self, mu: float) -> int:
        """Add a fit, and say how many there are."""
        with self._lock or nullcontext():
            self._mus.append(mu)
            return len(self._mus)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    def __getstate__(self) -> dict[str, Any]:
        return {"_mus": list(self._mus), "_lock": None}


def _batch_of(
    study: Study, x: Array, response: Array | None = None, persons: pa.Array | None = None
) -> pa.RecordBatch:
    """Arrays as a batch of the study's columns."""
    columns = {feature.name: column for feature, column in zip(study.features, x.T, strict=True)}
    if response is not None:
        columns[study.response.name] = response
    if study.person is not None and persons is not None:
        columns[study.person] = persons
    return pa.RecordBatch.from_pydict(columns)


def _persons(X: Any, groups: Any) -> pa.Array | None:  # noqa: ANN401, N803
    """Whose each row is, as text; None where each row is a person."""
    if groups is None:
        return None
    check_consistent_length(X, groups)
    labels = np.asarray(groups)
    if labels.ndim != 1:
        raise ValueError(f"groups must be one label for each row of X: its shape is {labels.shape}")
    persons = texts_of(labels.tolist())
    if persons.null_count:
        raise ValueError("groups must say whose each row is: it has missing labels; give them one")
    return persons


def _pair(bounds: Any) -> list[float]:  # noqa: ANN401
    try:
        low, high = (float(end) for end in bounds)
    except (TypeError, ValueError):
        raise StudyError(
            f"a range must be a pair of numbers, such as (0, 100); got {bounds!r}"
        ) from None
    return [low, high]


def _unused(name: str, names: list[str]) -> str:
    while name in names:
        name += "_"
    return name


def _with_visits(study: Study, visits: int, response: Array, persons: pa.Array | None) -> Study:
    """The study with several visits; n, of rows or persons, is public under replace-one."""
    if study.relation != "replace-one":
        raise StudyError("visits above 1 need relation='replace-one', which publishes n")
    n = len(response) if persons is None else len(persons.unique())
    document = study.model_dump(mode="json")
    return Study.from_document(document | {"visits": visits, "planned_rows": [n]})
