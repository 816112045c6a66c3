"""Several responses: those that one release serves, the study's own first.

The others are declared as features with a range, and are no columns of x: a row's length is that of
its features alone, and X'y and y'y are published for each response.
"""

from typing import TYPE_CHECKING

from tacit.errors import StudyError
from tacit.records import must
from tacit.study.columns import Feature, Response

if TYPE_CHECKING:
    from tacit.study.study import Study


def all_responses(study: "Study") -> tuple[Response, ...]:
    """The study's response, and then the others that it declares."""
    features = {feature.name: feature for feature in study.features}
    return (study.response, *(_as_response(features[name]) for name in study.responses[1:]))


def place_of(study: "Study", name: str | None) -> int:
    """Which of the study's responses has that name; its own, 0, where none is named."""
    names = [response.name for response in all_responses(study)]
    if name is None:
        return 0
    if name not in names:
        raise StudyError(
            f"response: {name!r} is none of the study's, which has {', '.join(names)}: one release "
            "serves several where the study declares them (responses)"
        )
    return names.index(name)


def check_responses(study: "Study") -> None:
    """Refuse responses that are not numeric features outside all terms."""
    first, *others = study.responses
    must(
        first == study.response.name and bool(others) and len(set(others)) == len(others),
        "responses must name the study's response first, and then others, each once",
    )
    features = {feature.name: feature for feature in study.features}
    used = {factor.of for term in study.terms for factor in term.product}
    for name in others:
        must(
            name in features
            and features[name].range is not None
            and features[name].typical is None
            and name not in used,
            f"responses: {name!r} must be a feature with a range, without typical, in no term",
        )
    must(study.release.average == 1, "responses exclude release.average")


def _as_response(feature: Feature) -> Response:
    return Response(
        name=feature.name,
        label=feature.label,
        unit=feature.unit,
        range=feature.range or (-1.0, 1.0),
    )
