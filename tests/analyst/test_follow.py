"""A stream's batches, added up as they come, are what all of them are at once; and one more costs
the same whatever came before.

Covers `tacit.analyst.follow`, `tacit.analyst.streams`.
"""

import json
import time

import numpy as np
import pytest

import tacit
from tacit.analyst.collection import collect
from tacit.analyst.evidence import Evidence
from tacit.analyst.follow import Follower
from tacit.analyst.streams import Accumulator
from tacit.errors import MethodError, ReleaseError, SignatureError
from tacit.release.log import Entry, LogReader
from tacit.simulation import simulate
from tacit.study import Study

STUDY = Study.from_document(
    {
        "name": "follow-test",
        "epsilon": 2.0,
        "delta": 1e-6,
        "response": {"name": "y", "range": [-3, 3]},
        "features": [{"name": "a", "range": [-1, 1]}, {"name": "b", "range": [-1, 1]}],
    }
)
ROWS = 400


def entries(count, seed=0, holder="north", study=STUDY):
    """A stream's lines, with seeded noise."""
    rng = np.random.default_rng(seed)
    for number in range(1, count + 1):
        x = rng.uniform(-1, 1, (ROWS, 2))
        y = 0.5 + x @ [1.0, -0.5] + rng.normal(0, 0.4, ROWS)
        release = simulate(study, np.column_stack([x, y]), rng, holder=holder)
        yield Entry(release.in_stream(f"stream{seed}", number))


def write(path, lines):
    with path.open("a", encoding="utf-8") as file:
        file.writelines(entry.to_line() for entry in lines)
    return path


@pytest.fixture
def logs(tmp_path):
    return [
        write(tmp_path / "north.log", entries(12)),
        write(tmp_path / "south.log", entries(7, seed=1, holder="south")),
    ]


def assert_equal(first, second):
    np.testing.assert_allclose(first.mean(), second.mean(), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(first.covariance(), second.covariance(), rtol=1e-8, atol=1e-14)
    np.testing.assert_allclose(first.interval(), second.interval(), rtol=1e-8, atol=1e-11)


@pytest.mark.parametrize("method", ["noise-aware", "exact-fixed-s", "fixed-s-fast"])
def test_following_fitting_the_logs_and_fitting_single_files_agree(tmp_path, logs, method):
    follower = Follower(logs, method=method, allow_simulated=True)
    assert follower.update() == 19
    followed = follower.posterior()
    assert_equal(followed, tacit.fit(collect(logs, allow_simulated=True), method))
    files = []
    for log in logs:
        for number, line in enumerate(log.read_text(encoding="utf-8").splitlines(keepends=True)):
            files.append(tmp_path / f"{log.stem}-{number}.batch")
            files[-1].write_text(line, encoding="utf-8")
    apart = tacit.fit(collect(files[::-1], allow_simulated=True), method)
    assert_equal(followed, apart)
    assert sorted(c.release for c in followed.contributions) == sorted(
        c.release for c in apart.contributions
    )
    assert all(c.simulated and c.release.startswith("sha256-sum:") for c in followed.contributions)
    assert sorted((c.holder, c.n) for c in followed.contributions) == [
        ("north", 12 * ROWS),
        ("south", 7 * ROWS),
    ]


def test_pooled_batches_read_like_one_release_of_all_rows_with_the_noise_of_all(logs):
    collection = collect(logs[0], allow_simulated=True)
    evidence, parts = collection.evidence, [entry.release for entry in LogReader(logs[0]).entries()]
    assert isinstance(evidence, Evidence)
    assert evidence.holders == 1
    np.testing.assert_allclose(evidence.grams[0], sum(part.gram for part in parts))
    np.testing.assert_allclose(evidence.moments[0], sum(part.moment for part in parts))
    np.testing.assert_allclose(evidence.squares, [sum(part.yty for part in parts)])
    assert evidence.counts.tolist() == [12 * ROWS]
    one = parts[0].noise
    for name, sd in (
        ("gram_sd", one.xtx_diagonal),
        ("off_diagonal_sd", one.xtx_off_diagonal),
        ("moment_sd", one.xty),
        ("square_sd", one.yty),
    ):
        np.testing.assert_allclose(getattr(evidence, name), [np.sqrt(12) * sd])


def test_a_log_followed_as_it_grows_ends_where_it_would_have_at_once(tmp_path):
    lines, log = list(entries(20)), tmp_path / "north.log"
    log.touch()
    follower = Follower([log], allow_simulated=True)
    assert follower.update() == 0
    with pytest.raises(ReleaseError, match="needs at least one release"):
        follower.posterior()
    for start in range(0, 20, 5):
        write(log, lines[start : start + 5])
        assert follower.update() == 5
        follower.posterior()
    assert_equal(follower.posterior(), tacit.fit(collect(log, allow_simulated=True)))


def test_a_torn_line_waits_for_its_end(tmp_path):
    first, second = (entry.to_line() for entry in entries(2))
    log = tmp_path / "north.log"
    log.write_text(first + second[:700], encoding="utf-8")
    follower = Follower([log], allow_simulated=True)
    assert follower.update() == 1
    assert collect(log, allow_simulated=True).releases[0].batches == 1
    with log.open("a", encoding="utf-8") as file:
        file.write(second[700:])
    assert follower.update() == 1
    assert follower.streams[0].batches == 2


def test_a_log_that_becomes_shorter_is_refused(tmp_path):
    log = write(tmp_path / "north.log", entries(2))
    follower = Follower([log], allow_simulated=True)
    follower.update()
    log.write_text(log.read_text(encoding="utf-8").partition("\n")[0] + "\n", encoding="utf-8")
    with pytest.raises(ReleaseError, match="a log only grows"):
        follower.update()


def test_lost_batches_are_counted(tmp_path):
    one, _, three, _, _, six = entries(6)
    follower = Follower([write(tmp_path / "north.log", [one, three, six])], allow_simulated=True)
    follower.update()
    assert (follower.streams[0].batches, follower.lost) == (3, 3)


def test_a_log_and_a_release_of_another_holder_are_collected_together(tmp_path, logs):
    table = np.random.default_rng(3).uniform(-1, 1, (500, 3))
    release = simulate(STUDY, table, np.random.default_rng(4), holder="east")
    release.save(tmp_path / "east.json")
    collection = collect(tmp_path, allow_simulated=True)
    assert [one.holder for one in collection.releases] == ["east", "north", "south"]
    assert collection.evidence.counts.tolist() == [500, 12 * ROWS, 7 * ROWS]
    assert len(logs) == 2


def follow(log):
    follower = Follower([log], allow_simulated=True)
    follower.update()
    return follower.posterior()


def changed(entry, batch, stream=None):
    return Entry(entry.release.in_stream(stream or entry.stream, batch))


@pytest.mark.parametrize(
    ("spoil", "rule"),
    [
        (lambda lines: [*lines, lines[0]], "batch 1 of 'north' is there twice"),
        (lambda lines: [*lines, changed(lines[0], batch=9)], "batch 9 of 'north' is there twice"),
        (lambda lines: [*lines, *entries(1, seed=2)], "holder 'north' is there twice"),
        (
            lambda lines: [
                *lines,
                changed(next(entries(1, seed=2, holder="south")), stream="stream0", batch=9),
            ],
            "another holder",
        ),
        (
            lambda lines: [
                *lines,
                next(
                    entries(
                        1, 5, "south", Study.from_document(STUDY.document() | {"name": "other"})
                    )
                ),
            ],
            "different studies",
        ),
    ],
)
def test_batches_that_do_not_belong_are_refused(tmp_path, spoil, rule):
    log = write(tmp_path / "north.log", spoil(list(entries(3))))
    with pytest.raises(ReleaseError, match=rule):
        collect(log, allow_simulated=True)
    with pytest.raises(ReleaseError, match=rule):
        follow(log)


def test_origin_is_checked_batch_by_batch(logs):
    with pytest.raises(ReleaseError, match="simulated and protects nobody"):
        Follower(logs).update()
    with pytest.raises(ReleaseError, match="simulated and protects nobody"):
        collect(logs)
    with pytest.raises(SignatureError, match="goes with its holder"):
        Follower(logs, allow_simulated=True, trusted_keys=["abc"])


def test_what_cannot_be_followed_gets_one_sentence(tmp_path, logs):
    with pytest.raises(MethodError, match="to follow a stream"):
        Follower(logs, method="normal-x")
    with pytest.raises(ReleaseError, match="is not a release log"):
        Follower([tmp_path / "nowhere.log"])
    (tmp_path / "note.log").write_text("hello\n", encoding="utf-8")
    with pytest.raises(ReleaseError, match="is not a release log"):
        Follower([tmp_path / "note.log"])
    assert len(collect(tmp_path, allow_simulated=True).releases) == 2, (
        "a folder's other logs are left alone"
    )


# Cost.


def test_one_more_batch_costs_the_same_whatever_came_before():
    """Compares the quickest of 100 additions each, early and late; a cost that grew with the past
    would make the late ones 10 times slower.
    """
    template = next(entries(1))
    rng = np.random.default_rng(0)
    noise = rng.normal(size=(1100, 2, 2))
    accumulator, times = Accumulator(template), []
    for number in range(1, 1101):
        gram = template.release.gram.copy()
        gram[1:, 1:] += noise[number - 1] + noise[number - 1].T
        release = template.release.model_copy(update={"xtx": tuple(map(tuple, gram.tolist()))})
        entry = Entry(release.in_stream("stream0", number))
        begun = time.process_time()
        accumulator.add(entry)
        accumulator.summed()
        times.append(time.process_time() - begun)
    assert min(times[1000:]) < 3 * min(times[10:110])


def _log_of(path, batches):
    """A stream's log of so many batches of one release, whose noise differs."""
    fields = json.loads(next(entries(1)).to_line())
    rng = np.random.default_rng(0)
    with path.open("w", encoding="utf-8") as file:
        for number in range(1, batches + 1):
            fields["batch"] = fields["release"]["batch"]["number"] = number
            fields["release"]["xtx"][0][0] = float(rng.normal())
            file.write(json.dumps(fields) + "\n")
    return path


def _least_seconds(task):
    """The processor time of the quickest of three runs: what the machine does besides, adds."""
    seconds = []
    for _ in range(3):
        begun = time.process_time()
        task()
        seconds.append(time.process_time() - begun)
    return min(seconds)


def test_collecting_a_stream_costs_in_proportion_to_its_batches(tmp_path):
    """Four times the batches: four times the processor time; 16 times if each looked at all."""
    few = _log_of(tmp_path / "few.log", 250)
    many = _log_of(tmp_path / "many.log", 1000)
    assert collect(many, allow_simulated=True).releases[0].batches == 1000
    seconds_few = _least_seconds(lambda: collect(few, allow_simulated=True))
    seconds_many = _least_seconds(lambda: collect(many, allow_simulated=True))
    assert seconds_many < 8 * seconds_few
