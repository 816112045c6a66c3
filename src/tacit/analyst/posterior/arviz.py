"""The posterior as ArviZ takes it: an InferenceData before its version 1, a DataTree since."""

import warnings
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

from tacit.analyst.posterior.posterior import Posterior, UnitsName
from tacit.errors import PosteriorError


def to_arviz(posterior: Posterior, units: UnitsName, draws: int) -> Any:  # noqa: ANN401 - versions
    """A `posterior` group with `coefficient` by name, and `residual_sd`.

    Of the kind that `import arviz` works with where that is installed, else a DataTree.
    """
    to = posterior.units(units)
    theta, variance = posterior.chains(draws)
    group = {
        "coefficient": theta @ to.matrix.T + to.offset,
        "residual_sd": np.sqrt(variance) * to.response,
    }
    coords = {"term": list(posterior.names(units))}
    dims = {"coefficient": ["term"]}
    facts = {"method": posterior.method, "units": units, "study": posterior.study.hash}
    if _takes_inference_data():
        with warnings.catch_warnings():  # it announces its own future whenever it is imported
            warnings.simplefilter("ignore", FutureWarning)
            from arviz import from_dict as inference_data
        return inference_data(posterior=group, coords=coords, dims=dims, posterior_attrs=facts)
    try:
        from arviz_base import from_dict as data_tree
    except ModuleNotFoundError:
        raise PosteriorError("ArviZ is not installed: pip install 'tacit-dp[arviz]'") from None
    return data_tree({"posterior": group}, coords=coords, dims=dims, attrs={"posterior": facts})


def _takes_inference_data() -> bool:
    """Whether the ArviZ that is installed came before version 1."""
    try:
        return int(version("arviz").split(".")[0]) < 1
    except PackageNotFoundError:
        return False
