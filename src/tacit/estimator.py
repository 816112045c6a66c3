"""The scikit-learn face for a number: linear regression, holder and analyst in one process."""

from typing import Any, Self

import numpy as np
import pyarrow as pa

from tacit.analyst.fit import fit
from tacit.budget import Budget
from tacit.privacy.noise import Sampler
from tacit.privacy.sensitivity import Relation
from tacit.private_estimator import Array, PrivateEstimator
from tacit.scikit import RegressorMixin, validate_data


class PrivateBayesianRegression(RegressorMixin, PrivateEstimator):  # type: ignore[misc]
    """Bayesian linear regression whose every fit is (ε, δ)-differentially private.

    Parameters
    ----------
    epsilon, delta
        What one fit spends; delta well below one over the number of persons.
    ranges
        Public range of every feature: one pair for all, a pair for each, or a mapping from column
        names to pairs. It must not be read off the data. Values outside are clamped.
    response_range
        Public range of the response.
    fit_intercept
        Whether the model has a constant; without one it goes through the origin.
    relation
        What one person's change is: "replace-one" or "add-remove". A person is a row, or all rows
        with the same of the `groups` that `fit` is given.
    prior
        A `tacit.Prior`, the name of one, or the path of a prior file.
    budget
        A `tacit.Budget` that this and other estimators share: a fit that it does not admit is
        refused.
    visits
        How often the rows are asked, within the same budget: 6 is far more exact than 1 wherever
        rows are not few. Under replace-one alone, where their number is no secret.

    Attributes
    ----------
    coef_, intercept_, sigma_
        Posterior means of coefficients, constant and residual standard deviation, in the units of
        the data.
    posterior_, release_, study_
        The posterior, the noisy statistics that it was inferred from, and the study that both
        state.
    simulated_
        Whether the noise came from a seed (`simulate`).
    n_features_in_, feature_names_in_
        As in every estimator.

    Notes
    -----
    There is no `random_state`: scikit-learn's own estimators set one wherever they find it, and
    noise from a seed protects nobody. To repeat a fit, call `simulate`.
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        ranges: Any = None,  # noqa: ANN401
        response_range: Any = None,  # noqa: ANN401
        *,
        fit_intercept: bool = True,
        relation: Relation = "replace-one",
        prior: Any = "weak",  # noqa: ANN401
        budget: Budget | None = None,
        visits: int = 1,
    ) -> None:
        super().__init__(
            epsilon=epsilon,
            delta=delta,
            ranges=ranges,
            relation=relation,
            prior=prior,
            budget=budget,
            visits=visits,
        )
        self.response_range = response_range
        self.fit_intercept = fit_intercept

    def _fit(
        self,
        X: Any,  # noqa: ANN401, N803
        y: Any,  # noqa: ANN401
        persons: pa.Array | None,
        sampler: Sampler | None,
    ) -> Self:
        x, response = validate_data(self, X, y, dtype=np.float64, y_numeric=True)
        study = self._agreed(
            self.response_range,
            intercept=bool(self.fit_intercept),
            persons=persons is not None,
        )
        collection = self._release(study, x, response, persons, sampler)
        self.posterior_ = fit(collection, prior=self.prior)
        mean = self.posterior_.mean()
        self.intercept_ = float(mean[0]) if study.intercept else 0.0
        self.coef_ = mean[int(study.intercept) :]
        self.sigma_ = self.posterior_.residual_sd()
        return self

    def predict(
        self,
        X: Any,  # noqa: ANN401, N803
        *,
        return_std: bool = False,
    ) -> Array | tuple[Array, Array]:
        """Mean of the response at each row and, if asked for, its standard deviation.

        The latter is of coefficients and residual together.
        """
        design = self._design(X)
        centre, half = self.study_.response.mapping
        mean: Array = centre + half * (self.posterior_.mean("scaled") @ design)
        if not return_std:
            return mean
        spread = np.einsum("ai,ab,bi->i", design, self.posterior_.covariance("scaled"), design)
        return mean, half * np.sqrt(spread + self.posterior_.outcome.residual_variance())

    def __sklearn_tags__(self) -> Any:  # noqa: ANN401
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True  # on the few rows of a test there is little but noise
        return tags
