"""Tacit: one Bayesian linear regression over several data holders, without showing a row to anyone."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tacit.errors import TacitError
    from tacit.holder.ledger import Ledger
    from tacit.holder.publish import publish
    from tacit.release import Release
    from tacit.study import Study

_EXPORTS = {
    "Ledger": "tacit.holder.ledger",
    "Release": "tacit.release",
    "Study": "tacit.study",
    "TacitError": "tacit.errors",
    "publish": "tacit.holder.publish",
}
__all__ = ["Ledger", "Release", "Study", "TacitError", "publish"]


def __getattr__(name: str) -> Any:  # noqa: ANN401
    """Import what is asked for on first use, so that `import tacit` costs next to nothing."""
    if name not in _EXPORTS:
        message = f"module 'tacit' has no attribute {name!r}"
        raise AttributeError(message)
    return getattr(import_module(_EXPORTS[name]), name)
