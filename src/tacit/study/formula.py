"""Formulas: "days ~ age * sex + poly(bmi, 2)" and public ranges become the document of a study, without a look at data.

Formulaic reads the formula and, on a table of made-up rows from the public domain, says which levels need a column. What is
supported is what public ranges bound: columns, powers, products, and monotone functions. The design spans exactly the columns that the
formula names: a term is centred, which keeps it apart from others under noise, wherever the rest of the formula makes up for that,
and left as it is where not (as in "y ~ 0 + x").
"""

import ast
import math
from collections.abc import Mapping, Sequence
from itertools import chain, product
from typing import TYPE_CHECKING, Any, NoReturn

from pydantic import ValidationError

from tacit.errors import StudyError
from tacit.records import explain
from tacit.study.columns import Feature
from tacit.study.expansion import ONE, encoded, raw, spanned
from tacit.study.terms import MOST_DEGREE, MOST_FACTORS, Factor, Product, Term, products_of
from tacit.study.transforms import FUNCTIONS

if TYPE_CHECKING:
    import pandas as pd

SUPPORTED = (
    f"columns, C(column), poly(column, degree), I(column**power) with powers to {MOST_DEGREE}, products of columns by ':' or '*', "
    f"and {', '.join(FUNCTIONS)} of a column"
)
_MADE_UP_ROWS = 64

Alternatives = tuple[tuple[Factor, ...], ...]
"""The columns of one factor of a formula, each a product of our factors."""
Scoped = list[list[tuple[str, bool]]]
"""Products of factors' texts, each with whether its reference level is left out; [] is the intercept."""


def document_of(
    formula: str, columns: Mapping[str, object], fields: Mapping[str, object]
) -> dict[str, Any]:
    """The document of the study that a formula describes."""
    features = {name: _feature(name, described) for name, described in columns.items()}
    left, scoped = _parse(formula, features)
    response, function = _response(left, features)
    used, terms = _terms(scoped, features, response)
    if idle := sorted(set(features) - {*used, response}):
        raise StudyError(f"columns: {idle[0]!r} is not in the formula: remove it, or add it there")
    intercept = [] in scoped
    terms, has_constant = _centred(
        tuple(features[name] for name in used), terms, intercept=intercept
    )
    written = [term.model_dump(mode="json") for term in terms]
    is_plain = intercept and written == [{"product": [name]} for name in used]
    described: dict[str, Any] = {"name": formula.strip()[:200]}
    return (
        described
        | dict(fields)
        | {
            "intercept": intercept,
            "response": {
                "name": response,
                "range": features[response].range,
                "function": function,
                "centred": has_constant,
            },
            "features": [
                features[name].model_dump(mode="json", exclude_none=True) for name in used
            ],
            "terms": [] if is_plain else written,
        }
    )


def _feature(name: str, described: object) -> Feature:
    """A column from its range, its levels, or the fields of a feature."""
    if isinstance(described, Feature):
        return described
    if isinstance(described, Mapping):
        fields = dict(described)
    elif (
        isinstance(described, Sequence)
        and not isinstance(described, str)
        and all(isinstance(level, str) for level in described)
    ):
        fields = {"levels": list(described)}
    else:
        fields = {"range": described}
    try:
        return Feature.model_validate({"name": name} | fields)
    except ValidationError as error:
        raise StudyError(
            f"columns.{name}.{explain(error)}; give a range as (18, 100) or levels as ['female', 'male']"
        ) from None


# Reading, by Formulaic.


def _parse(formula: str, features: Mapping[str, Feature]) -> tuple[str, Scoped]:
    """The text of the left side, and the right side with the levels that need a column."""
    try:
        from formulaic import Formula
        from formulaic.errors import FormulaicError
    except ImportError:
        raise StudyError(
            "a formula needs formulaic: install it with pip install 'tacit-dp[formula]'"
        ) from None
    try:
        parsed = Formula(formula, _context={"__formulaic_variables_available__": list(features)})
        left, right = parsed.lhs, parsed.rhs
        factors = [
            factor.expr
            for term in chain(left, right)
            for factor in term.factors
            if factor.eval_method.value != "literal"
        ]
    except (FormulaicError, AttributeError, SyntaxError, ValueError, TypeError) as error:
        reason = (
            str(error).splitlines()[0]
            if isinstance(error, FormulaicError)
            else "write it as 'response ~ terms'"
        )
        raise StudyError(f"formula: {formula!r} cannot be read: {reason}") from None
    if len(left) != 1 or len(left[0].factors) != 1:
        raise StudyError(
            f"formula: {formula!r} must have one response, a column or a function of one, left of '~'"
        )
    for text in factors:
        _read(text, features)  # nothing is evaluated that is not understood
    return str(left[0].factors[0].expr), _structure(right, features)


def _structure(right: Any, features: Mapping[str, Feature]) -> Scoped:  # noqa: ANN401
    """Formulaic's own choice of the levels that keep a design of full rank, on made-up rows."""
    import numpy as np

    context = {name: function.forward for name, function in FUNCTIONS.items()}
    with np.errstate(all="ignore"):
        matrix = right.get_model_matrix(_made_up(features), context=context, na_action="ignore")
    found = []
    for structure in matrix.model_spec.structure:
        for scoped in structure.scoped_terms:
            if scoped.scale != 1:
                raise StudyError(
                    f"formula: {str(structure.term)!r} scales a term by a number, which changes its unit alone: leave the number out"
                )
            found.append([(factor.factor.expr, bool(factor.reduced)) for factor in scoped.factors])
    return found


def _made_up(features: Mapping[str, Feature]) -> "pd.DataFrame":
    """Rows that walk through every range and level."""
    import numpy as np
    import pandas as pd

    rows = max([_MADE_UP_ROWS, *(len(feature.all_levels) for feature in features.values())])
    steps = np.arange(rows)

    def column(place: int, feature: Feature) -> object:
        if feature.range is None:
            codes = (steps // (place + 1)) % len(feature.all_levels)
            return pd.Categorical.from_codes(codes, categories=pd.Index(feature.all_levels))
        low, high = feature.range
        return low + (high - low) * (((place + 1) * math.sqrt(2) * (steps + 1)) % 1)

    return pd.DataFrame(
        {name: column(place, feature) for place, (name, feature) in enumerate(features.items())}
    )


# Meaning.


def _response(text: str, features: Mapping[str, Feature]) -> tuple[str, str | None]:
    """Name and function of the response."""
    alternatives = _read(text, features)
    [factor, *others] = alternatives[0]
    if len(alternatives) > 1 or others or factor.degree > 1:
        raise StudyError(
            f"formula: the response {text!r} is not supported; give a column, or one of {', '.join(FUNCTIONS)} of a column"
        )
    if features[factor.of].range is None:
        raise StudyError(f"formula: the response {factor.of!r} must have a range, not levels")
    return factor.of, factor.function


def _terms(
    scoped: Scoped, features: Mapping[str, Feature], response: str
) -> tuple[list[str], tuple[Term, ...]]:
    """The columns that the right side uses, in its order, and its terms, each once."""
    terms: dict[Term, None] = {}
    for factors in filter(None, scoped):
        choices = [
            _coded(_read(text, features), features, reduced=reduced) for text, reduced in factors
        ]
        for combination in product(*choices):
            try:
                terms[Term(product=tuple(chain.from_iterable(combination)))] = None
            except ValidationError:
                raise StudyError(
                    f"formula: {':'.join(text for text, _ in factors)!r} multiplies more than {MOST_FACTORS} columns"
                ) from None
    used = list(dict.fromkeys(factor.of for term in terms for factor in term.product))
    if response in used:
        raise StudyError(f"formula: {response!r} stands on both sides")
    return used, tuple(terms)


def _coded(
    alternatives: Alternatives, features: Mapping[str, Feature], *, reduced: bool
) -> Alternatives:
    """The factors with a column for every level where none is left out."""
    every = [
        [
            f.model_copy(update={"every_level": features[f.of].range is None and not reduced})
            for f in each
        ]
        for each in alternatives
    ]
    return tuple(map(tuple, every))


def _centred(
    features: tuple[Feature, ...], terms: tuple[Term, ...], *, intercept: bool
) -> tuple[tuple[Term, ...], bool]:
    """The terms, centred wherever that keeps what they span, and whether the constant is among what they span."""
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
    factors = (
        part.factor
        if part.feature.range is None
        else part.factor.model_copy(update={"centred": False})
        for part in columns.parts
    )
    return term.model_copy(update={"product": tuple(factors)})


# One factor.


def _read(text: str, features: Mapping[str, Feature]) -> Alternatives:
    """The columns of one factor of a formula: of `age`, `C(sex)`, `poly(bmi, 2)`, `I(age**2)`, `log(income)`."""
    if text in features:
        return ((Factor(of=text),),)
    try:
        tree = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        _refuse(text, features)
    found = (
        _poly(tree, features)
        if isinstance(tree, ast.Call) and _called(tree) == "poly"
        else _power_product(tree, features)
    )
    if found is None:
        _refuse(text, features)
    return found


def _refuse(text: str, features: Mapping[str, Feature]) -> NoReturn:
    if text.isidentifier():
        message = f"formula: {text!r} is not among the columns, which are {', '.join(features)}: give it a range or levels"
    else:
        message = f"formula: {text!r} is not supported; a formula is made of {SUPPORTED}"
    raise StudyError(message)


def _called(call: ast.Call) -> str:
    """Name of the function that is called, with or without `np.` before it."""
    target = call.func
    if (
        isinstance(target, ast.Attribute)
        and isinstance(target.value, ast.Name)
        and target.value.id in {"np", "numpy"}
    ):
        return target.attr
    return target.id if isinstance(target, ast.Name) else ""


def _poly(call: ast.Call, features: Mapping[str, Feature]) -> Alternatives | None:
    """Degrees 1 to k of one variable; `raw` changes the basis, not what it spans, and ours is neither R's nor the powers."""
    options = {keyword.arg: keyword.value for keyword in call.keywords}
    rest = call.args[1:]
    degree = rest[0] if rest else options.pop("degree", ast.Constant(1))
    options.pop("raw", None)
    factor = _single(call.args[0], features) if call.args else None
    if (
        factor is None
        or features[factor.of].range is None
        or options
        or len(rest) > 1
        or not isinstance(degree, ast.Constant)
    ):
        return None
    if type(degree.value) is not int or not 1 <= degree.value <= MOST_DEGREE:
        return None
    return tuple((factor.model_copy(update={"degree": k}),) for k in range(1, degree.value + 1))


def _power_product(tree: ast.expr, features: Mapping[str, Feature]) -> Alternatives | None:
    """One column: a variable, a power of one, or a product of such; I(…) around it, or C(…) around a categorical one."""
    if (
        isinstance(tree, ast.Call)
        and _called(tree) == "I"
        and len(tree.args) == 1
        and not tree.keywords
    ):
        return _power_product(tree.args[0], features)
    if isinstance(tree, ast.BinOp) and isinstance(tree.op, ast.Mult):
        sides = [_power_product(side, features) for side in (tree.left, tree.right)]
        factors = [factor for side in sides if side for factor in side[0]]
        numeric = all(features[factor.of].range is not None for factor in factors)
        return None if None in sides or not numeric else (tuple(factors),)
    if isinstance(tree, ast.BinOp) and isinstance(tree.op, ast.Pow):
        factor, power = _single(tree.left, features), tree.right
        if (
            factor is None
            or features[factor.of].range is None
            or not isinstance(power, ast.Constant)
            or type(power.value) is not int
        ):
            return None
        return (
            ((factor.model_copy(update={"degree": power.value}),),)
            if 1 <= power.value <= MOST_DEGREE
            else None
        )
    factor = _single(tree, features)
    return None if factor is None else ((factor,),)


def _single(tree: ast.expr, features: Mapping[str, Feature]) -> Factor | None:
    """A column, C() of a categorical one, or a function of a numeric one."""
    if isinstance(tree, ast.Name):
        return Factor(of=tree.id) if tree.id in features else None
    if (
        not isinstance(tree, ast.Call)
        or len(tree.args) != 1
        or tree.keywords
        or not isinstance(tree.args[0], ast.Name)
    ):
        return None
    name, called = tree.args[0].id, _called(tree)
    if name not in features:
        return None
    if called == "C":
        return Factor(of=name) if features[name].range is None else None
    known = called in FUNCTIONS and features[name].range is not None
    return Factor.model_validate({"of": name, "function": called}) if known else None
