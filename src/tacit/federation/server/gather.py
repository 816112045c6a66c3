"""Gather: every holder's release, checked against the study, its holder's key and the others."""

from collections.abc import Callable
from dataclasses import dataclass, field

from flwr.serverapp import Grid

from tacit.analyst.collection import check_together
from tacit.errors import FederationError
from tacit.federation.server.ask import Patience, Question, Standing, ask
from tacit.federation.wire import Visit, request_of, visit_request
from tacit.release import Release
from tacit.release.places import PlacesRelease
from tacit.release.question import Question as VisitQuestion
from tacit.study import Study
from tacit.study.toml import study_toml
from tacit.study.visits import has_places

Gathered = PlacesRelease | Release
"""What a holder publishes at a visit."""


@dataclass(frozen=True)
class Inquiry:
    """What is asked for, of whom, and how long we wait.

    `least` holders must publish. Asking ends before the deadline once `expected` holders have
    published or refused: by default as many as there are `keys`, or `least`. With `keys`, a public
    key for each holder's name, a release counts only if its holder is among them and signed it.
    `nodes` are holders' names by the number of their SuperNode, as far as they are known.
    """

    study: Study
    patience: Patience
    least: int = 1
    expected: int | None = None
    keys: dict[str, str] | None = None
    nodes: dict[int, str] = field(default_factory=dict)
    allow_simulated: bool = False

    @property
    def expected_nodes(self) -> frozenset[int]:
        """The SuperNodes of holders that take part."""
        return frozenset(
            node for node, name in self.nodes.items() if self.keys is None or name in self.keys
        )

    def name_of(self, node: int) -> str:
        """A node as people know it."""
        return self.nodes.get(node, f"node {node}")

    @property
    def wanted(self) -> int:
        """How many who published or refused end the asking."""
        return self.expected or (len(self.keys) if self.keys else self.least)


def gather(
    grid: Grid,
    inquiry: Inquiry,
    on_change: Callable[[Standing[Gathered]], None] = lambda _standing: None,
    asked: VisitQuestion | None = None,
) -> list[Standing[Gathered]]:
    """Where every node stands in the end; whether that is `enough`, the caller must ask.

    `asked` is the question of a later visit; without one it is the study itself.
    """
    study = inquiry.study
    text_of_study = study_toml(study)
    request = (
        request_of(text_of_study)
        if asked is None
        else visit_request(Visit(study=text_of_study, question=asked.to_json()))
    )
    places = asked is None and has_places(study) and len(study.planned_rows) > 1
    held: list[Gathered] = []

    def accept(_node: int, text: str) -> Gathered:
        release = PlacesRelease.from_json(text) if places else Release.from_json(text)
        _check(release, inquiry, held)
        if asked is not None:
            _check_answer(release, asked)
        held.append(release)
        return release

    question = Question(
        request=lambda _node: request,
        accept=accept,
        wanted=inquiry.wanted,
        patience=inquiry.patience,
        least=inquiry.least,
        expected=inquiry.expected_nodes,
    )
    return ask(grid, question, on_change)


def _check(release: Gathered, inquiry: Inquiry, held: list[Gathered]) -> None:
    """Refuse a release of another study, of another holder, or unfit to be used with the others."""
    if release.study_hash != inquiry.study.hash:
        raise FederationError("release: it is of another study than was asked for")
    check_together([release], allow_simulated=inquiry.allow_simulated, trusted_keys=inquiry.keys)
    check_together([*held, release], allow_simulated=True, trusted_keys=None)


def _check_answer(release: Gathered, asked: VisitQuestion) -> None:
    """Refuse an answer to another question: with it no next one could be asked of anybody."""
    visit = release.visit if isinstance(release, Release) else None
    if visit is None or visit.question != asked:
        raise FederationError("release: it answers another question than was asked")


def enough(standings: list[Standing[Gathered]], inquiry: Inquiry) -> list[Gathered]:
    """The releases that came; raises where fewer than `least` holders published, and says why."""
    releases = [standing.document for standing in standings if standing.document is not None]
    if len(releases) < inquiry.least:
        others = "; ".join(
            f"{inquiry.name_of(standing.node)}: {standing.reason}"
            for standing in standings
            if standing.document is None
        )
        why = others or "no node was there"
        raise FederationError(
            f"{len(releases)} of at least {inquiry.least} holders published in time, "
            f"so nothing was fitted ({why})"
        )
    return releases
