"""Few holders: which bars of `holders_differ.py` can anybody meet together?

A coefficient's interval is to hold the average where holders differ (85 % at J = 5), and to be
at most 1.15 times as wide, where they do not, as for a fit that knows so (1.1 in the mean of all
four coefficients where none differs). Here somebody answers who knows more than any method: the
error s_j of every holder's own estimate, and τ itself, 0.05 in scaled units. Only *whether* a
coefficient differs must be told from the estimates y_j ~ N(θ, s_j²) or N(θ, s_j² + τ²).

`at ε`: it differs with probability p beforehand; Bayes' rule mixes the two posteriors of θ, and
the interval is the mixture's. A small p makes intervals narrow, a large one makes them cover.

`least`: the least width where the coefficient does not differ, of any rule whatever that moves
with the estimates, interval or not, Bayes or not, whose sets hold θ with a probability of at
least a where it does not differ and b where it does. Let f_0 and f_1 be the densities of the
estimates and w the known width. For any λ_0, λ_1 ≥ 0 and any sets A that hold with a and b at least

    E_0|A|/w ≥ λ_0 a + λ_1 b − E_0 ∫ (λ_0 f_0(θ | y) + λ_1 f_1(θ | y) m_1(y)/m_0(y) − 1/w)₊ dθ,

with m the marginal densities under a flat prior; the largest right-hand side is reached by A where
the bracket is positive. No rule does better, whatever prior or correction it rests on.

`most`: the other way round, the largest share in which any rule can hold a slope that differs, if
it is as narrow where none differs as is wanted there: 1.1 in the mean of all four coefficients,
slopes being treated alike. For any λ_0, μ ≥ 0

    b ≤ μW − λ_0 a + E_0 ∫ (λ_0 f_0(θ | y) + f_1(θ | y) m_1(y)/m_0(y) − μ/w)₊ dθ.

Beside it the share that posteriors of `at ε` have at that width.

`patterns`: all four coefficients together, for somebody who knows besides that either none
differs, or the intercept, or one slope, or all, with the weights shown; coverage of the slope that
differs, of a new holder's coefficients, and widths of what does not differ, as `holders_differ.py`
has them.

Errors are those of `holders_differ.py`: what a holder's release tells of a coefficient, its others
being unknown.

    python benchmarks/holders_told.py [--quick] [--check] [--out DIR]

No bar: the tables say which bars can be met together. About a minute.
"""

import math
from dataclasses import dataclass

import numpy as np
from frame import Bench
from holders_differ import KINDS, REACH, SPREAD, D, Design, released, sizes_of, statistics, study_of
from scipy.optimize import minimize
from scipy.special import ndtr

from tacit.analyst.methods.noise_aware.facts import facts_of
from tacit.analyst.methods.noise_aware.model import Model
from tacit.analyst.methods.noise_aware.profile import Profile
from tacit.analyst.prior import Prior

SLOPE = 1
TAU = SPREAD / REACH
RESIDUAL_VARIANCE = (0.25 / REACH) ** 2
CHANCES = (0.0, 0.1, 0.2, 0.35, 0.5, 0.7, 1.0)
WANTED = (0.85, 0.85)
"""Least coverage where the coefficient does not differ, and where it does."""
ALLOWED = (4 * 1.1 - 0.875) / 3
"""Most width of a slope where none differs, over the known one: 1.1 in the mean of three slopes and
an intercept, which has 0.875 at least, as 85 % of a normal law have of 90 %."""
PATTERNS = np.array([[0] * 4, [1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1], [1] * 4])
"""Which coefficients differ: none, the intercept, one of three slopes, all."""
WEIGHTS = ((1, 1, 1, 1), (2, 1, 2, 2), (1, 1, 3, 2), (1, 1, 7, 1), (2, 1, 3, 4))
"""Of the four patterns."""
USUAL = 1.6448536269514722
"""90 % of a normal law lie within so many sds."""
STEPS = 50
"""Halvings that find a quantile."""
PLACES = np.linspace(-1.0, 1.0, 401)
FURTHEST = 6.0
"""Places of θ that sets are made of reach so many known widths from the estimate."""


def main() -> None:
    bench = Bench(__doc__, quick="few designs and draws")
    options = bench.options()
    designs = 4 if options.quick else 24
    draws = 100 if options.quick else 1_000
    errors = {
        (holders, sizes, epsilon): [
            errors_of(run, holders, sizes, epsilon) for run in range(designs)
        ]
        for holders in (5, 10)
        for sizes in ("equal", "unequal")
        for epsilon in (1.0, 3.0)
    }
    for epsilon in (1.0, 3.0):
        show_chances(bench, errors, epsilon, draws)
    show_least(bench, errors, draws // 4)
    show_most(bench, 10 if options.quick else 300, draws // 50)
    show_patterns(bench, errors, draws // 10)
    bench.finish()


Errors = dict[tuple[int, str, float], list[np.ndarray]]
"""s_j of every coefficient, (J, d) for each design, by J, sizes and ε."""


def errors_of(run: int, holders: int, sizes: str, epsilon: float) -> np.ndarray:
    """s_j, for holders as `holders_differ.py` has them, (J, d)."""
    rng = np.random.default_rng([run, holders])
    theta = np.append(0.2 * rng.normal(), 0.3 * rng.normal(size=D - 1))
    own = theta + SPREAD * rng.normal(size=(holders, D))
    study = study_of(epsilon)
    rows = sizes_of(rng, Design(holders, "all", sizes))
    evidence = released(study, statistics(rng, study, own, rows), rng)
    model = Model(facts_of(evidence, Prior.weak(D)), 1.0)
    model.gaussian(RESIDUAL_VARIANCE)
    told = Profile.of(model, model.solve(RESIDUAL_VARIANCE)).normals[:, :D, :D]
    variances = np.diagonal(np.linalg.inv(told + 1e-9 * np.eye(D)), axis1=1, axis2=2)
    return np.sqrt(variances)


# One slope: it differs, with probability p.


def show_chances(bench: Bench, errors: Errors, epsilon: float, draws: int) -> None:
    columns = {"sizes": "<8", "s over tau": ".2f", "p": "g"}
    columns |= {"held where it differs": ".1f%", "width where it does not": ".2f"}
    table = bench.table(f"at {epsilon:g}", columns)
    for sizes in ("equal", "unequal"):
        slopes = [one[:, SLOPE] for one in errors[5, sizes, epsilon]]
        usual = float(np.median(slopes)) / TAU
        for chance in CHANCES:
            held, width = best(slopes, chance, draws)
            table.row(sizes, usual, chance, held, width)


def best(errors: list[np.ndarray], chance: float, draws: int) -> tuple[float, float]:
    """Share of intervals that hold θ where it differs, and their width where it does not."""
    rng = np.random.default_rng(0)
    held, widths = [], []
    for one in errors:
        apart = np.sqrt(one**2 + TAU**2) * rng.normal(size=(draws, len(one)))
        low, high = interval(apart, one, chance)
        held.append(np.mean((low < 0) & (high > 0)))
        low, high = interval(one * rng.normal(size=(draws, len(one))), one, chance)
        widths.append(np.mean(high - low) / known_width(one))
    return float(np.mean(held)), float(np.mean(widths))


def known_width(errors: np.ndarray) -> np.ndarray:
    """Width of the 90 % interval of θ that does not differ, errors along the last axis."""
    return np.asarray(2 * USUAL / np.sqrt(np.sum(1 / errors**2, axis=-1)))


def interval(estimates: np.ndarray, errors: np.ndarray, chance: float) -> tuple[np.ndarray, ...]:
    """Ends of the mixture's 90 % interval, for every draw."""
    laws = laws_of(estimates, errors)
    with np.errstate(divide="ignore"):  # of a chance of 0
        logs = laws.logs + np.log([1 - chance, chance])
    shares = np.exp(logs - logs.max(axis=-1, keepdims=True))
    shares = shares / shares.sum(axis=-1, keepdims=True)
    return tuple(quantile(shares, laws.means, laws.sds, level) for level in (0.05, 0.95))


@dataclass(frozen=True)
class Laws:
    """θ's law where a coefficient does not differ, and where it does: the last axis."""

    means: np.ndarray
    sds: np.ndarray
    logs: np.ndarray  # log-likelihood with θ integrated over a flat prior


def laws_of(estimates: np.ndarray, errors: np.ndarray) -> Laws:
    """Of estimates, and errors, with holders along their last axis."""
    weights = 1 / (errors[..., None, :] ** 2 + np.array([[0.0], [TAU**2]]))
    total = weights.sum(axis=-1)
    means = np.sum(weights * estimates[..., None, :], axis=-1) / total
    left = np.sum(weights * (estimates[..., None, :] - means[..., None]) ** 2, axis=-1)
    logs = 0.5 * (np.log(weights).sum(axis=-1) - np.log(total) - left)
    return Laws(means=means, sds=np.broadcast_to(total**-0.5, means.shape), logs=logs)


def quantile(shares: np.ndarray, means: np.ndarray, sds: np.ndarray, level: float) -> np.ndarray:
    """Of mixtures of Gaussians, whose parts lie along the last axis."""
    low = (means - 6 * sds).min(axis=-1)
    high = (means + 6 * sds).max(axis=-1)
    for _ in range(STEPS):
        middle = (low + high) / 2
        below = np.sum(shares * ndtr((middle[..., None] - means) / sds), axis=-1) < level
        low = np.where(below, middle, low)
        high = np.where(below, high, middle)
    return (low + high) / 2


# One slope: any rule whatever.


def show_least(bench: Bench, errors: Errors, draws: int) -> None:
    columns = {"J": "d", "sizes": "<8", "epsilon": "g", "least width": ".2f"}
    columns |= {"held alike": ".1f%", "held differing": ".1f%"}
    table = bench.table("least", columns)
    for (holders, sizes, epsilon), designs in errors.items():
        slopes = np.repeat([one[:, SLOPE] for one in designs], draws, axis=0)
        table.row(holders, sizes, epsilon, *least(slopes))


@dataclass(frozen=True)
class Drawn:
    """Estimates that were drawn: densities of θ around them, in known widths."""

    alike: np.ndarray  # f_0, (draw, place)
    differing: np.ndarray  # f_1
    odds: np.ndarray  # m_1/m_0, (draw, 1)

    @classmethod
    def of(cls, estimates: np.ndarray, errors: np.ndarray) -> "Drawn":
        laws = laws_of(estimates, errors)
        width = known_width(errors)
        places = laws.means[:, :1] + FURTHEST * width[:, None] * PLACES
        apart = (places[:, :, None] - laws.means[:, None, :]) / laws.sds[:, None, :]
        scale = width[:, None, None] / (laws.sds[:, None, :] * math.sqrt(2 * math.pi))
        heights = scale * np.exp(-0.5 * apart**2)
        odds = np.exp(laws.logs[:, 1:] - laws.logs[:, :1])
        return cls(alike=heights[:, :, 0], differing=heights[:, :, 1], odds=odds)

    def within(self, prices: np.ndarray) -> np.ndarray:
        """Which places belong to the set, at some λ."""
        inside: np.ndarray = prices[0] * self.alike + prices[1] * self.odds * self.differing > 1
        return inside


@dataclass(frozen=True)
class Both:
    """Estimates drawn where a slope does not differ, and where it does."""

    alike: Drawn
    differing: Drawn

    @classmethod
    def of(cls, errors: np.ndarray, seed: int) -> "Both":
        rng = np.random.default_rng(seed)
        alike = Drawn.of(errors * rng.normal(size=errors.shape), errors)
        apart = np.sqrt(errors**2 + TAU**2) * rng.normal(size=errors.shape)
        return cls(alike=alike, differing=Drawn.of(apart, errors))

    def told(self, prices: np.ndarray) -> np.ndarray:
        """Width, and coverage where θ does not differ and where it does, (3, draw).

        A rule moves with the estimates, so that it holds θ as often as the sets' mean share of the
        law of θ.
        """
        one = self.alike.within(prices)
        other = self.differing.within(prices)
        sums = [one, one * self.alike.alike, other * self.differing.differing]
        step = FURTHEST * (PLACES[1] - PLACES[0])
        return step * np.array([part.sum(axis=1) for part in sums])


def least(errors: np.ndarray) -> tuple[float, float, float]:
    """The bound on widths where θ does not differ, and coverage of the sets that reach it."""
    both = Both.of(errors, 1)

    def bound(prices: np.ndarray) -> float:
        width, *held = both.told(prices).mean(axis=1)
        return float(width + prices @ (np.array(WANTED) - held))

    start = np.array([0.5, -1.0])
    top = np.exp(minimize(lambda logs: -bound(np.exp(logs)), start, method="Nelder-Mead").x)
    _, held_alike, held_differing = both.told(top).mean(axis=1).tolist()
    return bound(top), held_alike, held_differing


def show_most(bench: Bench, designs: int, draws: int) -> None:
    columns = {"J": "d", "sizes": "<8", "epsilon": "g", "width": ".3f"}
    columns |= {"held at most": ".1f%", "error": ".1f%", "of posteriors": ".1f%"}
    table = bench.table("most", columns)
    for sizes in ("equal", "unequal"):
        share, error = most_held(5, sizes, 1.0, designs, draws)
        slopes = slopes_of(5, sizes, 1.0, designs)
        table.row(5, sizes, 1.0, ALLOWED, share, error, best_posterior(slopes, draws))


def slopes_of(holders: int, sizes: str, epsilon: float, designs: int) -> list[np.ndarray]:
    """s_j of the slope, for so many studies."""
    return [errors_of(run, holders, sizes, epsilon)[:, SLOPE] for run in range(designs)]


def most_held(
    holders: int, sizes: str, epsilon: float, designs: int = 300, draws: int = 20
) -> tuple[float, float]:
    """How often any rule can hold a slope that differs at the widths wanted; standard error."""
    slopes = slopes_of(holders, sizes, epsilon, designs)
    return most(np.repeat(slopes, draws, axis=0), designs)


def most(errors: np.ndarray, designs: int) -> tuple[float, float]:
    """The bound on coverage where θ differs, and its standard error over designs.

    Any prices give a bound: they are found with some draws, and it is computed with others.
    """

    def bounds(both: Both, prices: np.ndarray) -> np.ndarray:
        width, held_alike, held_differing = both.told(prices)
        spare = ALLOWED - width + prices[0] * (held_alike - WANTED[0])
        return np.asarray(spare / prices[1] + held_differing)

    first = Both.of(errors, 1)
    start = np.array([0.5, -1.0])
    logs = minimize(lambda logs: bounds(first, np.exp(logs)).mean(), start, method="Nelder-Mead").x
    told = bounds(Both.of(errors, 3), np.exp(logs)).reshape(designs, -1).mean(axis=1)
    return float(told.mean()), float(told.std(ddof=1) / math.sqrt(designs))


def best_posterior(slopes: list[np.ndarray], draws: int) -> float:
    """Coverage where it differs, of the mixture whose width is allowed where it does not."""
    tried = np.array([best(slopes, chance, draws) for chance in (0.05, 0.1, 0.15, 0.2, 0.3)])
    return float(np.interp(ALLOWED, tried[:, 1], tried[:, 0]))


# All coefficients, of which four patterns are known.


def show_patterns(bench: Bench, errors: Errors, draws: int) -> None:
    columns = {"J": "d", "sizes": "<8", "none : intercept : slope : all": "<22"}
    columns |= {"common": ".2f", "told": ".2f", "slope held": ".1f%"}
    columns |= {"slope new": ".1f%", "all held": ".1f%", "all new": ".1f%"}
    table = bench.table("patterns", columns)
    for holders in (5, 10):
        for sizes in ("equal", "unequal"):
            for weights in WEIGHTS:
                told = {
                    kind: answered(errors[holders, sizes, 1.0], kind, weights, draws)
                    for kind in KINDS
                }
                table.row(
                    holders,
                    sizes,
                    " : ".join(map(str, weights)),
                    told["none"].width,
                    told["intercept"].width,
                    told["slope"].held,
                    told["slope"].new,
                    told["all"].held,
                    told["all"].new,
                )


@dataclass(frozen=True)
class Answered:
    """Coverage of what differs, of the same of a new holder, and widths of what does not."""

    held: float
    new: float
    width: float


def answered(errors: list[np.ndarray], kind: str, weights: tuple[int, ...], draws: int) -> Answered:
    rng = np.random.default_rng(2)
    s = np.repeat(errors, draws, axis=0).swapaxes(1, 2)
    differ = np.isin(np.arange(D), KINDS[kind])
    sds = np.sqrt(s**2 + np.where(differ, TAU, 0.0)[:, None] ** 2)
    laws = laws_of(sds * rng.normal(size=s.shape), s)
    log_patterns = np.einsum("nk,pk->np", laws.logs[:, :, 1] - laws.logs[:, :, 0], PATTERNS)
    none, intercept, slope, every = weights
    likely = np.array([none, intercept, slope / 3, slope / 3, slope / 3, every])
    log_patterns = log_patterns + np.log(likely)
    patterns = np.exp(log_patterns - log_patterns.max(axis=1, keepdims=True))
    chance = patterns @ PATTERNS / patterns.sum(axis=1, keepdims=True)
    shares = np.stack([1 - chance, chance], axis=-1)
    low, high = (quantile(shares, laws.means, laws.sds, level) for level in (0.05, 0.95))
    wider = np.sqrt(laws.sds**2 + np.array([0.0, TAU]) ** 2)
    least_new, most_new = (quantile(shares, laws.means, wider, level) for level in (0.05, 0.95))
    new = ndtr(most_new / TAU) - ndtr(least_new / TAU)
    held = (low < 0) & (high > 0)
    return Answered(
        held=float(np.mean(held[:, differ])) if differ.any() else math.nan,
        new=float(np.mean(new[:, differ])) if differ.any() else math.nan,
        width=math.nan
        if differ.all()
        else float(((high - low) / known_width(s))[:, ~differ].mean()),
    )


if __name__ == "__main__":
    main()
