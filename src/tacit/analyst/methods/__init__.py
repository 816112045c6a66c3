"""The methods by name, one file each; a method's file is imported when it is asked for."""

from importlib import import_module

from tacit.analyst.methods.method import Method
from tacit.errors import MethodError

METHODS = {
    "noise-aware": "tacit.analyst.methods.noise_aware",
    "normal-x": "tacit.analyst.methods.normal_x",
    "fixed-s": "tacit.analyst.methods.fixed_s",
    "exact-fixed-s": "tacit.analyst.methods.exact_fixed_s",
    "fixed-s-fast": "tacit.analyst.methods.fixed_s_fast",
    "bernstein-sheldon": "tacit.analyst.methods.bernstein_sheldon",
    "ada-ssp": "tacit.analyst.methods.ada_ssp",
    "non-private": "tacit.analyst.methods.non_private",
}
PAPER_NAMES = {
    "MCMC-normalX": "normal-x",
    "MCMC-fixedS": "fixed-s",
    "Bayes-fixedS-fast": "fixed-s-fast",
    "MCMC-B&S": "bernstein-sheldon",
    "adaSSP": "ada-ssp",
}
"""What Alparslan, Yıldırım and Birbil (2023) call methods that are here under another name."""


def method_named(name: str) -> Method:
    """The method of that name, or of the paper's name for it."""
    ours = PAPER_NAMES.get(name, name) if isinstance(name, str) else ""
    if ours not in METHODS:
        raise MethodError(
            f"method must be one of {', '.join(METHODS)}, or the paper's name for one "
            f"({', '.join(PAPER_NAMES)}); got {name!r}"
        )
    method: Method = import_module(METHODS[ours]).METHOD
    return method
