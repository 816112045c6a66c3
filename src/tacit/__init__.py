"""Tacit: one Bayesian linear regression over several data holders, without showing a row to anyone."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tacit.analyst.collection import Collection, collect
    from tacit.analyst.fit import fit
    from tacit.analyst.method import Settings
    from tacit.analyst.posterior import Posterior
    from tacit.analyst.prior import Prior
    from tacit.analyst.scales import fix_scales
    from tacit.budget import Budget
    from tacit.errors import TacitError
    from tacit.estimator import PrivateBayesianRegression
    from tacit.holder.ledger import Ledger
    from tacit.holder.publish import publish
    from tacit.holder.scales import publish_scales
    from tacit.holder.stream import stream
    from tacit.release import Release
    from tacit.rows.sql import sql_table
    from tacit.scales import ScalesRelease
    from tacit.study import Study

_HOMES = {
    "Budget": "tacit.budget",
    "Collection": "tacit.analyst.collection",
    "Ledger": "tacit.holder.ledger",
    "Posterior": "tacit.analyst.posterior",
    "Prior": "tacit.analyst.prior",
    "PrivateBayesianRegression": "tacit.estimator",
    "Release": "tacit.release",
    "ScalesRelease": "tacit.scales",
    "Settings": "tacit.analyst.method",
    "Study": "tacit.study",
    "TacitError": "tacit.errors",
    "collect": "tacit.analyst.collection",
    "fit": "tacit.analyst.fit",
    "fix_scales": "tacit.analyst.scales",
    "publish": "tacit.holder.publish",
    "publish_scales": "tacit.holder.scales",
    "sql_table": "tacit.rows.sql",
    "stream": "tacit.holder.stream",
}
__all__ = [
    "Budget",
    "Collection",
    "Ledger",
    "Posterior",
    "Prior",
    "PrivateBayesianRegression",
    "Release",
    "ScalesRelease",
    "Settings",
    "Study",
    "TacitError",
    "collect",
    "fit",
    "fix_scales",
    "publish",
    "publish_scales",
    "sql_table",
    "stream",
]


def __getattr__(name: str) -> Any:  # noqa: ANN401
    """Import what is asked for on first use, so that `import tacit` costs next to nothing."""
    if name not in _HOMES:
        message = f"module 'tacit' has no attribute {name!r}"
        raise AttributeError(message)
    return getattr(import_module(_HOMES[name]), name)
