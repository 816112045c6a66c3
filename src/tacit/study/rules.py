"""What a study must obey beyond the kinds of its fields; each rule has its own sentence."""

from typing import TYPE_CHECKING

from tacit.records import must
from tacit.study.form import LEAST_RADIUS, MOST_ENTRY
from tacit.study.responses import check_responses
from tacit.study.visits import MOST_VISITED

if TYPE_CHECKING:
    from tacit.study.study import Study

MOST_COLUMNS = 512
"""Most encoded columns: the lattice argument of docs/privacy.md is made for up to this many."""
MOST_MONOMIALS = 20_000
"""Most monomials that all columns may be sums of, so that an analyst can turn units around."""
WEIGHT_RANGE = (1e-3, 1e3)
"""How far response_weight may lie from row_radius / response_bound, as a factor."""


def check(study: "Study") -> None:
    """Refuse a study that breaks a rule, before any column's name is made where it has too many."""
    must(
        len(set(study.names)) == len(study.names),
        "the names of response and features must all differ",
    )
    if study.responses:
        check_responses(study)
    _check_person(study)
    must(
        len(set(study.holders)) == len(study.holders),
        "holders: each is named once",
    )
    if study.terms:
        _check_terms(study)
    width = study.intercept + sum(product.width for product in study.products)
    must(
        1 <= width <= MOST_COLUMNS,
        f"the study must encode to between 1 and {MOST_COLUMNS} columns, intercept included",
    )
    must(
        sum(each.width * each.monomials for each in study.products) <= MOST_MONOMIALS,
        f"the study's columns must expand to at most {MOST_MONOMIALS:,} monomials together: "
        "lower degrees, or use fewer terms",
    )
    _check_columns(study)
    _check_release(study)
    if study.visit_count > 1:
        _check_visits(study)
    if study.secure_sum is not None:
        must(
            not study.release.smallest_eigenvalue and study.release.average == 1,
            "secure_sum excludes release.smallest_eigenvalue, which does not add up, "
            "and release.average",
        )


def _check_person(study: "Study") -> None:
    """Averaged rows meet those of other persons, and no person would be in one group alone."""
    must(
        study.person not in study.names,
        "person must be a column of its own: it is neither a feature nor the response",
    )
    must(
        study.person is not None or study.missing_person == "refuse",
        "missing_person is for a study with a person",
    )
    must(
        study.person is None or study.release.average == 1,
        "person excludes release.average: a person's rows would be dealt into several groups",
    )
    if study.weight is not None:
        must(
            study.visit_count == 1,
            "weight excludes further visits, whose questions are for rows that count alike",
        )
        must(
            study.weight.column not in {*study.names, study.person},
            "weight.column must be a column of its own: not a feature, the response or the person",
        )
        must(
            study.intercept,
            "weight needs an intercept: how much rows weigh together is read off its entry of X'X",
        )


def _check_terms(study: "Study") -> None:
    """Every feature is in a term, every term is of features, and each can be encoded."""
    features = {each.name for each in study.features if each.name not in study.responses}
    used = {factor.of for term in study.terms for factor in term.product}
    for name in sorted(used ^ features):
        must(name not in features, f"terms: {name!r} is in no term: use it in one, or remove it")
        must(name in features, f"terms: {name!r} is in a term but is no feature: add it to them")
    for product in study.products:
        product.check()


def _check_columns(study: "Study") -> None:
    """No column is there twice, neither as it is encoded nor in the user's units."""
    raw = [column for product in study.products for column in product.raw_columns]
    if study.terms and len(set(raw)) < len(raw):
        twice = max(raw, key=raw.count)
        raise ValueError(
            f"terms: {twice!r} is there twice: name each product, power and level once"
        )
    must(
        len(set(study.columns)) == len(study.columns),
        "two encoded columns share a name: rename a feature or level",
    )


def _check_release(study: "Study") -> None:
    radius = study.release.row_radius
    must(
        not study.intercept or radius is None or radius >= 1,
        "release.row_radius must be at least 1 with an intercept: below that only the unit changes",
    )
    must(
        study.row_radius >= LEAST_RADIUS,
        f"release.row_radius would be below {LEAST_RADIUS:g} by default: state one that is not, "
        "or terms that vary more",
    )
    least, most = WEIGHT_RANGE
    must(
        least <= study.response_weight * study.response_bound / study.row_radius <= most,
        "release.response_weight must lie within a factor 1000 of row_radius / response_bound",
    )
    must(
        study.largest_entry <= study.most_entry,
        f"release.row_radius must be at most {study.most_entry:g} "
        "where a range is that many times wider than typical",
    )
    must(
        study.count in study.allowed_counts,
        f"release.count must be one of {', '.join(study.allowed_counts)} under {study.relation}",
    )


def _check_visits(study: "Study") -> None:
    release = study.release
    must(
        release.average == 1
        and release.noise == "frobenius"
        and not release.smallest_eigenvalue
        and study.response_square,
        "visits above 1 exclude release.average, release.smallest_eigenvalue, triangular noise and "
        "response_square = false: they ask for plain statistics",
    )
    must(not study.responses, "visits above 1 exclude responses: set visits = 1")
    must(
        study.stage_one is None,
        "visits above 1 exclude stage_one: their first visit asks where values lie",
    )
    must(
        bool(study.planned_rows),
        "visits above 1 need planned_rows: one number for a single holder, whose visits all happen "
        "at once, or one for each of several",
    )
    must(
        study.secure_sum is None or len(study.planned_rows) > 1,
        "visits above 1 with secure_sum need planned_rows of every holder: a number for each",
    )
    must(
        study.count != "withheld",
        'visits above 1 need the number of rows: set release.count to "noisy" or "public"',
    )
    must(
        study.d <= MOST_VISITED,
        f"visits above 1 are for at most {MOST_VISITED} encoded columns: set visits = 1",
    )
    must(
        study.widest <= MOST_ENTRY,
        f"visits above 1 need ranges at most {MOST_ENTRY:g} times wider than typical: "
        "set visits = 1, or state wider typical intervals",
    )
