"""tacit.federation.secure_sum (masks, statements, holder, server): the whole protocol.

In one process, with drop-outs, a lying server and wrong messages.

Covers `tacit.federation.secure_sum.masks`, `tacit.federation.secure_sum.statements`,
`tacit.federation.secure_sum.holder`, `tacit.federation.secure_sum.server`, `tacit.holder.share`.
"""

import base64
import json
import math

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sites import SLOPE, STUDY, SURE, changed, charges, make_site, table
from sums import NAMES, grid_of, sites, summing

from tacit.analyst.collection import collect
from tacit.analyst.fit import fit
from tacit.errors import FederationError, ReleaseError, StudyError
from tacit.federation.client.policy import Policy
from tacit.federation.client.requests import Requests
from tacit.federation.secure_sum import masks
from tacit.federation.secure_sum.server import Sum, message_of_sum
from tacit.federation.server.app import Order, federate
from tacit.federation.server.ask import Patience
from tacit.federation.server.gather import Inquiry
from tacit.holder.persons import batches_of
from tacit.holder.publish import publish
from tacit.holder.statistics import statistics_of
from tacit.privacy.mechanism import LATTICE_BITS
from tacit.release import Release
from tacit.rows.table import table_of
from tacit.study import Study
from tacit.study.toml import study_toml
from tacit.visits.sitting import Sitting

__all__ = ["sites"]
PATIENCE = Patience(deadline=1.0, poll=0.3, pause=0.0)


def exact(study, chosen):
    """The exact statistics of some sites together."""
    parts = [
        statistics_of(
            study, table_of(table(200 + 10 * NAMES.index(name), NAMES.index(name)), study).batches()
        )
        for name in chosen
    ]
    return sum(parts[1:], parts[0])


def assert_is_sum(release, study, chosen):
    assert_near(release, exact(study, chosen))


def assert_near(release, statistics):
    """Every entry within 8 sd of the exact sum: a false alarm in 1e14 runs; masks are larger."""
    gram = np.ldexp(statistics.gram.astype(float), -36)
    assert release.n == statistics.n
    assert np.all(np.abs(np.diag(release.gram - gram[:-1, :-1])) < 8 * release.noise.xtx_diagonal)
    assert np.all(np.abs(release.moment - gram[:-1, -1]) < 8 * release.noise.xty)
    assert abs(release.yty - gram[-1, -1]) < 8 * release.noise.yty


def dropping(plan):
    """A grid's fault: node k goes away for good when round plan[k] is answered."""
    rounds = {}

    def on_reply(node, reply):
        rounds[node] = rounds.get(node, 0) + 1
        return None if rounds[node] > plan.get(node, 9) else reply

    return on_reply


# The sum.


@pytest.mark.parametrize(
    "fields",
    [
        {"person": "patient"},
        {"weight": {"column": "share", "most": 4.0}},
        {"person": "patient", "weight": {"column": "share", "most": 4.0}},
    ],
    ids=["persons", "weights", "both"],
)
def test_a_sum_of_persons_and_of_weights_is_that_of_all_holders_together(sites, fields):
    for path in sites.values():
        rows = path.with_name("rows.parquet")
        plain = pq.read_table(rows)
        count = plain.num_rows
        patients = pa.array([f"p{k % 60}" for k in range(count)])
        shares = pa.array(np.linspace(1, 4, count))
        pq.write_table(
            plain.append_column("patient", patients).append_column("share", shares), rows
        )
    study = summing(sites, **fields)
    release = Sum(grid_of(sites), Sitting(study), PATIENCE).run()
    parts = [
        statistics_of(study, batches_of(study, str(path.with_name("rows.parquet"))))
        for path in sites.values()
    ]
    assert_near(release, sum(parts[1:], parts[0]))
    assert release.n == (300 if study.person else sum(200 + 10 * k for k in range(5)))


def test_all_holders_give_the_sum_and_each_pays_once(sites):
    study = summing(sites)
    release = Sum(grid_of(sites), Sitting(study), PATIENCE).run()
    assert_is_sum(release, study, NAMES)
    assert (release.holder, release.survivors, release.simulated) == (
        "secure sum of 5 holders",
        5,
        False,
    )
    assert Release.from_json(release.to_json()) == release
    for path in sites.values():
        (charge,) = charges(path)
        assert (charge.epsilon, charge.delta, charge.study) == (1.0, 1e-6, "length-of-stay (sum)")


@pytest.mark.parametrize("gone_after", [1, 2])
def test_who_drops_out_before_its_vector_came_is_made_up_for(sites, gone_after):
    study = summing(sites)
    release = Sum(grid_of(sites, dropping({2: gone_after})), Sitting(study), PATIENCE).run()
    assert_is_sum(release, study, [name for name in NAMES if name != "birch"])
    assert release.survivors == 4


@pytest.mark.parametrize("gone_after", [3, 4])
def test_who_drops_out_after_its_vector_came_is_in_the_sum(sites, gone_after):
    study = summing(sites, least=4, colluding=0)
    release = Sum(grid_of(sites, dropping({2: gone_after})), Sitting(study), PATIENCE).run()
    assert_is_sum(release, study, NAMES)
    assert release.survivors == 5


def test_with_too_few_there_is_no_sum(sites):
    study = summing(sites)
    with pytest.raises(
        FederationError,
        match=r"3 of at least 4 holders came through round 'masked', so there is no sum",
    ):
        Sum(grid_of(sites, dropping({2: 2, 3: 2})), Sitting(study), PATIENCE).run()


def test_a_study_runs_to_its_posterior(sites, tmp_path):
    study = summing(sites)
    order = Order(Inquiry(study, PATIENCE), tmp_path / "out", "noise-aware", "weak")
    posterior = federate(grid_of(sites), order)
    assert [contribution.holder for contribution in posterior.contributions] == [
        "secure sum of 5 holders"
    ]
    low, high = posterior.interval(SURE)[posterior.names().index("age")]
    assert low < SLOPE < high
    assert fit(collect(tmp_path / "out/releases")).mean().tolist() == posterior.mean().tolist()
    assert (tmp_path / "out/report.html").exists()
    nodes = json.loads((tmp_path / "out/federation.json").read_text())["nodes"]
    assert {node["holder"] for node in nodes} == set(NAMES)


def test_a_person_approves_a_sum_too(sites):
    path = make_site(sites["ash"].parent, "ash", rows=200, seed=0, key="sign.key", approval=True)
    study = summing(sites)
    requests = Requests(Policy.load(path).requests)
    with pytest.raises(FederationError, match="waiting for approval"):
        Sum(grid_of({"ash": path, "birch": sites["birch"]}), Sitting(study), PATIENCE).run()
    requests.decide(requests.find(study.hash), "approved")
    assert Sum(grid_of(sites), Sitting(study), PATIENCE).run().survivors == 5


def test_every_session_is_paid_and_a_repeated_message_is_not(sites):
    study = summing(sites, epsilon=0.3)
    grid = grid_of(sites)
    first = Sum(grid, Sitting(study), PATIENCE).run()
    second = Sum(grid, Sitting(study), PATIENCE).run()
    assert first.xtx != second.xtx
    assert [len(charges(path)) for path in sites.values()] == [2] * 5


# The noise.


@pytest.mark.parametrize(("holders", "least", "colluding"), [(3, 2, 0), (10, 8, 2), (50, 40, 10)])
def test_the_honest_survivors_alone_have_the_mechanisms_noise(holders, least, colluding):
    keys = {f"h{k:02d}": base64.b64encode(k.to_bytes(32, "big")).decode() for k in range(holders)}
    study = changed(secure_sum={"holders": keys, "least": least, "colluding": colluding})
    share = study.summed(1)
    needed = study.mechanism()
    for part, sd in vars(needed.noise).items():
        if sd is not None:
            honest = math.sqrt(least - colluding) * getattr(share.noise, part)
            assert sd <= honest <= sd * (1 + 1e-11)
            assert getattr(study.summed(holders).noise, part) == pytest.approx(
                math.sqrt(holders) * getattr(share.noise, part)
            )
    assert 2.0**share.lattice * 2**LATTICE_BITS <= min(share.noise.published())
    assert study.summed(holders).lattice == share.lattice


def test_a_shares_noise_has_its_size(sites):
    """200 shares of an empty table: the sum of squares within 6 sd of its expectation."""
    from tacit.holder.perturb import noisy_steps
    from tacit.holder.statistics import Statistics
    from tacit.privacy.noise import secure_noise

    study = summing(sites)
    share = study.summed(1)
    draws = np.array(
        [noisy_steps(Statistics.zero(study), share, secure_noise) for _ in range(200)],
        dtype=float,
    )
    scales = share.noise
    sds = (
        [scales.xtx_diagonal] * 3 + [scales.xtx_off_diagonal] * 3 + [scales.xty] * 3 + [scales.yty]
    )
    squares = np.sum((draws * 2.0**share.lattice / sds) ** 2)
    assert abs(squares - draws.size) < 6 * math.sqrt(2 * draws.size)


# What a release of a sum may say.


def test_a_sum_states_the_noise_of_those_who_stayed(sites):
    study = summing(sites)
    release = message_of_sum(Sitting(study), [0] * Sitting(study).length, 5)
    for wrong in ({"survivors": 4}, {"survivors": 3}, {"survivors": 6}, {"epsilon": 0.5}):
        with pytest.raises(ReleaseError):
            Release.from_json(json.dumps(json.loads(release.to_json()) | wrong))
    document = json.loads(release.to_json())
    del document["survivors"]
    with pytest.raises(ReleaseError, match="survivors must be there exactly in a secure sum"):
        Release.from_json(json.dumps(document))


def test_a_share_is_never_published_alone(sites, tmp_path):
    with pytest.raises(StudyError, match="a share by itself would not be private"):
        publish(summing(sites), table(), holder="ash", ledger=tmp_path / "ledger.db")


@pytest.mark.parametrize(
    ("fields", "rule"),
    [
        ({"least": 6}, "at most the number of holders"),
        ({"least": 3, "colluding": 3}, "colluding < least"),
        ({"least": 3, "colluding": 1}, "more than half"),
        ({"release": {"smallest_eigenvalue": True}}, "does not add up"),
    ],
)
def test_a_sum_that_could_not_be_private_is_refused(sites, fields, rule):
    with pytest.raises(StudyError, match=rule):
        summing(sites, **fields)


def test_studies_without_a_sum_keep_their_hash():
    assert "secure_sum" not in STUDY.document()
    assert Study.from_toml(study_toml(STUDY)).hash == STUDY.hash


def test_a_study_with_a_sum_is_written_and_read(sites):
    study = summing(sites)
    assert Study.from_toml(study_toml(study)).hash == study.hash


def test_a_wrong_share_is_noticed(sites):
    def lie(node, reply):
        answer = json.loads(reply.content["answer"]["release"])
        if node == 3 and "seeds" in answer:
            answer["seeds"]["ash"] = answer["seeds"]["birch"]
            reply.content["answer"]["release"] = json.dumps(answer)
        return reply

    with pytest.raises(FederationError, match=r"what was unmasked is no sum|do not fit together"):
        Sum(grid_of(sites, lie), Sitting(summing(sites)), PATIENCE).run()


# Masks.


def test_masks_cancel():
    private = {name: masks.new_secret() for name in NAMES}
    public = {name: masks.public_of(key) for name, key in private.items()}
    vectors = [
        masks.pairwise(
            key, {other: public[other] for other in NAMES if other != name}, name, "s", 20
        )
        for name, key in private.items()
    ]
    assert masks.add(*vectors) == [0] * 20
    assert all(any(entry for entry in vector) for vector in vectors)
    assert len({entry for vector in vectors for entry in vector}) == 100


def test_who_shows_anothers_key_shares_no_mask_with_it():
    """Under the names alone a mask with a twin would cancel the mask with the true holder."""
    private = {name: masks.new_secret() for name in ("birch", "elm")}
    twin = dict.fromkeys(("ash", "elm"), masks.public_of(private["elm"]))
    assert any(masks.pairwise(private["birch"], twin, "birch", "s", 20))


LOW_ORDER = [bytes(32), (1).to_bytes(32, "little"), (2**255 - 19 - 1).to_bytes(32, "little")]


@pytest.mark.parametrize(
    "data",
    [*LOW_ORDER, (2**255 - 19).to_bytes(32, "little"), b"x" * 31, b"x" * 33, b"\xff" * 32, b""],
)
def test_a_key_with_which_no_secret_can_be_shared_is_not_usable(data):
    private = masks.new_secret()
    assert not masks.is_usable(private, masks.encode(data))
    other = masks.public_of(masks.new_secret())
    assert masks.is_usable(private, other)
    assert not masks.is_usable(private, other + "\n")
    high = bytearray(masks.decode(other))
    high[31] |= 128
    assert not masks.is_usable(private, masks.encode(bytes(high))), "a second spelling"


@pytest.mark.parametrize("vector", [[0, 1, -1], [2**126, -(2**126), 2**127 - 1]])
def test_vectors_are_packed_and_read_back(vector):
    assert masks.signed(masks.unpack(masks.pack(vector), 3)) == vector
    with pytest.raises(FederationError, match="must have 2 entries"):
        masks.unpack(masks.pack(vector), 2)
