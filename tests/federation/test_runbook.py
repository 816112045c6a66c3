"""docs/operate.md, walked through: joining, backups, keys, certificates, upgrades and incidents.

One federation of three sites is set up by the runbook's commands, with real processes, and every
incident happens in it, to a site of its own. Tests play systemd, nginx and the hands of people.
"""

import shutil
import time

import pytest
from book import by_the_book, commands
from processes import until
from typer.main import get_command

from tacit.cli import app as tacit_app

HOLDERS = ("north", "south", "east")


def test_four_commands_at_a_site_and_five_at_the_server_are_counted_in_the_runbook():
    server, site = commands("Join")
    assert len(server) <= 5
    assert len(site) <= 4
    federate = get_command(tacit_app).commands["federate"].commands
    words = [line.split() for line in (*server, *site)]
    assert [line[:2] for line in words if line[0] != "tacit"] == [["pip", "install"]] * 2
    assert {line[2] for line in words if line[0] == "tacit"} <= set(federate)


@pytest.fixture(scope="module")
def book(tmp_path_factory):
    """From nothing to an answered study, by those commands; then requests need no person."""
    with by_the_book(tmp_path_factory.mktemp("book"), HOLDERS) as made:
        made.begin("first", made.app)
        for holder in HOLDERS:
            made.tacit(holder, "federate", "check", made.policy(holder))
            made.approve(holder, "length-of-stay")
        code, said = made.made.ended("first", 400)
        assert code == 0, said
        assert [made.charges(holder) for holder in HOLDERS] == [["length-of-stay"]] * 3
        for holder in HOLDERS:
            policy = made.policy(holder)
            policy.write_text(policy.read_text().replace("approval = true", "approval = false"))
        yield made


@pytest.mark.slow
def test_a_ledger_restored_from_an_old_backup_publishes_nothing_until_it_is_mended(book, tmp_path):
    ledger = book.ledger("north")
    (backup,) = commands("Back up and restore")
    for line in backup:
        here = line.replace("/var/lib/tacit", str(ledger.parent)).replace("/backup", str(tmp_path))
        done = book.made.run("sh", "-c", here)
        assert done.returncode == 0, done.stderr
    book.run(book.write("backup"))
    book.made.stop("north-site")
    for path in ledger.parent.glob("ledger.db-*"):
        path.unlink()
    shutil.copy(tmp_path / "ledger.db", ledger)
    book.start("north", "site")
    later = book.write("later")
    said = book.run(later, deadline=30.0, code=2)
    assert "north" in said
    assert book.charges("north") == ["length-of-stay"]
    seen = book.tacit("north", "federate", "status", book.policy("north"), code=3)
    assert "tacit ledger mend" in seen
    (release,) = [
        path
        for path in (book.home("server") / "results-backup/releases").iterdir()
        if '"north"' in path.read_text()
    ]
    book.tacit("north", "ledger", "mend", release, "--dataset", "patients", "--ledger", ledger)
    book.run(later)
    assert book.charges("north") == ["length-of-stay", "length-of-backup", "length-of-later"]
    assert book.charges("south") == book.charges("north")


@pytest.mark.slow
def test_a_stolen_connection_key_is_turned_away_once_it_is_renewed(book):
    thief = book.home("thief")
    shutil.copytree(book.policy("south").parent, thief)
    book.tacit("south", "federate", "renew", book.policy("south"), "--user", "--yes")
    book.admit("south")
    book.restart("south", "supernode", "site")
    link = ("--address", f"localhost:{book.wire.port}", "--folder", thief)
    book.made.tacit("thief", "federate", "node", *link)
    until(lambda: "may not know this site's key" in book.made.log("thief"), "it is turned away")
    book.made.kill("thief")
    book.run(book.write("renewed"))
    assert book.charges("south").count("length-of-renewed") == 1


@pytest.mark.slow
def test_a_stolen_signing_key_publishes_nothing_more(book):
    book.tacit("server", "federate", "dismiss", book.app, "east", "--yes")
    book.run(book.write("without"), least=2)
    assert "length-of-without" not in book.charges("east")
    book.tacit("east", "federate", "renew", book.policy("east"), "--sign", "--user", "--yes")
    book.admit("east")
    book.restart("east", "supernode", "site")
    book.run(book.write("signed"))
    assert book.charges("east").count("length-of-signed") == 1
    said = book.run(book.app, deadline=40.0, code=2)
    assert "east: rejected" in said, "what the old key signed does not count any more"


@pytest.mark.slow
def test_a_site_that_published_by_mistake_says_what_it_paid_and_publishes_no_more(book):
    book.run(book.write("mistake"))
    shown = book.tacit("east", "ledger", "show", "--ledger", book.ledger("east"))
    assert "length-of-mistake" in shown.replace("\n", "")
    policy = book.policy("east")
    before = policy.read_text()
    policy.write_text(before.replace('studies = ["length-of-*"]', 'studies = ["length-of-stay"]'))
    said = book.run(book.write("another"), least=2)
    assert "east: refused: policy: the study is not one that this site takes part in" in said
    assert "length-of-another" not in book.charges("east")
    policy.write_text(before)


@pytest.mark.slow
def test_the_servers_certificate_is_renewed_and_no_site_does_anything(book):
    server = book.home("server")
    certificate = server / ".config/tacit/superlink.crt"
    before = certificate.read_bytes()
    book.tacit("server", "federate", "renew", server / "stay", "--user", "--yes")
    assert certificate.read_bytes() != before
    flower = server / ".config/tacit/flwr/config.toml"
    flower.write_text(flower.read_text().replace(":8000", f":{book.port}"))
    book.restart("server", "superlink")
    until(book.answers, "the SuperLink answers")
    book.run(book.write("certified"))


@pytest.mark.slow
def test_the_authority_is_changed_while_sites_trust_both(book):
    server = book.home("server")
    fresh = server / "fresh"
    shutil.copytree(server / "stay/superlink", fresh)
    for name in ("ca.key", "ca.crt", "superlink.crt", "superlink.key"):
        (fresh / name).unlink()
    done = book.made.run("sh", fresh / "certificates.sh")
    assert done.returncode == 0, done.stderr
    for holder in HOLDERS:
        with book.policy(holder).with_name("ca.crt").open("a") as trusted:
            trusted.write((fresh / "ca.crt").read_text())
        book.restart(holder, "supernode")
    for name in ("ca.key", "ca.crt", "superlink.crt", "superlink.key"):
        shutil.copy(fresh / name, server / "stay/superlink" / name)
        if name != "ca.key":
            shutil.copy(fresh / name, server / ".config/tacit" / name)
    book.restart("server", "superlink")
    until(book.answers, "the SuperLink answers")
    book.run(book.write("trusted"))


@pytest.mark.slow
def test_a_site_is_upgraded_while_a_study_runs(book, tmp_path):
    """What arrives while it is stopped is asked again; the ledger opens as before."""
    book.made.stop("north-site")
    book.begin("upgrade", book.write("upgraded"))
    until(lambda: "south: released" in book.made.log("upgrade"), "south has published")
    shutil.copy(book.ledger("north"), tmp_path)
    book.tacit("north", "federate", "check", book.policy("north"))
    book.start("north", "site")
    begun = time.monotonic()
    code, said = book.made.ended("upgrade", 300)
    assert code == 0, said
    assert time.monotonic() - begun < 240
    assert book.charges("north").count("length-of-upgraded") == 1


@pytest.mark.slow
def test_who_leaves_keeps_the_ledger_and_is_dismissed(book):
    for service in ("site", "supernode"):
        book.made.stop(f"east-{service}")
    book.tacit("east", "federate", "leave", book.policy("east"), "--user", "--yes")
    book.tacit("server", "federate", "dismiss", book.app, "east", "--yes")
    paid = book.charges("east")
    book.run(book.write("left"), least=2)
    assert book.charges("east") == paid
