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


def method_named(name: str) -> Method:
    """The method of that name."""
    if name not in METHODS:
        raise MethodError(f"method must be one of {', '.join(METHODS)}; got {name!r}")
    method: Method = import_module(METHODS[name]).METHOD
    return method
