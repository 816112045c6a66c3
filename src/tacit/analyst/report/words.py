"""Terms in plain words, without claims of cause."""

from collections import Counter

from tacit.page.numbers import listed
from tacit.study import Study
from tacit.study.transforms import FunctionName

FUNCTION_WORDS: dict[FunctionName, str] = {
    "log": "the logarithm of",
    "log2": "the logarithm to base 2 of",
    "log10": "the logarithm to base 10 of",
    "log1p": "the logarithm of 1 plus",
    "sqrt": "the square root of",
    "exp": "the exponential of",
}


def applied(function: FunctionName | None, name: str) -> str:
    """A column after a function."""
    return name if function is None else f"{FUNCTION_WORDS[function]} {name}"


def terms_in_words(study: Study) -> list[str]:
    """The study's terms, the powers of one variable or product together."""
    powers: dict[tuple[str, ...], dict[str, set[int]]] = {}
    for term in study.products:
        degrees: Counter[str] = Counter()
        for part in term.parts:
            degrees[applied(part.factor.function, part.factor.of)] += part.factor.degree
        together = powers.setdefault(tuple(degrees), {variable: set() for variable in degrees})
        for variable, degree in degrees.items():
            together[variable].add(degree)
    return [
        " together with ".join(_curve(variable, degrees) for variable, degrees in curves.items())
        for curves in powers.values()
    ]


def _curve(variable: str, degrees: set[int]) -> str:
    top = max(degrees)
    if top == 1:
        return variable
    if degrees == set(range(1, top + 1)):
        return f"{variable}, curved (powers up to {top})"
    word = "power" if len(degrees) == 1 else "powers"
    named = listed([str(degree) for degree in sorted(degrees)])
    return f"{variable}, curved ({word} {named})"
