"""Names of columns: which of a table's are the study's, and what to say where one is not there."""

from collections.abc import Sequence
from difflib import get_close_matches

from tacit.errors import TableError

NEARLY = 0.75
"""How alike two names must be to be told as near, as difflib measures it."""


def check_names(present: Sequence[str], names: Sequence[str], source: str) -> None:
    """Refuse a table without exactly one column of each name.

    Of the names that are there, only those near the missing one are told: what stands in the place
    of names may be a row.
    """
    for name in names:
        times = list(present).count(name)
        if times == 1:
            continue
        sentence = f"{source} needs exactly one column named {name!r}, as the study says"
        close = near(name, [each for each in present if each != name])
        if times > 1:
            sentence += f", and has {times}: rename or remove the others"
        elif close:
            sentence += f"; it has {', '.join(map(repr, close))}: rename it, or say which it is"
        raise TableError(sentence)


def near(name: str, names: Sequence[str]) -> list[str]:
    """Names that differ from one by capitals, spaces or a letter or two, the nearest first."""
    plain = {_plain(each): each for each in names}
    return [plain[each] for each in get_close_matches(_plain(name), plain, n=3, cutoff=NEARLY)]


def _plain(name: str) -> str:
    return "".join(letter for letter in name.casefold() if letter.isalnum())
