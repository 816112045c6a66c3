"""The standing audit: random studies, published as users publish them, attacked by a stranger.

For each study an optimiser looks for neighbouring tables whose statistics lie far apart
(routes.py). Both are published many times, and four questions are asked of what came out:

1. *distance*: how far apart are the tables, in units of the noise that the releases state? Further
   than the μ of the study's ε and δ, computed here from the theorem and not by Tacit, is an alarm.
2. *law*: is each released number its exact value plus Gaussian noise of the stated size, each on
   its own?
3. *recovery*: does a released number minus its exact value, over its sd, hit one value more than
   once, up to its sign? Noise that is cut off, shared, repeated or seeded does.
4. *hockey stick*: how well can the two tables be told apart on the likelihood ratio's own axis? A
   lower bound on μ after Clopper and Pearson; and on ε, at the δ where the bound is sharpest.

Random budgets are mostly so small that the fourth question, with few releases, has no power. So
some studies are audited in depth: one of each form, at a budget and with a number of releases at
which noise that is half too small is told apart.

Every bound is wrong with probability FALSE_ALARM at most, whatever the number of looks. The noise
of releases has no seed; studies and tables have one. `python tests/privacy/audit.py` prints what
each study gave, how long it took, and what would have been noticed.
"""

import argparse
import itertools
import math
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from random_studies import FORMS, extreme_study, random_study
from routes import ROUTES, Route
from scipy import optimize, special, stats

FALSE_ALARM = 1e-9
EQUAL = 1e-11
"""Relative difference at which two numbers are one."""
CHANCE = 2.0**-32
"""Two independent numbers lie on one step of their lattice with less than this probability."""
THRESHOLDS = 9
DEEP = {"epsilon": 3.0, "delta": 0.02}
"""The budget at which a study is audited in depth: μ is about 1.3."""
NEAR_CLAIM = 0.9
"""Share of the claim that its two tables must be apart."""


@dataclass(frozen=True)
class Finding:
    """What the audit of a study gave."""

    name: str
    alarms: tuple[str, ...]
    entries: int
    mu: float
    """What is claimed."""
    attained: float
    """Distance of the two tables over it."""
    bound: float
    """Lower bound on μ from the releases."""
    epsilon: float
    """Lower bound on ε, at `delta`."""
    delta: float
    noticed: float
    """Noise that is smaller by this factor would surely have been flagged by its law."""
    seconds: float


# What is claimed.


def delta_needed(epsilon: float, mu: float) -> float:
    """Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ), in logarithms (Balle and Wang 2018, theorem 8)."""
    first = special.log_ndtr(mu / 2 - epsilon / mu)
    second = epsilon + special.log_ndtr(-mu / 2 - epsilon / mu)
    return float(-np.expm1(second - first) * np.exp(first))


def mu_allowed(epsilon: float, delta: float) -> float:
    """The largest μ that is (ε, δ)-DP."""

    def excess(log_mu: float) -> float:
        return delta_needed(epsilon, math.exp(log_mu)) - delta

    return math.exp(optimize.brentq(excess, math.log(1e-7), math.log(1e3), xtol=1e-13))


# The audit of one study.


def audit(name: str, route: Route, runs: int, folder: Path) -> Finding:
    """Publish both tables so many times, and ask the four questions."""
    begun = time.monotonic()
    exact = [route.exact(rows) for rows in route.tables]
    released = [_releases(route, side, runs, folder) for side in (0, 1)]
    sds = released[0][1]
    errors = np.array([values - there for there, (values, _) in zip(exact, released, strict=True)])
    noise = errors.reshape(-1, len(sds)) / sds
    axis = (exact[0] - exact[1]) / sds
    mu = mu_allowed(route.epsilon, route.study.delta)
    distance = float(np.linalg.norm(axis))
    bound, epsilon, delta = _told_apart(released, exact, axis, sds)
    alarms = _alarms(noise, distance, bound, mu)
    return Finding(
        name=name,
        alarms=tuple(alarms),
        entries=len(sds),
        mu=mu,
        attained=distance / mu,
        bound=bound,
        epsilon=epsilon,
        delta=delta,
        noticed=_noticed(noise.size),
        seconds=time.monotonic() - begun,
    )


def _alarms(noise: np.ndarray, distance: float, bound: float, mu: float) -> Iterator[str]:
    if distance > mu * (1 + 1e-9):
        yield f"distance: {distance / mu:.3f} times what the noise hides"
    yield from _law(noise)
    if (pairs := coincidences(noise)) > most_by_chance(noise.size):
        yield f"recovery: {pairs} pairs of equal noise"
    if bound > mu:
        yield f"hockey stick: mu is at least {bound:.3f}, {mu:.3f} is claimed"


def _releases(route: Route, side: int, runs: int, folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """Entries of each release, and their stated sds."""
    entries = []
    sds = np.empty(0)
    for run in range(runs):
        place = folder / f"{side}-{run}"
        place.mkdir()
        values, sds = route.publish(route.tables[side], place)
        entries.append(values)
        shutil.rmtree(place)
    return np.array(entries), sds


def _law(noise: np.ndarray) -> Iterator[str]:
    """Mean squares of all, of each entry and of each release, and the shape of all."""
    runs, entries = noise.shape
    looks = 2 * (runs + entries + 1) + 1
    groups = {"all": noise.ravel()[None], "an entry": noise.T, "a release": noise}
    for name, group in groups.items():
        size = group.shape[1]
        squares = np.sum(group**2, axis=1)
        low = stats.chi2.ppf(FALSE_ALARM / looks, size)
        high = stats.chi2.isf(FALSE_ALARM / looks, size)
        if np.any((squares < low) | (squares > high)):
            worst = squares[np.argmax(np.abs(np.log(squares / size + 1e-300)))] / size
            yield f"law: the noise of {name} has {math.sqrt(worst):.3f} times its sd"
    if stats.kstest(noise.ravel(), "norm").pvalue < FALSE_ALARM / looks:
        yield "law: the noise is not Gaussian"


def coincidences(noise: np.ndarray) -> int:
    """How many neighbours in order of size are one number."""
    sizes = np.sort(np.abs(noise.ravel()))
    return int(np.count_nonzero(np.diff(sizes) <= EQUAL * sizes[1:]))


def most_by_chance(numbers: int) -> int:
    """As many pairs of equal numbers as there may be."""
    return int(stats.poisson.isf(FALSE_ALARM, CHANCE * numbers**2 / 2))


def _told_apart(released, exact, axis, sds) -> tuple[float, float, float]:
    """Lower bounds on μ, and on ε at a δ, from thresholds on the likelihood ratio's axis."""
    length = np.linalg.norm(axis)
    if length == 0:
        return 0.0, 0.0, 0.0
    within, without = (((values - exact[1]) / sds) @ (axis / length) for values, _ in released)
    level = FALSE_ALARM / (2 * THRESHOLDS)
    bounds = [(0.0, 0.0, 0.0)]
    for threshold in np.linspace(0, 1, THRESHOLDS) * length:
        likely = int(np.sum(within > threshold))
        least = stats.beta.ppf(level, likely, len(within) - likely + 1) if likely else 0.0
        rare = int(np.sum(without > threshold))
        most = stats.beta.isf(level, rare + 1, len(without) - rare) if rare < len(without) else 1.0
        mu = float(stats.norm.ppf(least) - stats.norm.ppf(most))
        if mu > 0:
            bounds.append((mu, *_sharpest(mu, least, most)))
    return max(bounds)


def _sharpest(mu: float, least: float, most: float) -> tuple[float, float]:
    """P(A) ≥ `least` and Q(A) ≤ `most` bound ε at each δ; the one whose Gaussian μ is the same."""
    deltas = least * np.linspace(0.02, 0.98, 25)
    epsilons = np.log((least - deltas) / most)
    gap = [abs(delta_needed(max(e, 0.0), mu) - d) for e, d in zip(epsilons, deltas, strict=True)]
    place = int(np.argmin(gap))
    return max(float(epsilons[place]), 0.0), float(deltas[place])


def _noticed(numbers: int) -> float:
    """A factor on all noise below which the law is flagged with probability 1 − 10⁻⁶."""
    limit = stats.chi2.ppf(FALSE_ALARM / (2 * numbers), numbers)
    return math.sqrt(limit / stats.chi2.isf(1e-6, numbers))


# A generator with a seed: two new processes would draw the same.

FRESH = """
import random, sys
import numpy
random.seed(1); numpy.random.seed(1)
from tacit.privacy.noise import secure_noise
print(secure_noise([1.0] * 8, -40))
"""


def same_in_two_processes(code: str = FRESH) -> bool:
    """Whether two new processes, seeded alike wherever one can seed, draw equal noise."""
    command = [sys.executable, "-c", code]
    first, second = (
        subprocess.run(command, capture_output=True, text=True, check=True).stdout for _ in range(2)
    )
    return bool(set(first.split()) & set(second.split()))


# All of it.


def studies(count: int, seed: int) -> Iterator[tuple[str, Route]]:
    """So many random studies, the forms in turn, and one whose noise has very different sizes."""
    rng = np.random.default_rng(seed)
    yield "extreme table", ROUTES["table"](extreme_study(), rng)
    for number, form in zip(range(count - 1), itertools.cycle(FORMS), strict=False):
        yield f"{number} {form}", ROUTES[form](random_study(rng, form), rng)


def deep_studies(seed: int) -> Iterator[tuple[str, Route]]:
    """A random study of each form, at a budget that few releases can test, tables far apart."""
    rng = np.random.default_rng(seed)
    for form in FORMS:
        route = ROUTES[form](random_study(rng, form, **DEEP), rng)
        while apart(route) < NEAR_CLAIM * mu_allowed(route.epsilon, route.study.delta):
            route = ROUTES[form](random_study(rng, form, **DEEP), rng)
        yield f"deep {form}", route


def apart(route: Route) -> float:
    """Distance of the two tables in units of the stated noise."""
    with tempfile.TemporaryDirectory(dir=memory()) as folder:
        _, sds = route.publish(route.tables[0], Path(folder))
    first, second = map(route.exact, route.tables)
    return float(np.linalg.norm((first - second) / sds))


def main() -> int:
    """Audit random studies; the exit code is 1 where anything was flagged."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--studies", type=int, default=81)
    parser.add_argument("--runs", type=int, default=40, help="releases of each of the two tables")
    parser.add_argument("--deep", type=int, default=400, help="the same, of studies in depth")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    begun = time.monotonic()
    broad = [(*each, options.runs) for each in studies(options.studies, options.seed)]
    deep = [(*each, options.deep) for each in deep_studies(options.seed)]
    findings = []
    with tempfile.TemporaryDirectory(dir=memory()) as folder:
        for number, (name, route, runs) in enumerate([*broad, *deep]):
            place = Path(folder) / str(number)
            place.mkdir()
            findings.append(audit(name, route, runs, place))
            _tell(findings[-1])
    alike = same_in_two_processes()
    _sum_up(findings, options.deep, time.monotonic() - begun, alike=alike)
    return int(alike or any(finding.alarms for finding in findings))


def memory() -> str | None:
    """A folder in memory where there is one: thousands of durable writes are quick there."""
    return "/dev/shm" if Path("/dev/shm").is_dir() else None  # noqa: S108


def _tell(finding: Finding) -> None:
    told = (
        f"{finding.name:16} {finding.entries:4} numbers  claimed mu {finding.mu:8.4f}  "
        f"tables apart {finding.attained:6.1%}  mu at least {finding.bound:6.3f}  "
        f"(epsilon {finding.epsilon:.2f} at delta {finding.delta:.2f})  "
        f"{finding.seconds:5.1f} s  {'; '.join(finding.alarms) or 'clear'}"
    )
    sys.stdout.write(told + "\n")


def _sum_up(findings: list[Finding], deep: int, seconds: float, *, alike: bool) -> None:
    flagged = sum(bool(finding.alarms) for finding in findings)
    attained = [finding.attained for finding in findings]
    noticed = [finding.noticed for finding in findings]
    shown = [finding.bound / finding.mu for finding in findings if finding.name.startswith("deep")]
    told = (
        f"{len(findings)} studies, {flagged} flagged, {seconds:.0f} s; "
        f"a false alarm about once in {1 / (FALSE_ALARM * len(findings)):.0e} runs\n"
        f"distance: the tables found are {min(attained):.0%} to {max(attained):.1%} of the claim "
        f"apart (median {np.median(attained):.1%}): noise too small by as much is flagged\n"
        f"law: noise of {np.median(noticed):.2f} times its stated sd is flagged "
        f"(worst {min(noticed):.2f})\n"
        "recovery: a few equal pairs are flagged; "
        f"two new processes draw {'THE SAME' if alike else 'different'} noise\n"
        f"hockey stick: in depth the releases alone show {min(shown):.0%} to {max(shown):.0%} of "
        f"the claimed mu; {deep} releases can show at most mu = {most_shown(deep):.1f}\n"
    )
    sys.stdout.write(told)


def most_shown(runs: int) -> float:
    """The bound where all releases of one table, and none of the other, pass a threshold."""
    level = FALSE_ALARM / (2 * THRESHOLDS)
    return float(2 * stats.norm.ppf(level ** (1 / runs)))


if __name__ == "__main__":
    sys.exit(main())
