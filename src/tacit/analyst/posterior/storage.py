"""Posterior files: Parquet, with the facts as JSON in its metadata; none of it names code."""

import json
import math
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from tacit.analyst.posterior.differing import Differing
from tacit.analyst.posterior.facts import PosteriorFacts
from tacit.analyst.posterior.family import Family
from tacit.analyst.posterior.laws import Draws, Mixture, Outcome, Student
from tacit.analyst.posterior.pooled import Pooled
from tacit.analyst.posterior.posterior import Contribution, Posterior
from tacit.analyst.posterior.source import Source
from tacit.analyst.posterior.source_facts import source_facts, source_from
from tacit.errors import PosteriorError, StudyError
from tacit.files import write_whole
from tacit.study import Study

KEY = b"tacit-posterior"
VERSION = 1
MOST_IN_FACTS = 200_000
"""Numbers in covariances up to which they stand among the facts."""
Array = NDArray[np.float64]
PosteriorT = TypeVar("PosteriorT", bound=Posterior)


def save(posterior: Posterior, path: Path) -> None:
    """Write the file; it appears whole or not at all."""
    columns, facts = _pack(posterior.outcome)
    facts |= {
        "version": VERSION,
        "study": posterior.study.document(),
        "method": posterior.method,
        "contributions": [asdict(contribution) for contribution in posterior.contributions],
        "caveat": posterior.caveat,
        "seed": posterior.seed,
        "warmup": posterior.warmup,
        "options": posterior.options,
        "software": posterior.software,
        "pooled": None if posterior.pooled is None else _plain(posterior.pooled),
    }
    if posterior.question is not None:
        facts["question"] = posterior.question.document()
    if posterior.family is not None:
        facts["family"] = _plain(posterior.family)
    if posterior.source is not None and posterior.source.is_small:
        facts["source"] = source_facts(posterior.source)
    buffer = pa.BufferOutputStream()
    pq.write_table(pa.table(columns).replace_schema_metadata({KEY: json.dumps(facts)}), buffer)
    write_whole(path, buffer.getvalue().to_pybytes())


def load(cls: type[PosteriorT], path: Path) -> PosteriorT:
    """Read the file, strictly enough that a damaged one is refused in one sentence."""
    try:
        table = pq.read_table(path)
        facts = json.loads((table.schema.metadata or {})[KEY])
        if facts["version"] != VERSION:
            raise PosteriorError(
                f"{path}: its version is {facts['version']}, this Tacit reads {VERSION}"
            )
        PosteriorFacts.model_validate(facts)
        study = Study.from_document(facts["study"])
        asked = facts.get("question")
        question = None if asked is None else Study.from_document(asked)
        d = (question or study).d
        family = _family(facts["family"], d) if "family" in facts else None
        return cls(
            study=study,
            method=str(facts["method"]),
            outcome=_unpack(table, facts, d),
            contributions=tuple(
                Contribution(**contribution) for contribution in facts["contributions"]
            ),
            caveat=str(facts["caveat"]),
            seed=facts["seed"],
            warmup=facts["warmup"],
            options=str(facts["options"]),
            software=str(facts["software"]),
            pooled=None if facts["pooled"] is None else _pooled(facts["pooled"], d),
            question=question,
            source=_source(facts, study, family),
            family=family,
        )
    except FileNotFoundError:
        raise PosteriorError(
            f"cannot read the posterior {str(path)!r}: there is no such file"
        ) from None
    except OSError as error:
        reason = error.strerror or "it is not a Parquet file"
        raise PosteriorError(f"cannot read the posterior {str(path)!r}: {reason}") from None
    except (pa.ArrowException, KeyError, ValueError, TypeError, StudyError):
        raise PosteriorError(
            f"{str(path)!r} is not a posterior that `tacit fit` wrote, or is damaged"
        ) from None


def _pack(outcome: Outcome) -> tuple[dict[str, Any], dict[str, Any]]:
    """Columns of the table, and facts."""
    if isinstance(outcome, Student):
        scale = None if outcome.scale is None else outcome.scale.tolist()
        degrees = None if math.isinf(outcome.degrees) else outcome.degrees
        closed = {
            "location": outcome.location.tolist(),
            "scale": scale,
            "degrees": degrees,
            "noise_variance": outcome.noise_variance,
        }
        return {"chain": pa.nulls(0, pa.int32())}, {"closed_form": closed}
    if isinstance(outcome, Mixture):
        return _pack_mixture(outcome)
    chains, draws, d = outcome.theta.shape
    columns: dict[str, Any] = {
        "chain": np.repeat(np.arange(chains, dtype=np.int32), draws),
        "draw": np.tile(np.arange(draws, dtype=np.int32), chains),
        "noise_variance": outcome.noise_variance.reshape(-1),
    }
    columns |= {f"theta[{k}]": outcome.theta[..., k].reshape(-1) for k in range(d)}
    rates = {block: rate.tolist() for block, rate in outcome.acceptance.items()}
    return columns, {"chains": chains, "acceptance": rates}


def _pack_mixture(outcome: Mixture) -> tuple[dict[str, Any], dict[str, Any]]:
    """Facts alone; of many holders or columns the matrices in a table, for which JSON is long."""
    columns: dict[str, Any] = {"chain": pa.nulls(0, pa.int32())}
    between = outcome.differing
    holders = np.zeros((0, *outcome.covariances.shape[1:]))
    if between is not None:
        holders = between.covariances
    if outcome.covariances.size + holders.size > MOST_IN_FACTS:
        of_holders = holders[:, 0] if between is None else between.locations
        columns = pack_gaussians(
            np.concatenate([outcome.locations, of_holders]),
            np.concatenate([outcome.covariances, holders]),
        )
        nothing = np.zeros(0)
        outcome = replace(outcome, locations=nothing, covariances=nothing)
        if between is not None:
            between = replace(between, locations=nothing, covariances=nothing)
    parts = _plain(outcome)
    parts["scales"] = parts.pop("covariances")  # as files of version 1 name them
    parts["differing"] = None if between is None else _plain(between)
    return columns, {"mixture": parts}


def pack_gaussians(locations: Array, covariances: Array) -> dict[str, Any]:
    """A row for every Gaussian: its mean, and its covariance from the diagonal on."""
    d = locations.shape[1]
    rows, places = np.triu_indices(d)
    triangles = covariances[:, rows, places]
    return {
        "location": pa.FixedSizeListArray.from_arrays(locations.ravel(), d),
        "triangle": pa.FixedSizeListArray.from_arrays(triangles.ravel(), len(rows)),
    }


def unpack_gaussians(table: pa.Table, d: int) -> tuple[Array, Array]:
    """Means and covariances as they were packed."""
    rows, places = np.triu_indices(d)
    triangles = _numbers(table["triangle"]).reshape(-1, len(rows))
    covariances = np.empty((len(triangles), d, d))
    covariances[:, rows, places] = triangles
    covariances[:, places, rows] = triangles
    return _numbers(table["location"]).reshape(-1, d), covariances


def _numbers(column: pa.ChunkedArray) -> Array:
    return np.concatenate([chunk.flatten().to_numpy() for chunk in column.chunks])


def _plain(record: Mixture | Differing | Pooled | Family) -> dict[str, Any]:
    return {
        name: value.tolist() if isinstance(value, np.ndarray) else value
        for name, value in vars(record).items()
    }


def _family(parts: dict[str, Any], d: int) -> Family:
    return Family(
        name=parts["name"],
        matrix=_array(parts["matrix"], d, d),
        offset=_array(parts["offset"], d),
        dispersion=float(parts["dispersion"]),
    )


def _source(facts: dict[str, Any], study: Study, family: Family | None) -> Source | None:
    if "source" not in facts:
        return None
    source = source_from(facts["source"], study.d)
    return source if family is None else replace(source, family=family.name)


def _pooled(parts: dict[str, Any], d: int) -> Pooled:
    return Pooled(
        rows=float(parts["rows"]),
        gram=_array(parts["gram"], d, d),
        noise_variance=float(parts["noise_variance"]),
        sampling=_array(parts["sampling"], d, d),
    )


def _array(values: object, *shape: int) -> Array:
    """Numbers of a file as an array of the shape that they must have."""
    return np.array(values, dtype=float).reshape(shape)


def _unpack(table: pa.Table, facts: dict[str, Any], d: int) -> Outcome:
    if "closed_form" in facts:
        return _student(facts["closed_form"], d)
    if "mixture" in facts:
        parts = facts["mixture"]
        if "triangle" in table.column_names:
            parts = _with_gaussians(parts, *unpack_gaussians(table, d))
        return _mixture(parts, d)
    chains = int(facts["chains"])
    columns = [table[f"theta[{k}]"].to_numpy().reshape(chains, -1) for k in range(d)]
    rates = facts["acceptance"].items()
    return Draws(
        theta=np.stack(columns, axis=-1),
        noise_variance=table["noise_variance"].to_numpy().reshape(chains, -1),
        acceptance={str(block): np.array(rate, dtype=float) for block, rate in rates},
    )


def _student(closed: dict[str, Any], d: int) -> Student:
    return Student(
        location=_array(closed["location"], d),
        scale=None if closed["scale"] is None else _array(closed["scale"], d, d),
        degrees=math.inf if closed["degrees"] is None else float(closed["degrees"]),
        noise_variance=float(closed["noise_variance"]),
    )


def _with_gaussians(parts: dict[str, Any], locations: Array, covariances: Array) -> dict[str, Any]:
    """The facts of a mixture with what stood in the table: its parts first, then holders."""
    k = len(parts["weights"])
    between = parts["differing"]
    if between is not None:
        between = between | {"locations": locations[k:], "covariances": covariances[k:]}
    return parts | {
        "locations": locations[:k],
        "scales": covariances[:k],
        "differing": between,
    }


def _mixture(parts: dict[str, Any], d: int) -> Mixture:
    k = len(parts["weights"])
    between = parts.get("differing")
    return Mixture(
        weights=_array(parts["weights"], k),
        locations=_array(parts["locations"], k, d),
        covariances=_array(parts["scales"], k, d, d),
        noise_variances=_array(parts["noise_variances"], k),
        warning=str(parts["warning"]),
        unshrunk=float(parts["unshrunk"]),
        differing=None if between is None else _differing(between, k, d),
    )


def _differing(parts: dict[str, Any], k: int, d: int) -> Differing:
    holders = len(parts["locations"])
    return Differing(
        spreads=_array(parts["spreads"], k, d),
        locations=_array(parts["locations"], holders, d),
        covariances=_array(parts["covariances"], holders, d, d),
        within=_array(parts["within"], d, d),
        ratios=_array(parts["ratios"], holders),
        told=_array(parts["told"], d).astype(bool),
        constant=_array(parts["constant"], d).astype(bool),
        alone=bool(parts["alone"]),
        outlying=tuple(int(place) for place in parts["outlying"]),
        **_together(parts, k, d),
    )


def _together(parts: dict[str, Any], k: int, d: int) -> dict[str, Array]:
    """How differences go together; nothing in files from before that was asked."""
    if parts.get("together") is None:
        return {}
    return {"together": _array(parts["together"], k), "shape": _array(parts["shape"], d, d)}
