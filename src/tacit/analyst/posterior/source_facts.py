"""A source as plain values, and back: what a posterior's file keeps of it."""

from dataclasses import fields, replace
from typing import Any

import numpy as np

from tacit.analyst.evidence import Evidence
from tacit.analyst.frame import Frame
from tacit.analyst.methods.method import Settings
from tacit.analyst.posterior.source import Source
from tacit.analyst.prior import Prior
from tacit.analyst.readings import Readings

TWO_AXES = (
    "moments",
    "covariance",
    "feature_scale",
    "map",
    "misfit",
    "unexpected",
    "gram",
    "shown",
    "starts",
    "first_map",
)
AXES = {"grams": 3} | dict.fromkeys(TWO_AXES, 2)
"""Axes of arrays that have more than one."""
VISITED = ("column_sd", "frame", "readings", "widths", "shares", "surely", "quiet")
"""Fields that only a fit of visits or of a family sets: a source has them empty, or as usual."""


def source_facts(source: Source) -> dict[str, Any]:
    """A source as plain values."""
    facts: dict[str, Any] = {
        "evidence": _plain(source.evidence),
        "prior": _plain(source.prior),
        "prior_name": source.prior_name,
        "holders": source.holders,
        "settings": _plain(source.settings),
    }
    frame = source.evidence.frame
    if frame is not None:
        facts["frame"] = _plain(frame)
        if frame.readings is not None:
            facts["frame"]["readings"] = _plain(frame.readings)
    return facts


def source_from(facts: dict[str, Any], d: int) -> Source:
    """A source from plain values; ValueError where arrays do not go together."""
    frame = _frame(facts["frame"], d) if facts.get("frame") else None
    evidence = replace(Evidence(**_filled(Evidence, facts["evidence"])), frame=frame)
    prior = Prior(**_filled(Prior, facts["prior"]))
    shapes = {array.shape[1:] for array in (evidence.grams, prior.covariance[None])}
    if shapes != {(d, d)} or evidence.moments.shape != evidence.grams.shape[:2]:
        raise ValueError("the source's arrays do not fit the study")
    return Source(
        evidence=evidence,
        prior=prior,
        prior_name=str(facts["prior_name"]),
        holders=facts["holders"],
        settings=Settings(**facts["settings"]),
    )


def _frame(facts: dict[str, Any], d: int) -> Frame:
    """A frame from plain values."""
    rest = facts | {"readings": None}
    frame = Frame(**_filled(Frame, rest))
    if {frame.map.shape, frame.covariance.shape, frame.gram.shape} != {(d, d)}:
        raise ValueError("the source's frame does not fit the study")
    if not facts.get("readings"):
        return frame
    readings = Readings(**_filled(Readings, facts["readings"]))
    if not readings.suit(d):
        raise ValueError("the source's readings do not fit the study")
    return replace(frame, readings=readings)


def _plain(record: Evidence | Prior | Settings | Frame | Readings) -> dict[str, Any]:
    return {
        field.name: value.tolist() if isinstance(value, np.ndarray) else value
        for field in fields(record)
        if field.name not in VISITED and not callable(value := getattr(record, field.name))
    }


def _filled(
    kind: type[Evidence] | type[Prior] | type[Frame] | type[Readings], facts: dict[str, Any]
) -> dict[str, Any]:
    """Fields of a record: lists become arrays with as many axes as they must have."""
    filled = {}
    for name, value in facts.items():
        if not isinstance(value, list):
            filled[name] = value
            continue
        array = np.array(value, dtype=float)
        if array.ndim != AXES.get(name, 1):
            raise ValueError(f"{kind.__name__}: {name} has another shape")
        filled[name] = array
    return filled
