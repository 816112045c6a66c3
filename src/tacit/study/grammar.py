"""The grammar of formulas: a text becomes a tree of names, numbers, calls and operators.

    formula  = sum "~" sum
    sum      = ["+" | "-"] product { ("+" | "-") product }
    product  = crossing { ("*" | "/") crossing }
    crossing = power { ":" power }
    power    = primary [ ("^" | "**") number ]
    primary  = name | number | "." | "(" sum ")" | "{" sum "}" | call
    call     = name "(" [ argument { "," argument } ] ")"
    argument = [ name "=" ] sum
    name     = identifier | "`" any letters but "`" "`" | ("np" | "numpy") "." identifier

What an operator means depends on where it stands, as in R: `formula.py` says it. Nothing is ever
evaluated, and a text costs time and memory in proportion to its length.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

MOST_LETTERS = 5_000
MOST_DEPTH = 30
_TOKEN = re.compile(
    r"\s*(?:(?P<name>(?:(?:np|numpy)\s*\.\s*)?[^\W\d]\w*)|`(?P<quoted>[^`]*)`"
    r"|(?P<number>\d+(?:\.\d*)?(?:[eE][+-]?\d+)?)|(?P<mark>\*\*|[-+*/:^(){},=~.]))"
)
_END = "its end"


class GrammarError(ValueError):
    """A text is no formula."""


@dataclass(frozen=True)
class Name:
    """A column, or what stands in the place of one; `text` is how it was written."""

    name: str
    text: str = field(compare=False)


@dataclass(frozen=True)
class Number:
    """A number, as it was written."""

    text: str


@dataclass(frozen=True)
class Everything:
    """The dot: every column but the response."""

    text: str = "."


@dataclass(frozen=True)
class Call:
    """A function of arguments; braces are the function I."""

    function: str
    arguments: tuple["Node", ...]
    options: tuple[tuple[str, "Node"], ...]
    text: str = field(compare=False)


@dataclass(frozen=True)
class Chain:
    """Operands with operators of equal rank before them, to be read from the left.

    There is no first one where a sum begins with a sign.
    """

    first: "Node | None"
    rest: tuple[tuple[str, "Node"], ...]
    text: str = field(compare=False)


Node = Name | Number | Everything | Call | Chain


@dataclass(frozen=True)
class _Token:
    kind: str
    value: str
    begin: int
    end: int


def parse(text: str) -> tuple[Node, Node]:
    """The trees of the left and the right side of a formula."""
    if len(text) > MOST_LETTERS:
        raise GrammarError(f"it is longer than {MOST_LETTERS:,} letters")
    return _Parser(text).formula()


def _tokens(text: str) -> Iterator[_Token]:
    place = 0
    end = len(text.rstrip())
    while place < end:
        match = _TOKEN.match(text, place)
        if match is None:
            letter = text[place:].lstrip()[0]
            raise GrammarError(f"{letter!r} has no meaning there")
        kind = match.lastgroup or ""
        begin = match.start(kind) - (kind == "quoted")
        yield _Token(kind, match[kind], begin, match.end())
        place = match.end()
    yield _Token("end", _END, end, end)


class _Parser:
    """Reads tokens from the left, each rule of the grammar by a method of its name."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = list(_tokens(text))
        self._place = 0
        self._depth = 0

    @property
    def _next(self) -> _Token:
        return self._tokens[self._place]

    def _take(self) -> _Token:
        token = self._next
        self._place += 1
        return token

    def _follows(self, *marks: str) -> bool:
        return self._next.kind == "mark" and self._next.value in marks

    def _expect(self, mark: str) -> None:
        if not self._follows(mark):
            raise GrammarError(f"{mark!r} is missing before {self._shown()}")
        self._take()

    def _shown(self) -> str:
        return _END if self._next.kind == "end" else repr(self._next.value[:50])

    def _since(self, begin: int) -> str:
        return self._text[begin : self._tokens[self._place - 1].end]

    def formula(self) -> tuple[Node, Node]:
        left = self._sum()
        if not self._follows("~"):
            raise GrammarError(
                "write it as 'response ~ terms'"
                if self._next.kind == "end"
                else f"{self._shown()} has no meaning there"
            )
        self._take()
        right = self._sum()
        if self._next.kind != "end":
            raise GrammarError(f"{self._shown()} has no meaning there")
        return left, right

    def _sum(self) -> Node:
        self._depth += 1
        if self._depth > MOST_DEPTH:
            raise GrammarError(f"its parentheses are nested more than {MOST_DEPTH} deep")
        begin = self._next.begin
        first = None if self._follows("-", "+") else self._product()
        node = self._chain(self._product, ("+", "-"), begin, first)
        self._depth -= 1
        return node

    def _product(self) -> Node:
        begin = self._next.begin
        return self._chain(self._crossing, ("*", "/"), begin, self._crossing())

    def _crossing(self) -> Node:
        begin = self._next.begin
        return self._chain(self._power, (":",), begin, self._power())

    def _chain(
        self, operand: Callable[[], Node], marks: tuple[str, ...], begin: int, first: Node | None
    ) -> Node:
        rest = []
        while self._follows(*marks):
            mark = self._take().value
            rest.append((mark, operand()))
        if first is not None and not rest:
            return first
        return Chain(first, tuple(rest), self._since(begin))

    def _power(self) -> Node:
        begin = self._next.begin
        base = self._primary()
        if not self._follows("^", "**"):
            return base
        self._take()
        if self._next.kind != "number":
            raise GrammarError(f"a power must be a number, not {self._shown()}")
        power = Number(self._take().value)
        if self._follows("^", "**"):
            raise GrammarError("a power of a power needs parentheses")
        return Chain(base, (("^", power),), self._since(begin))

    def _primary(self) -> Node:
        token = self._take()
        if token.kind == "quoted":
            return Name(token.value, self._since(token.begin))
        if token.kind == "number":
            return Number(token.value)
        if token.kind == "name":
            return self._call(token) if self._follows("(") else Name(token.value, token.value)
        if token.kind == "mark" and token.value == ".":
            return Everything()
        if token.kind == "mark" and token.value in {"(", "{"}:
            inner = self._sum()
            self._expect(")" if token.value == "(" else "}")
            if token.value == "(":
                return inner
            return Call("I", (inner,), (), self._since(token.begin))
        self._place -= 1
        raise GrammarError(f"a column is missing before {self._shown()}")

    def _call(self, name: _Token) -> Node:
        self._expect("(")
        arguments: list[Node] = []
        options: list[tuple[str, Node]] = []
        while not self._follows(")"):
            key = self._next
            value = self._sum()
            if self._follows("=") and isinstance(value, Name) and key.kind == "name":
                self._take()
                options.append((key.value, self._sum()))
            else:
                arguments.append(value)
            if not self._follows(")", ","):
                raise GrammarError(f"')' is missing before {self._shown()}")
            if self._follows(","):
                self._take()
        self._expect(")")
        function = "".join(name.value.split()).removeprefix("np.").removeprefix("numpy.")
        return Call(function, tuple(arguments), tuple(options), self._since(name.begin))
