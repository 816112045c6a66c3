"""Equations that the code cites by number stand in docs/methods.md, each once."""

import re
from collections import Counter
from pathlib import Path

import tacit.analyst

CODE = Path(tacit.analyst.__file__).parent
PAGE = Path(__file__).parents[2] / "docs" / "methods.md"
NUMBER = re.compile(r"\(([A-Z]\d+)\)")


def numbered():
    return Counter(re.findall(r"\\text\{\(([A-Z]\d+)\)\}", PAGE.read_text(encoding="utf-8")))


def cited():
    """Numbers in the code, with one of the files that cite each."""
    return {
        number: path.name
        for path in CODE.rglob("*.py")
        for number in NUMBER.findall(path.read_text(encoding="utf-8"))
    }


def test_every_equation_that_code_cites_is_on_the_page():
    assert {number: file for number, file in cited().items() if number not in numbered()} == {}


def test_every_equation_has_its_own_number():
    assert [number for number, times in numbered().items() if times > 1] == []
    assert len(numbered()) > 30


def test_numbers_follow_each_other():
    for letter in {number[0] for number in numbered()}:
        places = [int(number[1:]) for number in numbered() if number[0] == letter]
        assert places == list(range(1, len(places) + 1)), letter
