"""What a posterior file states beside its draws: the JSON in the metadata of the Parquet file."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from tacit.analyst.families.links import FamilyName
from tacit.records import Name, Record, must
from tacit.study import Study

Vector = Annotated[tuple[float, ...], Field(strict=False)]
Matrix = Annotated[tuple[Vector, ...], Field(strict=False)]
Count = Annotated[int, Field(ge=0)]


class ContributionFacts(Record):
    """What one holder brought: its name, n where it is known, its budget, and its release."""

    holder: Name
    n: float | None
    epsilon: float
    delta: float
    release: str
    created: str
    simulated: bool


class PooledFacts(Record):
    """Estimates for all holders' rows together, in scaled units."""

    rows: float
    gram: Matrix
    noise_variance: float
    sampling: Matrix


class StudentFacts(Record):
    """A Student law, or a point where it has no scale; without degrees it is normal."""

    location: Vector
    scale: Matrix | None
    degrees: float | None
    noise_variance: float


class DifferingFacts(Record):
    """How far holders differ, beside the parts of a mixture."""

    spreads: Matrix
    locations: Matrix
    covariances: Annotated[tuple[Matrix, ...], Field(strict=False)]
    within: Matrix
    ratios: Vector
    told: Annotated[tuple[bool, ...], Field(strict=False)]
    constant: Annotated[tuple[bool, ...], Field(strict=False)]
    alone: bool
    outlying: Annotated[tuple[Count, ...], Field(strict=False)]
    together: Vector | None = None
    shape: Matrix | None = None


class MixtureFacts(Record):
    """A mixture of normal laws."""

    weights: Vector
    locations: Matrix
    scales: Annotated[tuple[Matrix, ...], Field(strict=False)]
    noise_variances: Vector
    warning: str
    unshrunk: float
    differing: DifferingFacts | None = None
    disagreement: float = 0.0  # of files written before each coefficient had its own spread


class EvidenceFacts(Record):
    """Noisy statistics, holder by holder, in scaled units, with the sd of their noise."""

    grams: Annotated[tuple[Matrix, ...], Field(strict=False)]
    moments: Matrix
    gram_sd: Vector
    off_diagonal_sd: Vector
    moment_sd: Vector
    counts: Vector | None
    count_sd: Vector | None
    squares: Vector | None
    square_sd: Vector | None
    eigenvalues: Vector | None
    eigenvalue_sd: Vector | None
    intercept: bool
    average: int
    whole_rows: bool
    delta: float
    error_maps: None = None  # a family's are found anew


class PriorFacts(Record):
    """A prior, in scaled units."""

    mean: Vector
    covariance: Matrix
    shape: float
    rate: float
    feature_scale: Matrix
    feature_degrees: float
    flat_noise: bool
    by_spread: bool
    released_features: bool = False  # absent from posteriors of before


class SettingsFacts(Record):
    """How a method was run."""

    chains: Count
    draws: Count
    warmup: Count
    seed: int
    noise_variance: float | None
    sampler: Literal["gradient", "metropolis"]
    spread: float | None


class FamilyFacts(Record):
    """A family and the map from a straight line's coefficients to its own."""

    name: FamilyName
    matrix: Matrix
    offset: Vector
    dispersion: float


class ReadingsFacts(Record):
    """How visits were read, which a family asks for."""

    starts: Matrix
    bounds: Vector
    weights: Vector
    rates: Vector
    bends: Vector
    radius: float
    first_map: Matrix
    first_start: Vector
    first_bound: float
    first_radius: float
    first_rate: float


class FrameFacts(Record):
    """What the columns of a study's later visits say of the study's own."""

    map: Matrix
    start: Vector
    first: Vector
    covariance: Matrix
    shared: float
    later: float
    gram: Matrix
    gram_sd: float
    whole: float
    rate: float
    level: float = 1.0  # absent from posteriors of before
    misfit: Matrix | None = None  # likewise
    unexpected: Matrix | None = None  # likewise
    shown: Matrix | None = None  # likewise
    shown_sd: float = 0.0
    attenuation: Vector | None = None  # likewise
    tail: float = 0.0  # likewise
    tail_sd: float = 0.0
    corrected: bool = False  # likewise
    readings: ReadingsFacts | None = None  # absent from posteriors of before


class SourceFacts(Record):
    """What a posterior was inferred from, for all columns of the study."""

    evidence: EvidenceFacts
    prior: PriorFacts
    prior_name: str
    holders: Literal["differ", "common", "separate"]
    settings: SettingsFacts
    frame: FrameFacts | None = None


class PosteriorFacts(Record):
    """The whole metadata; exactly one of closed_form, mixture and chains is there."""

    version: Literal[1]
    study: Study
    method: str
    contributions: Annotated[tuple[ContributionFacts, ...], Field(strict=False)]
    caveat: str
    seed: int | None
    warmup: Count | None
    options: str
    software: str
    pooled: PooledFacts | None
    question: Study | None = None
    source: SourceFacts | None = None
    family: FamilyFacts | None = None
    closed_form: StudentFacts | None = None
    mixture: MixtureFacts | None = None
    chains: Count | None = None
    acceptance: dict[str, Vector] | None = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        laws = (self.closed_form, self.mixture, self.chains)
        must(sum(law is not None for law in laws) == 1, "a posterior must have exactly one law")
        must(
            (self.chains is None) == (self.acceptance is None),
            "chains and acceptance go together",
        )
        return self
