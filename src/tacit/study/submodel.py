"""Sub-models: the study that would have been agreed had some of its terms not been there.

A term is named as a formula names it: "age", "bmi^2", "age:sex". A sub-model keeps the intercept
and, with a term, every lower one that the study has: what "age:sex" means without "age" depends on
where age is centred.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tacit.errors import StudyError
from tacit.study.columns import Response
from tacit.study.form import ReleaseForm
from tacit.study.responses import all_responses, place_of
from tacit.study.study import INTERCEPT, Study
from tacit.study.terms import Part, Product


@dataclass(frozen=True)
class Submodel:
    """Some of a study's columns, as a study of its own."""

    study: Study  # what is asked: fewer terms, and no more features than these hold
    places: tuple[int, ...]  # of its columns among those of the whole study
    left_out: tuple[str, ...]  # terms


def term_name(product: Product) -> str:
    """A term as a formula names it."""
    return ":".join(_factor_name(part) for part in product.parts)


def term_names(study: Study) -> tuple[str, ...]:
    """Every term of a study, each once."""
    return tuple(dict.fromkeys(map(term_name, study.products)))


def lower_terms(study: Study) -> dict[str, tuple[str, ...]]:
    """Of every term, those of the study that are lower: fewer factors, or lower degrees."""
    degrees = {term_name(product): _degrees(product) for product in study.products}
    return {
        name: tuple(
            other for other, lower in degrees.items() if other != name and _is_below(lower, own)
        )
        for name, own in degrees.items()
    }


def submodel(
    study: Study,
    only: Sequence[str] = (),
    without: Sequence[str] = (),
    response: str | None = None,
) -> Submodel:
    """The sub-model of `only` these terms, or of all `without` those; of all for neither.

    Of a study of several responses it is that of one of them.
    """
    asked_response = all_responses(study)[place_of(study, response)]
    if only and without:
        raise StudyError("only and without exclude each other: name what is kept, or what is not")
    names = term_names(study)
    asked = _known(names, only or without, "only" if only else "without")
    kept = tuple(name for name in names if (name in asked) == bool(only))
    _check_lower(study, kept, "only" if only else "without")
    return _of_terms(study, kept, asked_response)


def of_terms(study: Study, kept: Iterable[str], response: Response | None = None) -> Submodel:
    """The sub-model of these terms, the intercept alone for none; lower terms must be there."""
    wanted = set(kept)
    names = term_names(study)
    _known(names, sorted(wanted), "terms")
    chosen = tuple(name for name in names if name in wanted)
    _check_lower(study, chosen, "terms")
    return _of_terms(study, chosen, response or study.response)


def _of_terms(study: Study, kept: tuple[str, ...], response: Response) -> Submodel:
    if not kept and not study.intercept:
        raise StudyError("a sub-model of a study without intercept must keep a term")
    chosen = [product for product in study.products if term_name(product) in kept]
    used = {part.factor.of for product in chosen for part in product.parts}
    terms = [
        term
        for term, product in zip(study.terms, study.products, strict=bool(study.terms))
        if product in chosen
    ]
    features = [feature for feature in study.features if feature.name in used]
    asked = Study(
        name=study.name,
        relation=study.relation,
        epsilon=study.epsilon,
        delta=study.delta,
        intercept=study.intercept,
        missing=study.missing,
        response=response,
        features=tuple(features),
        terms=tuple(terms),
        release=ReleaseForm(row_radius=study.row_radius),
    )
    columns = {column for product in chosen for column in product.columns}
    if study.intercept:
        columns.add(INTERCEPT)
    return Submodel(
        study=asked,
        places=tuple(k for k, column in enumerate(study.columns) if column in columns),
        left_out=tuple(name for name in term_names(study) if name not in kept),
    )


def named_terms(asked: str | Sequence[str], names: Sequence[str]) -> list[str]:
    """Terms as somebody lists them, one by one or with commas between."""
    listed = [asked] if isinstance(asked, str) else list(asked)
    terms: list[str] = []
    for text in listed:
        parts = [text] if text in names else [part.strip() for part in text.split(",")]
        terms += [part for part in parts if part]
    if listed and not terms:
        raise StudyError(
            f"only and without name terms of the study, which has {', '.join(names)}: "
            "leave the option away to keep all of them"
        )
    return terms


def _factor_name(part: Part) -> str:
    if part.feature.range is None:
        return part.factor.of
    return part.raw_columns[0]


def _degrees(product: Product) -> dict[str, int]:
    """The variables of a term and their degrees."""
    degrees: dict[str, int] = {}
    for part in product.parts:
        variable = part.factor.of if part.feature.range is None else part.symbol
        degrees[variable] = degrees.get(variable, 0) + part.factor.degree
    return degrees


def _is_below(lower: dict[str, int], upper: dict[str, int]) -> bool:
    return lower != upper and all(upper.get(name, 0) >= lower[name] for name in lower)


def _known(names: tuple[str, ...], asked: Sequence[str], field: str) -> set[str]:
    """The terms that were named; a name that is none is refused."""
    for name in asked:
        if name == INTERCEPT:
            raise StudyError(f"{field}: the intercept always stays: leave it out of the list")
        if name not in names:
            level = name.partition("[")[0]
            if level in names and level != name:
                raise StudyError(
                    f"{field}: {name!r} is one level of {level!r}: name the whole {level!r}"
                )
            raise StudyError(
                f"{field}: {name!r} is no term of the study, which has {', '.join(names)}"
            )
    if len(set(asked)) < len(asked):
        raise StudyError(f"{field}: each term must be named once")
    return set(asked)


def _check_lower(study: Study, kept: Sequence[str], field: str) -> None:
    below = lower_terms(study)
    for name in kept:
        for lower in below[name]:
            if lower in kept:
                continue
            way_out = f"add {lower!r}" if field != "without" else f"leave {name!r} out as well"
            raise StudyError(
                f"{field}: {name!r} is kept without its lower term {lower!r}, which gives it its "
                f"meaning: {way_out}"
            )
