"""Formulas: "days ~ age * sex + poly(bmi, 2)" and public ranges become the document of a study.

A formula is read by a grammar of our own (`grammar.py`) and never evaluated; no row is looked at.
What is supported is what public ranges bound: columns, powers, products, and monotone functions.
The design spans exactly the columns that the formula names: a term is centred, which keeps it apart
from others under noise, wherever the rest of the formula makes up for that, and left as it is where
not (as in "y ~ 0 + x").
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, product
from typing import Any

from pydantic import ValidationError

from tacit.errors import StudyError
from tacit.records import explain
from tacit.study.coding import parts_of
from tacit.study.columns import Feature
from tacit.study.expansion import ONE, encoded, raw, spanned
from tacit.study.factors import Atom, atom_of, response_of
from tacit.study.grammar import Chain, Everything, GrammarError, Name, Node, Number, parse
from tacit.study.terms import MOST_DEGREE, MOST_FACTORS, Factor, Product, Term, products_of

MOST_TERMS = 512
"""Most terms that a formula may expand to, as many as a study may have columns."""
TOO_MANY = f"formula: it expands to more than {MOST_TERMS} terms: use fewer"
INTERCEPT: tuple[Atom, ...] = ()
Terms = dict[frozenset[Atom], tuple[Atom, ...]]
"""Products of atoms, each once, in the order in which they come."""
Features = Mapping[str, Feature]


def document_of(
    formula: str, columns: Mapping[str, object], fields: Mapping[str, object]
) -> dict[str, Any]:
    """The document of the study that a formula describes."""
    features = {name: _feature(name, described) for name, described in columns.items()}
    try:
        left, right = parse(formula)
    except GrammarError as error:
        raise StudyError(f"formula: {formula[:200]!r} cannot be read: {error}") from None
    response, function = response_of(left, features, formula)
    stated = fields.get("responses")
    further = [name for name in stated if name != response] if isinstance(stated, Sequence) else []
    described = {name: one for name, one in features.items() if name not in further}
    expanded = _Expansion(described, response).terms(right)
    intercept = frozenset() in expanded
    used, terms = _terms(_coded(expanded.values(), features), response)
    if idle := sorted(set(features) - {*used, *further, response}):
        raise StudyError(f"columns: {idle[0]!r} is not in the formula: remove it, or add it there")
    terms, has_constant = _centred(
        tuple(features[name] for name in used), terms, intercept=intercept
    )
    listed = [features[name] for name in (*used, *further) if name in features]
    written = [term.model_dump(mode="json") for term in terms]
    is_plain = intercept and written == [{"product": [name]} for name in used]
    return {"name": " ".join(formula.split())[:200], **fields} | {
        "intercept": intercept,
        "response": {
            "name": response,
            "range": features[response].range,
            "function": function,
            "centred": has_constant,
        },
        "features": [one.model_dump(mode="json", exclude_none=True) for one in listed],
        "terms": [] if is_plain else written,
    }


def _feature(name: str, described: object) -> Feature:
    """A column from its range, its levels, or the fields of a feature."""
    if isinstance(described, Feature):
        return described
    fields: dict[str, Any] = {"range": described}
    if isinstance(described, Mapping):
        fields = dict(described)
    elif isinstance(described, Sequence) and not isinstance(described, str):
        is_levels = all(isinstance(level, str) for level in described)
        fields = {"levels" if is_levels else "range": list(described)}
    try:
        return Feature.model_validate({"name": name} | fields)
    except ValidationError as error:
        raise StudyError(
            f"columns.{name}.{explain(error)}; "
            "give a range as (18, 100) or levels as ['female', 'male']"
        ) from None


# The right side, expanded into products.


class _Expansion:
    """What the operators mean between terms, as in R."""

    def __init__(self, features: Features, response: str) -> None:
        self._features = features
        self._response = response

    def terms(self, right: Node) -> Terms:
        """The terms of the right side, those of fewer factors first.

        The intercept is among them unless it is left out, by adding 0 or taking away 1.
        """
        total: Terms = {frozenset(): INTERCEPT}
        for mark, node in _summands(right):
            if node == Number("0"):
                self._add(total, "-" if mark == "+" else "+", self._expanded(Number("1")))
            else:
                self._add(total, mark, self._expanded(node))
        return dict(sorted(total.items(), key=lambda term: len(term[0])))

    def _add(self, total: Terms, mark: str, terms: Terms) -> None:
        for key, term in terms.items():
            if mark == "-":
                total.pop(key, None)
            else:
                total.setdefault(key, term)
        if len(total) > MOST_TERMS:
            raise StudyError(TOO_MANY)

    def _expanded(self, node: Node) -> Terms:
        if node == Number("1"):
            return {frozenset(): INTERCEPT}
        if isinstance(node, Everything):
            names = [name for name in self._features if name != self._response]
            return _once((atom_of(Name(name, name), self._features),) for name in names)
        if not isinstance(node, Chain):
            if isinstance(node, Number):
                _refuse_number(node)
            return _once([(atom_of(node, self._features),)])
        return self._chained(node)

    def _chained(self, node: Chain) -> Terms:
        """The terms of a chain of operators of one rank, from the left."""
        mark = node.rest[0][0]
        if mark == "^":
            return self._power(node)
        if mark in ":*/" and any(isinstance(one, Number) for one in _operands(node)):
            _refuse_number(node)
        total = {} if node.first is None else dict(self._expanded(node.first))
        for operator, operand in node.rest:
            terms = self._expanded(operand)
            if operator in "+-":
                self._add(total, operator, terms)
            elif operator == ":":
                total = self._crossed(total, terms)
            elif operator == "*":
                crossed = self._crossed(total, terms)
                self._add(total, "+", terms)
                self._add(total, "+", crossed)
            else:
                everything = _once([tuple(chain.from_iterable(total.values()))])
                self._add(total, "+", self._crossed(everything, terms))
        return total

    def _power(self, node: Chain) -> Terms:
        """All products of as many terms as the power says."""
        power = node.rest[0][1].text
        if not power.isdigit() or not 1 <= int(power[:3]) <= MOST_DEGREE or node.first is None:
            raise StudyError(
                f"formula: {node.text[:100]!r} must have a power from 1 to {MOST_DEGREE}"
            )
        base = self._expanded(node.first)
        total = dict(base)
        for _ in range(int(power) - 1):
            self._add(total, "+", self._crossed(total, base))
        return total

    def _crossed(self, first: Terms, second: Terms) -> Terms:
        """Every product of one of the first terms and one of the second."""
        total: Terms = {}
        for left, right in product(first.values(), second.values()):
            term = tuple(dict.fromkeys((*left, *right)))
            if len(term) > MOST_FACTORS:
                text = ":".join(atom.text for atom in term)[:200]
                raise StudyError(f"formula: {text!r} multiplies more than {MOST_FACTORS} columns")
            self._add(total, "+", {frozenset(term): term})
        return total


def _summands(node: Node) -> list[tuple[str, Node]]:
    """What a sum adds and takes away."""
    if not isinstance(node, Chain) or node.rest[0][0] not in "+-":
        return [("+", node)]
    first = [] if node.first is None else [("+", node.first)]
    return [*first, *node.rest]


def _operands(chain: Chain) -> list[Node | None]:
    return [chain.first, *(operand for _, operand in chain.rest)]


def _once(terms: Iterable[tuple[Atom, ...]]) -> Terms:
    """Terms by the factors they multiply, each factor once."""
    return {frozenset(term): tuple(dict.fromkeys(term)) for term in terms}


def _refuse_number(node: Node) -> None:
    if node == Number("0"):
        raise StudyError("formula: 0 leaves the intercept out, and stands outside parentheses")
    raise StudyError(
        f"formula: {node.text[:100]!r} scales a term by a number, which changes its unit alone: "
        "leave the number out"
    )


# Meaning.


def _coded(terms: Iterable[tuple[Atom, ...]], features: Features) -> list[list[tuple[Atom, bool]]]:
    """Products of atoms, each with whether it has a column for every level."""
    written = list(terms)
    divided = []
    for term in written:
        categorical = frozenset(atom for atom in term if atom.is_categorical(features))
        divided.append((frozenset(term) - categorical, categorical))
    coded = []
    for term, (numeric, _), parts in zip(written, divided, parts_of(divided), strict=True):
        for part in parts:
            present = numeric | part.reduced | part.full
            coded.append([(atom, atom in part.full) for atom in term if atom in present])
    return coded


def _terms(
    coded: list[list[tuple[Atom, bool]]], response: str
) -> tuple[list[str], tuple[Term, ...]]:
    """The columns that the right side uses, in its order, and its terms, each once."""
    terms: dict[Term, None] = {}
    for atoms in filter(None, coded):
        choices = [atom.columns_with(every_level=every) for atom, every in atoms]
        for combination in product(*choices):
            try:
                terms[Term(product=tuple(chain.from_iterable(combination)))] = None
            except ValidationError:
                text = ":".join(atom.text for atom, _ in atoms)[:200]
                raise StudyError(
                    f"formula: {text!r} multiplies more than {MOST_FACTORS} columns"
                ) from None
            if len(terms) > MOST_TERMS:
                raise StudyError(TOO_MANY)
    used = list(dict.fromkeys(factor.of for term in terms for factor in term.product))
    if response in used:
        raise StudyError(f"formula: {response!r} stands on both sides")
    return used, tuple(terms)


def _centred(
    features: tuple[Feature, ...], terms: tuple[Term, ...], *, intercept: bool
) -> tuple[tuple[Term, ...], bool]:
    """The terms, centred wherever that keeps what they span, and whether they span the constant."""
    products = products_of(features, terms) if terms else ()
    try:
        for each in products:
            each.check()
    except ValueError as error:
        raise StudyError(f"formula: {error}") from None
    named = [ONE] * intercept + [column for each in products for column in raw(each)]
    centred = tuple(
        term if spanned(named, encoded(each)).all() else _uncentred(term, each)
        for term, each in zip(terms, products, strict=True)
    )
    return centred, bool(spanned(named, [ONE])[0])


def _uncentred(term: Term, columns: Product) -> Term:
    factors: list[Factor] = []
    for part in columns.parts:
        is_numeric = part.feature.range is not None
        change = {"centred": False} if is_numeric else {}
        factors.append(part.factor.model_copy(update=change))
    return term.model_copy(update={"product": tuple(factors)})
