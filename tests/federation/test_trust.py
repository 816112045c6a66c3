"""tacit.federation (client.policy, keys), release.attestation: whose keys are believed."""

import json
import math
from pathlib import Path

import pytest
from sites import changed, charges, make_site
from sums import NAMES, Wire, digests, grid_of, public_key, sites, summing
from typer.testing import CliRunner

from tacit.analyst.collection import collect
from tacit.cli import app
from tacit.errors import FederationError, PolicyError, ReleaseError, SignatureError
from tacit.federation.client.answer import answer
from tacit.federation.client.described import described
from tacit.federation.client.policy import Policy
from tacit.federation.client.requests import Request, Requests
from tacit.federation.keys import fingerprint
from tacit.federation.secure_sum.server import Sum
from tacit.federation.server.ask import Patience
from tacit.federation.wire import Reason, Step
from tacit.privacy.gaussian import epsilon_of, mu_of
from tacit.records import now
from tacit.release import Release
from tacit.release.attestation import attesting
from tacit.release.signature import new_key
from tacit.study.toml import study_toml
from tacit.study.words import telling
from tacit.visits.sitting import Sitting

__all__ = ["sites"]
PATIENCE = Patience(deadline=1.0, poll=0.3, pause=0.0)


def asked(study, path):
    """What a site says to the first round of a sum."""
    return answer(Step(study_toml(study), "ab" * 16, "keys", "{}"), Policy.load(path))


def invented(path, holder="north", holders=999):
    """A study of one real holder among many whose keys are the server's own."""
    keys = {f"h{k}": f"{k:043d}=" for k in range(holders)}
    real = public_key(path.with_name("sign.key"))
    return changed(
        secure_sum={"holders": {holder: real, **keys}, "least": holders + 1, "colluding": 0}
    )


# A person is asked, and can see who the others are.


def test_a_sum_with_invented_holders_waits_for_a_person(tmp_path):
    """Else a server could name 999 holders of its own, and leave 1/1000 of the noise."""
    path = make_site(tmp_path, approval=False, signed=True)
    reply = asked(invented(path), path)
    assert (reply.state, reply.reason) == ("waiting", Reason.WAITING)
    assert charges(path) == []


def test_a_sum_that_the_policy_names_by_its_hash_was_seen_by_a_person(sites):
    study = summing(sites)
    assert asked(study, sites["ash"]).state == "released"
    other = changed(secure_sum=study.secure_sum.model_dump(), name="length-of-stay", epsilon=0.5)
    assert asked(other, sites["ash"]).reason is Reason.STUDY


@pytest.mark.parametrize("approval", [True, False])
def test_the_prompt_shows_every_key_as_a_fingerprint(sites, tmp_path, approval):
    keys = {name: public_key(path.with_name("sign.key")) for name, path in sites.items()}
    peers = {name: key for name, key in keys.items() if name != "ash"}
    study = changed(secure_sum={"holders": keys, "least": 4, "colluding": 1})
    path = make_site(
        tmp_path / "again", "ash", approval=approval, peers=peers if approval else None
    )
    sites["ash"].with_name("sign.key").rename(path.with_name("sign.key"))
    path.write_text('key = "sign.key"\n' + path.read_text())
    assert asked(study, path).state == "waiting"
    shown = CliRunner().invoke(app, ["federate", "approve", str(path), study.hash, "--refuse"])
    assert shown.exit_code == 0
    for name, key in keys.items():
        note = "ask them to read it out"
        note = "pinned in the policy" if approval else note
        note = "this site" if name == "ash" else note
        assert f"{fingerprint(key)}  {name!r} ({note})" in shown.output


def test_a_fingerprint_is_short_and_differs_with_the_key(tmp_path):
    keys = [new_key(tmp_path / f"{k}.key") for k in range(50)]
    prints = {fingerprint(key) for key in keys}
    assert len(prints) == 50
    assert all(len(text) == 24 and not set(text) & set("ILOU") for text in prints)
    assert fingerprint("A" * 43 + "=") == "CSM7-NBFR-CAYQ-EV4F-R65R"


def test_the_advisories_state_what_too_little_noise_costs():
    """ε at δ = 1e-6 of a release at ε = 1 whose noise has part of its variance alone."""
    page = (Path(__file__).parents[2] / "docs/security-advisories.md").read_text(encoding="utf-8")
    for part, stated in ((1 / 2, "ε = 1.45"), (2 / 15, "ε = 3.00"), (1 / 1000, "ε = 62.8")):
        epsilon = epsilon_of(mu_of(1.0, 1e-6) / math.sqrt(part), 1e-6)
        assert float(stated.removeprefix("ε = ")) == pytest.approx(epsilon, rel=5e-3)
        assert stated in page


# Keys that do not fit.


def test_a_study_with_another_key_for_this_site_is_refused(sites):
    study = summing(sites)
    keys = dict(study.secure_sum.holders) | {"ash": "A" * 43 + "="}
    wrong = changed(secure_sum={"holders": keys, "least": 4, "colluding": 1})
    path = sites["ash"]
    path.write_text(path.read_text().replace(study.hash, wrong.hash))
    reply = asked(wrong, path)
    assert (reply.state, reply.reason) == ("refused", Reason.PEERS)


def test_a_study_without_this_site_is_refused(sites):
    study = summing(sites)
    keys = {name: key for name, key in study.secure_sum.holders.items() if name != "ash"}
    wrong = changed(secure_sum={"holders": keys, "least": 4, "colluding": 1})
    path = sites["ash"]
    path.write_text(path.read_text().replace(study.hash, wrong.hash))
    assert asked(wrong, path).reason is Reason.PEERS


@pytest.mark.parametrize("fault", ["none", "another key", "an unknown holder"])
def test_pinned_keys_of_peers_are_the_only_ones(sites, fault):
    study = summing(sites)
    path = sites["ash"]
    peers = {name: key for name, key in study.secure_sum.holders.items() if name != "ash"}
    if fault == "another key":
        peers["elm"] = "A" * 43 + "="
    if fault == "an unknown holder":
        del peers["elm"]
    lines = ["", "[peers]", *(f'{name} = "{key}"' for name, key in peers.items())]
    path.write_text(path.read_text() + "\n".join(lines))
    expected = Reason.NONE if fault == "none" else Reason.PEERS
    assert asked(study, path).reason is expected


def test_a_peers_key_must_be_one(tmp_path):
    path = make_site(tmp_path)
    path.write_text(path.read_text() + '\n[peers]\nsouth = "short"\n')
    with pytest.raises(PolicyError, match=r"peers\.south"):
        Policy.load(path)


# Refusals that tell of rows are one list.


def test_telling_is_one_list(tmp_path):
    feature = {"name": "sex", "levels": ["female", "male"]}
    study = changed(features=[feature], missing="refuse")
    assert [text.partition("'sex'")[0] for text in telling(study)] == [
        "a row whose ",
        "a missing value",
    ]
    assert telling(changed()) == []
    policy = Policy.load(make_site(tmp_path, approval=False))
    assert policy.asks_a_person(study)
    assert not policy.asks_a_person(changed())


# One bad request blocks no other.


def test_a_broken_request_is_named_and_the_others_are_decided(tmp_path):
    requests = Requests(tmp_path)
    for epsilon in (0.5, 1.0):
        requests.ask(changed(epsilon=epsilon))
    good, bad = sorted(tmp_path.glob("*.json"))
    document = json.loads(bad.read_text())
    bad.write_text(json.dumps(document | {"study": document["study"] + "surprise = 1\n"}))
    (tmp_path / "other.json").write_bytes(b"\xff\x00")
    (tmp_path / "deep.json").write_text("[" * 100_000)
    (readable,) = requests.every()
    assert readable.study_hash.endswith(good.stem)
    complaints = requests.broken()
    assert len(complaints) == 3
    assert all("is left out" in text and "\n" not in text for text in complaints)
    assert requests.decide(requests.find(good.stem[:12]), "approved").decision == "approved"
    assert requests.ask(changed(epsilon=0.7)) == "waiting"
    with pytest.raises(FederationError, match=r"no request in .* \(3 more cannot be read\)"):
        requests.find(bad.stem)


def test_the_list_of_requests_names_a_broken_one(tmp_path):
    path = make_site(tmp_path, approval=True)
    answer(study_toml(changed()), Policy.load(path))
    (tmp_path / "requests" / "broken.json").write_text("{}")
    shown = CliRunner().invoke(app, ["federate", "approve", str(path)])
    assert shown.exit_code == 0
    assert "'length-of-stay', epsilon = 1" in shown.stdout
    assert "request broken.json is left out" in shown.stderr


# A secure sum is signed by those who stayed.


@pytest.fixture
def release(sites):
    return Sum(grid_of(sites), Sitting(summing(sites)), PATIENCE).run()


def test_a_sum_is_signed_by_its_holders(release, sites):
    assert set(attesting(release)) == set(NAMES)
    assert set(release.attestation.vectors) == set(NAMES)
    assert Release.from_json(release.to_json()) == release
    keys = {name: public_key(path.with_name("sign.key")) for name, path in sites.items()}
    assert collect([release], trusted_keys=keys).releases == (release,)
    with pytest.raises(SignatureError, match="'ash' with another key"):
        collect([release], trusted_keys=keys | {"ash": keys["elm"]})


def changed_release(release, **fields):
    document = json.loads(release.to_json())
    document["attestation"] |= fields
    return json.dumps(document)


@pytest.mark.parametrize(
    ("fields", "rule"),
    [
        ({"session": "ff" * 16}, "does not verify"),
        ({"sharers": ["elm", "ash", "fir", "birch", "cedar"]}, ""),
        ({"signatures": {"ash": "A" * 88}}, "does not verify"),
    ],
)
def test_what_holders_signed_cannot_be_changed(release, fields, rule):
    other = Release.from_json(changed_release(release, **fields))
    if not rule:
        assert attesting(other)
        return
    with pytest.raises(SignatureError, match=rule):
        attesting(other)


def test_a_changed_vector_is_noticed(release):
    vectors = release.attestation.vectors | {"elm": "0" * 64}
    with pytest.raises(SignatureError, match="does not verify"):
        attesting(Release.from_json(changed_release(release, vectors=vectors)))


def test_too_few_signatures_do_not_count(release):
    few = dict(list(release.attestation.signatures.items())[:3])
    with pytest.raises(SignatureError, match="signed by 3 holders, and 4 must agree"):
        attesting(Release.from_json(changed_release(release, signatures=few)))


@pytest.mark.parametrize(
    "fields",
    [{"sharers": ["ash"]}, {"vectors": {"ash": "0" * 64}}, {"signatures": {"oak": "AAAA"}}],
)
def test_an_attestation_must_fit_the_sum(release, fields):
    with pytest.raises(ReleaseError, match="attestation"):
        Release.from_json(changed_release(release, **fields))


def test_a_release_of_one_holder_has_none(tmp_path, release):
    document = json.loads(release.to_json())
    single = answer(study_toml(changed()), Policy.load(make_site(tmp_path / "one"))).release
    assert "attestation" not in json.loads(single)
    fields = json.loads(single) | {"attestation": document["attestation"]}
    with pytest.raises(ReleaseError, match="attestation"):
        Release.from_json(json.dumps(fields))


def test_a_server_cannot_claim_another_vector_of_a_holder(sites):
    wire = Wire(sites, summing(sites))
    vectors = wire.until_masked()[2]
    claimed = vectors | {"ash": vectors["elm"]}
    assert wire.say("ash", "agree", {"survivors": digests(claimed)}) == "SUM"


def test_who_approves_several_visits_is_told_that_the_server_will_ask_again(tmp_path):
    study = changed(visits=3, planned_rows=[60, 60])
    policy = Policy.load(make_site(tmp_path / "north", "north"))
    request = Request(study_hash=study.hash, study=study_toml(study), asked=now())
    leaves = described(request, policy).leaves
    assert leaves.startswith("3 files with noisy sums, one for each visit")
    assert "whatever the server then asks, once each" in leaves
