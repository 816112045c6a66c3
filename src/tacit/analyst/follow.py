"""Follow: a posterior that stays current while holders' streams go on.

New lines of each log are added to its stream's sums, and the posterior is computed from the sums:
the cost of a batch does not depend on how many came before. The result is that of `fit` over the
same logs, by the same method.
"""

from collections.abc import Sequence
from pathlib import Path

from tacit.analyst.collection import (
    Collection,
    TrustedKeys,
    check_distinct,
    check_origin,
    keys_by_holder,
)
from tacit.analyst.fit import DEFAULT_METHOD, fit
from tacit.analyst.methods import method_named
from tacit.analyst.plausibility import check_plausible
from tacit.analyst.posterior.posterior import Posterior
from tacit.analyst.prior import Prior
from tacit.analyst.streams import Batches, Streams
from tacit.errors import MethodError, ReleaseError
from tacit.release.log import LogReader, is_log


class Follower:
    """Reads release logs as they grow."""

    def __init__(
        self,
        logs: Sequence[str | Path],
        *,
        method: str = DEFAULT_METHOD,
        prior: Prior | str | Path = "weak",
        allow_simulated: bool = False,
        trusted_keys: TrustedKeys | None = None,
    ) -> None:
        if not method_named(method).computed:
            raise MethodError(
                f"method must be one that computes, such as {DEFAULT_METHOD}, to follow a stream: "
                f"{method} draws samples, and `tacit fit` takes it over the same log"
            )
        for log in logs:
            if not is_log(log):
                raise ReleaseError(
                    f"{str(log)!r} is not a release log that can be read: "
                    "give what `tacit stream` writes"
                )
        self._method = method
        self._prior = prior
        self._allow_simulated = allow_simulated
        self._trusted_keys = None if trusted_keys is None else keys_by_holder(trusted_keys)
        self._readers = [LogReader(log) for log in logs]
        self._streams = Streams()

    def update(self) -> int:
        """Add the batches that are new; returns how many."""
        count = 0
        for reader in self._readers:
            for entry in reader.entries():
                check_plausible([entry.release])
                check_origin(
                    [entry.release],
                    allow_simulated=self._allow_simulated,
                    trusted_keys=self._trusted_keys,
                )
                self._streams.add(entry)
                count += 1
        return count

    @property
    def streams(self) -> list[Batches]:
        """What each stream has published so far."""
        return self._streams.summed()

    @property
    def lost(self) -> int:
        """Batches that were numbered and never published."""
        return self._streams.lost()

    def posterior(self) -> Posterior:
        """The posterior given all batches so far."""
        streams = self.streams
        check_distinct(streams)
        collection = Collection(study=streams[0].study, releases=tuple(streams))
        return fit(collection, self._method, prior=self._prior)
