"""Names of coefficients as people read them: with the label that the study gives a column."""

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tacit.study.study import Study


def labelled(study: "Study", names: list[str]) -> list[str]:
    """Coefficients' names with labels in place of the columns' names, where there are any."""
    labels = {each.name: each.label for each in study.features if each.label is not None}
    if not labels:
        return names
    words = sorted(labels, key=len, reverse=True)  # the longest first: "age" is in "age_group"
    either = "|".join(map(re.escape, words))
    pattern = re.compile(rf"(?<!\w)(?:{either})(?!\w)")

    def named(piece: str, *, is_level: bool) -> str:
        return piece if is_level else pattern.sub(lambda match: labels[match[0]], piece)

    return [
        "".join(named(piece, is_level=is_level) for piece, is_level in _parts(name))
        for name in names
    ]


def _parts(name: str) -> list[tuple[str, bool]]:
    """A name in pieces, each with whether it is a level, which is no column's name."""
    pieces = re.split(r"(\[[^\]]*\])", name)
    return [(piece, place % 2 == 1) for place, piece in enumerate(pieces)]
