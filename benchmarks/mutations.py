"""Ways to break a document: of its letters, of its tokens, and of the values that it holds."""

import copy
import json
import random
import re
from typing import Any

LETTERS = "".join(map(chr, range(128))) + "éß∞\u0000\u202e\ufeff\U0001f600\u2028"
NUMBERS = (
    *("0", "-0", "1", "-1", "2", "0.5", "1e-6", "1e-300", "5e-324", "1e150", "1e308", "1e309"),
    *("9007199254740993", "9223372036854775807", "9223372036854775808", "-9223372036854775809"),
    *("18446744073709551616", "1" * 400, "0.1e-400", "NaN", "Infinity", "-Infinity", "inf", "nan"),
    *("0x10", "1_000", "01", "+1", "1.", ".5", "1e", "true", "null", "1979-05-27T07:32:00Z"),
)
TEXTS = (
    *(
        "",
        " ",
        "x",
        "age",
        "sha256:",
        "replace-one",
        "add-remove",
        "noisy",
        "\u202eabc",
        "a\u0000b",
    ),
    *("x" * 300, "../../etc/passwd", "=cmd", "<script>", "{0}", "%s", "\ud7ff", "__class__", "'"),
)
VALUES = (
    *(None, True, False, 0, 1, -1, 2, 64, 512, 513, 2**31, 2**53, 2**63, -(2**63), 2**64, 10**400),
    *(0.0, -0.0, 0.5, 1e-6, 1e-300, 5e-324, 1e150, 1.7e308, -1e-3, 1e16, *TEXTS),
    *([], {}, [[]], [1], ["a"], {"a": 1}, [None], [[1, 2], [3, 4]], [0.0] * 40, ["x"] * 600),
)
TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*|[A-Za-z_]\w*|\s+|.', re.DOTALL)


def mutated_text(rng: random.Random, text: str, other: str) -> str:
    """A text with one to four changes of its letters or tokens."""
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        text = rng.choice(TEXT_CHANGES)(rng, text, other)
    return text[: 2**21]


def _letter(rng: random.Random, text: str, _other: str) -> str:
    place = rng.randrange(len(text) + 1)
    return text[:place] + rng.choice(LETTERS) + text[place + rng.randrange(2) :]


def _cut(rng: random.Random, text: str, _other: str) -> str:
    begin, end = sorted(rng.randrange(len(text) + 1) for _ in range(2))
    return text[:begin] + text[end:] if rng.random() < 0.5 else text[:begin]


def _repeated(rng: random.Random, text: str, _other: str) -> str:
    begin = rng.randrange(len(text) + 1)
    piece = text[begin : begin + rng.choice((1, 3, 20, 100))]
    return text[:begin] + piece * rng.choice((2, 3, 50, 2000)) + text[begin:]


def _spliced(rng: random.Random, text: str, other: str) -> str:
    return text[: rng.randrange(len(text) + 1)] + other[rng.randrange(len(other) + 1) :]


def _token(rng: random.Random, text: str, _other: str) -> str:
    tokens = TOKEN.findall(text)
    if not tokens:
        return text
    place = rng.randrange(len(tokens))
    kind = rng.randrange(5)
    if kind == 0:
        tokens[place] = rng.choice(NUMBERS)
    elif kind == 1:
        tokens[place] = json.dumps(rng.choice(TEXTS))
    elif kind == 2:
        tokens[place] = rng.choice(tokens)
    elif kind == 3:
        del tokens[place]
    else:
        other = rng.randrange(len(tokens))
        tokens[place], tokens[other] = tokens[other], tokens[place]
    return "".join(tokens)


def _nested(rng: random.Random, text: str, _other: str) -> str:
    place = rng.randrange(len(text) + 1)
    begin, end = rng.choice(("[]", "{}", "()", '""'))
    depth = rng.choice((1, 5, 50, 3000))
    return text[:place] + begin * depth + end * rng.choice((0, depth)) + text[place:]


TEXT_CHANGES = (_letter, _letter, _cut, _repeated, _spliced, _token, _token, _token, _nested)


def mutated_value(rng: random.Random, document: dict[str, Any]) -> dict[str, Any]:
    """A document of plain values with one to three changes of what it holds."""
    document = copy.deepcopy(document)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        holder, key = _place(rng, document)
        if holder is None:
            continue
        change = rng.randrange(6)
        if change == 0:
            del holder[key]
        elif change == 1 and isinstance(holder, dict):
            holder[rng.choice(TEXTS)] = holder[key]
        elif change == 2:
            holder[key] = copy.deepcopy(_any(rng, document))
        elif change == 3 and isinstance(holder[key], int | float) and abs(holder[key]) < 2**64:
            holder[key] *= rng.choice((-1, 0, 2, 1e-9, 1e9, 1 + 1e-7, 1e300))
        elif change == 4 and isinstance(holder[key], list):
            holder[key] = holder[key] * rng.choice((0, 2, 600))
        else:
            holder[key] = copy.deepcopy(rng.choice(VALUES))
    return document


def _place(rng: random.Random, value: Any) -> tuple[Any, Any]:  # noqa: ANN401
    """A list or table inside the document, and one of its places, seldom a deep one."""
    holder, key = None, None
    while isinstance(value, dict | list) and value:
        holder = value
        key = rng.choice(list(value)) if isinstance(value, dict) else rng.randrange(len(value))
        value = holder[key]
        if rng.random() < 0.4:
            break
    return holder, key


def _any(rng: random.Random, document: Any) -> Any:  # noqa: ANN401
    holder, key = _place(rng, document)
    return None if holder is None else holder[key]
