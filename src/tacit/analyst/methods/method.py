"""What every method is: a name, what it needs, and a function from evidence to an outcome."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from tacit.analyst.evidence import Evidence
from tacit.analyst.posterior.laws import Draws, Mixture, Outcome, Student
from tacit.analyst.prior import Prior

__all__ = [
    "FIXED_S_CAVEAT",
    "RESIDUAL_CAVEAT",
    "Draws",
    "Method",
    "Mixture",
    "Outcome",
    "SamplerProgress",
    "Settings",
    "Student",
]


@dataclass(frozen=True)
class SamplerProgress:
    """Where a sampler is: iterations done of all, and its acceptance rates so far."""

    done: int
    total: int
    acceptance: dict[str, float]


def unheard(_progress: SamplerProgress) -> None:
    """Nobody is told how far a sampler is."""


@dataclass(frozen=True)
class Settings:
    """How to run a sampler; closed-form methods heed `noise_variance` and `spread` alone."""

    chains: int = 4
    draws: int = 1000
    warmup: int = 1000
    seed: int = 0
    noise_variance: float | None = None  # σ² where a method holds it fixed
    sampler: Literal["gradient", "metropolis", "pseudo-marginal"] = (
        "gradient"  # how normal-x samples
    )
    spread: float | None = None  # τ where noise-aware holds it fixed; 0 for holders that are alike
    on_progress: Callable[[SamplerProgress], None] = unheard

    def assumed_variance(self, prior: Prior) -> float:
        """σ² for a method that does not learn it: as given, or its prior mean."""
        return prior.noise_variance if self.noise_variance is None else self.noise_variance


@dataclass(frozen=True)
class Method:
    """A method by name.

    `computed` methods answer at once; the others draw samples. `needs` lists the optional evidence
    a method cannot do without ("counts", "squares", "eigenvalues"), `samplers` the values of
    `Settings.sampler` among which it leaves a choice, and `caveat` is the sentence that every
    summary of its posterior carries.
    """

    name: str
    fit: Callable[[Evidence, Prior, Settings], Outcome]
    computed: bool
    needs: tuple[str, ...] = ()
    samplers: tuple[str, ...] = ()
    caveat: str = ""


RESIDUAL_CAVEAT = (
    "It does not read y'y: the residual sd, and with it intervals for a new response, rest "
    "mostly on the prior."
)
"""Caveat of every method that knows σ² from X'y alone."""
FIXED_S_CAVEAT = (
    "This method takes the noisy X'X for the true one: "
    f"where that noise matters, its intervals are too narrow. {RESIDUAL_CAVEAT}"
)
