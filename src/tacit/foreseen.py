"""What imagined rows would give: the posterior of one holder with so many rows, at a budget.

Statistics of imagined rows (`imagined.py`) go through the real encoder and the default method, with
the noise of a budget and without any. Of several visits the whole talk is imagined: every question
is made of the answers before it, which hold expected sums and the noise.
"""

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tacit.analyst.collection import Collection
from tacit.analyst.fit import fit
from tacit.analyst.posterior.outlook import expected
from tacit.analyst.posterior.posterior import Posterior
from tacit.holder.places import PLACES
from tacit.holder.statistics import statistics_of
from tacit.holder.tally import Tally, total_of
from tacit.holder.visits import mapped
from tacit.imagined import Guess, imagined_rows
from tacit.rows.table import table_of
from tacit.simulation import talk
from tacit.study import Study
from tacit.study.visits import DEFAULT_TOGETHER

Array = NDArray[np.float64]

IMAGINED_ROWS = 20_000


class Foreseen:
    """What a study's imagined rows would give to one holder who has them all."""

    def __init__(
        self, study: Study, guess: Guess, *, apart: bool, on_talk: Callable[[], None]
    ) -> None:
        self.study = study
        self.guess = guess
        self.apart = apart
        self.on_talk = on_talk

    def posterior(self, rows: int, epsilon: float) -> Posterior:
        """With the noise of a budget, in as many visits as the study then has."""
        study = self._study(rows, epsilon)
        self.on_talk()
        if study.visit_count > 1:
            return self._visited(study, rows)
        gram = self._gram(study)
        return expected(study, [rows], gram, [epsilon], family=self.guess.family)

    def sampling(self, rows: float, epsilon: float) -> Posterior:
        """Without any noise, of rows as that budget has them shrunk."""
        study = self._study(round(rows), epsilon)
        return expected(study, [rows], self._gram(study), None, family=self.guess.family)

    def _study(self, rows: int, epsilon: float) -> Study:
        """The study of one holder, planned for these rows where it plans any.

        Where the rule says how many visits there are, it is asked for the holders there are.
        """
        fields: dict[str, object] = {"epsilon": epsilon, "secure_sum": None}
        if self.study.planned_rows:
            fields |= {"planned_rows": [rows]}
        document = self.study.model_dump(mode="json") | fields
        alone = Study.from_document(document)
        if self.apart and self.study.visits is None and alone.visit_count > 1:
            return Study.from_document(document | {"visits": DEFAULT_TOGETHER})
        return alone

    @cached_property
    def _table(self) -> pa.Table:
        """Imagined rows, which are the same at every budget."""
        plain = _plain(self.study)
        table, _ = imagined_rows(plain, self.guess, np.random.default_rng(0), IMAGINED_ROWS)
        return pa.table(table)

    def _gram(self, study: Study) -> Array:
        """Statistics per row, of (x, y) jointly."""
        rows = _plain(study)
        order = np.random.default_rng(0).permutation
        gram = statistics_of(rows, table_of(self._table, rows).batches(), order=order).floats()
        own = study.d + 1  # the study's own response; others have the same noise
        return gram[:own, :own] / IMAGINED_ROWS

    def _visited(self, study: Study, rows: int) -> Posterior:
        """What all visits of a study would give: no noise is drawn, and all of it is stated."""
        alone = _plain(study)

        def read(tally: Tally[Any]) -> Any:  # noqa: ANN401
            numbers = tally.to_numbers(total_of(tally, alone, self._table))
            return tally.from_numbers(alone, [number * rows // IMAGINED_ROWS for number in numbers])

        releases = talk(
            alone, 1, lambda _, asked: read(PLACES if asked is None else mapped(asked)), silent
        )
        return fit(Collection(study=alone, releases=tuple(releases)), family=self.guess.family)


def silent(sds: Sequence[float], _lattice: int) -> list[int]:
    """No noise, where it is only stated."""
    return [0] * len(sds)


def _plain(study: Study) -> Study:
    """The study of rows alone.

    A person adds what one row does, and the heaviest row what each does without weights.
    """
    fields = {"person": None, "missing_person": "refuse", "weight": None}
    return study.model_copy(update=fields | {"visits": study.visit_count})
