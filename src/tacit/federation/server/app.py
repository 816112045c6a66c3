"""The ServerApp: asks for a study, collects what comes, fits, and writes all into one folder.

Its run configuration (`[tool.flwr.app.config]` of the project): `study` and `holders`, files in the
project; `out`, a folder on the SuperLink's machine; `least-holders`, `deadline` and `poll` in
seconds; `method` and `prior`. Optional are `nodes`, a file with the number of each holder's
SuperNode, `silence`, the seconds after which a secure sum goes on without a holder that says
nothing, and what `tacit fit` can be told beside: `holders-are`, `family` and `response`, of which
an empty one is as if it were not there.
"""

import importlib
import logging
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from flwr.app import Context, UserConfig
from flwr.serverapp import Grid, ServerApp

from tacit.analyst.collection import collect
from tacit.errors import FederationError, TacitError
from tacit.federation.flower import run_folder
from tacit.federation.secure_sum.server import Sum, TooFewError
from tacit.federation.server.ask import Patience, Standing
from tacit.federation.server.gather import Gathered, Inquiry, enough, gather
from tacit.federation.server.minutes import LOG, MARK, Minutes, say_end, unread, write_record
from tacit.files import read_toml, write_whole
from tacit.release import Release
from tacit.release.attestation import attesting
from tacit.release.places import PlacesRelease
from tacit.release.question import Question
from tacit.study import Study
from tacit.visits.ask import next_question
from tacit.visits.sitting import Message, Sitting

if TYPE_CHECKING:
    from tacit.analyst.families.links import FamilyName
    from tacit.analyst.posterior.posterior import Posterior
    from tacit.analyst.posterior.source import HoldersAre

SILENCE = 30.0
"""Seconds after which a secure sum goes on without a holder that says nothing."""
SUM_POLL = 5.0
"""Seconds after which a holder in a secure sum is asked again."""

_HOLDERS_ARE = ("differ", "common", "separate")
_FAMILIES = ("logistic", "probit", "poisson")

app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    """Run one study."""
    LOG.addFilter(in_one_sentence)
    project = run_folder(grid)
    try:
        order = Order.read(context.run_config, project)
    except TacitError as error:
        if "out" in context.run_config:
            write_record(Path(str(context.run_config["out"])), unread(error))
        say_end("failed", str(error))
        raise
    federate(grid, order)


def in_one_sentence(record: logging.LogRecord) -> bool:
    """Let Flower log what a user can cause as its sentence, not as a traceback."""
    error = record.exc_info[1] if record.exc_info else None
    if isinstance(error, TacitError):
        record.msg = f"nothing was fitted: {error}"
        record.args = ()
        record.exc_info = None
    return True


@dataclass(frozen=True)
class Order:
    """What to run, how to fit it, and where results go."""

    inquiry: Inquiry
    out: Path
    method: str
    prior: str
    holders_are: "HoldersAre" = "differ"
    family: "FamilyName | None" = None
    response: str | None = None

    @classmethod
    def read(cls, config: UserConfig, project: Path) -> Self:
        """An order from a run's configuration; files are those of the project."""
        try:
            keys = str(config.get("holders", ""))
            nodes = project / str(config.get("nodes", "nodes.toml"))
            study = Study.load(project / str(config["study"]))
            inquiry = Inquiry(
                study=study,
                patience=_patience(config, study),
                least=int(config["least-holders"]),
                keys=_keys(project / keys) if keys else None,
                nodes=_nodes(nodes) if nodes.exists() else {},
            )
            return cls(
                inquiry=inquiry,
                out=Path(str(config["out"])),
                method=str(config.get("method", "noise-aware")),
                prior=str(config.get("prior", "weak")),
                holders_are=_one_of(config, "holders-are", _HOLDERS_ARE) or "differ",
                family=_one_of(config, "family", _FAMILIES) or None,
                response=_one_of(config, "response", study.responses) or None,
            )
        except KeyError as error:
            raise FederationError(
                f"[tool.flwr.app.config] lacks {error}: `tacit federate init` writes all of them"
            ) from None


def _one_of(config: UserConfig, name: str, allowed: tuple[str, ...]) -> Any:  # noqa: ANN401
    """A word of the configuration, "" where it says nothing."""
    word = str(config.get(name, ""))
    if word and word not in allowed:
        raise FederationError(
            f"{name} in [tool.flwr.app.config] must be one of {', '.join(allowed) or 'none'}; "
            f"got {word!r}"
        )
    return word


def _patience(config: UserConfig, study: Study) -> Patience:
    """How long is waited: in a secure sum not for holders that say nothing."""
    poll = float(config.get("poll", 10))
    if study.secure_sum is None:
        return Patience(deadline=float(config["deadline"]), poll=poll)
    return Patience(
        deadline=float(config["deadline"]),
        poll=min(poll, SUM_POLL),
        silence=float(config.get("silence", SILENCE)),
    )


def _nodes(path: Path) -> dict[int, str]:
    """Holders' names by the number of their SuperNode, from a file with one `name = "number"`."""
    numbers = read_toml(path, "the holders' SuperNodes", FederationError)
    if not all(isinstance(number, str) and number.isdecimal() for number in numbers.values()):
        raise FederationError(f'{str(path)!r} must hold one line  name = "number"  for each holder')
    return {int(number): name for name, number in numbers.items()}


def _keys(path: Path) -> dict[str, str]:
    """Public keys by holder's name, from a file with one `name = "key"` per line."""
    keys = read_toml(path, "the holders' keys", FederationError)
    if not keys or not all(isinstance(key, str) for key in keys.values()):
        raise FederationError(
            f'{str(path)!r} must hold one line  name = "public key"  for each holder'
        )
    return keys


def federate(grid: Grid, order: Order) -> "Posterior":
    """Ask, collect, fit, and write everything; `federation.json` in any case."""
    (order.out / "releases").mkdir(parents=True, exist_ok=True)
    minutes = Minutes(order.inquiry, order.out)
    minutes.write()
    try:
        posterior = _fitted(grid, order, minutes)
    except Exception as error:
        known = isinstance(error, TacitError)
        minutes.end("failed", str(error) if known else f"unexpected {type(error).__name__}")
        raise
    minutes.end("fitted", None)
    return posterior


def _fitted(grid: Grid, order: Order, minutes: Minutes) -> "Posterior":
    inquiry = order.inquiry
    loading = threading.Thread(target=_load_analyst, daemon=True)
    loading.start()
    ask = _gathered if inquiry.study.secure_sum is None else _summed
    releases = ask(grid, order, minutes)
    loading.join()
    from tacit.analyst.fit import fit
    from tacit.analyst.report import write_report

    collection = collect(
        releases, allow_simulated=inquiry.allow_simulated, trusted_keys=inquiry.keys
    )
    posterior = fit(
        collection,
        order.method,
        prior=order.prior,
        holders=order.holders_are,
        family=order.family,
        response=order.response,
    )
    posterior.save(order.out / "posterior.parquet")
    write_whole(order.out / "summary.txt", str(posterior.summary()) + "\n")
    write_report(posterior, order.out / "report.html")
    LOG.info("%d releases; posterior, summary and report are in %s", len(releases), order.out)
    return posterior


def _load_analyst() -> None:
    """Load what fits and reports while sites are at work: it takes a second that nobody waits."""
    for name in ("tacit.analyst.fit", "tacit.analyst.report"):
        importlib.import_module(name)


def _gathered(grid: Grid, order: Order, minutes: Minutes) -> list[Release]:
    """Each holder's release; of a study of several visits its latest message."""
    study = order.inquiry.study
    several = study.visit_count > 1 and len(study.planned_rows) > 1
    minutes.visit = 1 if several else None
    latest = {each.holder: each for each in _visited(grid, order, minutes, None)}
    if several:
        for _ in range(study.visit_count - 1):
            question = next_question(study, list(latest.values()))
            question.save(order.out / f"question{question.visit}.json")
            minutes.visit = question.visit
            answers = _visited(grid, order, minutes, question)
            if isinstance(next(iter(latest.values())), PlacesRelease):
                latest = {}  # who gave no first answer has nothing that a fit could use
            latest |= {each.holder: each for each in answers}
    return [each for each in latest.values() if isinstance(each, Release)]


def _visited(
    grid: Grid, order: Order, minutes: Minutes, question: Question | None
) -> list[Gathered]:
    """What holders say at one visit."""

    def tell(standing: Standing[Gathered]) -> None:
        if standing.document is not None:
            minutes.holders[standing.node] = standing.document.holder
        minutes.tell(standing)

    standings = gather(grid, order.inquiry, tell, question)
    minutes.take(standings)
    for standing in standings:
        if standing.document is not None:
            standing.document.save(order.out / "releases" / f"{standing.node}.json")
    return enough(standings, order.inquiry)


def _summed(grid: Grid, order: Order, minutes: Minutes) -> list[Release]:
    """One release, of all holders' sums over all visits, signed by those who stayed in each."""
    study = order.inquiry.study
    message, opening = _sum(grid, order, minutes, Sitting(study), None)
    for _ in range(study.visit_count - 1):
        question = next_question(study, [message])
        question.save(order.out / f"question{question.visit}.json")
        sitting = Sitting(study, question, opening)
        try:
            message, _ = _sum(grid, order, minutes, sitting, message)
        except TooFewError as error:
            if not _is_corrected(message):
                raise
            LOG.info("%s visit %d: %s; the visits before are fitted", MARK, sitting.number, error)
            break
    if not isinstance(message, Release):  # pragma: no cover - the last visit asks for statistics
        raise TypeError
    return [message]


def _is_corrected(message: Message) -> bool:
    """Whether a sum holds a correction: then it can be fitted without the visits that follow."""
    return isinstance(message, Release) and len(message.answers) > 1


def _sum(
    grid: Grid, order: Order, minutes: Minutes, sitting: Sitting, before: Message | None
) -> tuple[Message, str]:
    """The sum of one sitting, and its session."""
    inquiry = order.inquiry
    minutes.visit = sitting.number if inquiry.study.visit_count > 1 else None
    under_way = Sum(
        grid,
        sitting,
        inquiry.patience,
        before=before,
        on_change=minutes.tell,
        known=inquiry.nodes,
    )
    try:
        message = under_way.run()
    finally:
        minutes.holders |= under_way.names
        minutes.missing = under_way.missing
        minutes.paid = under_way.paid
        minutes.take(under_way.standings.values())
    attesting(message)
    message.save(order.out / "releases" / "sum.json")
    return message, under_way.session
