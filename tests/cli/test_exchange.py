"""tacit exchange: studies and releases by stick or mail.

Covers `tacit.cli.exchange`, `tacit.release.parcel`.
"""

import json

import pytest


@pytest.fixture
def houses(tacit, house):
    """An analyst and two holders, each with a key."""
    keys = {}
    for name in ("analyst", "north", "south"):
        out = tacit("key", "new", "--out", f"{name}.key")[1]
        keys[name] = next(word for word in out.split() if word.endswith("="))
    assert house.exists()
    return keys


def publish(tacit, holder):
    ledger = ("--ledger", f"{holder}.db", "--out", f"{holder}.json", "--sign", f"{holder}.key")
    code, _, err = tacit("publish", "study.toml", "table.csv", "--holder", holder, *ledger)
    assert code == 0, err


def test_a_round_by_stick_lists_who_is_missing(tacit, houses, house):
    expect = ("--expect", "north", "--expect", "south", "--into", "round1")
    sent = ("exchange", "pack", "out.parcel", "study.toml", "--sender", "analyst")
    code, out, err = tacit(*sent, "--key", "analyst.key", *expect)
    assert code == 0, err
    assert "study    study.toml" in out
    trusted = ("--trusted-key", f"analyst={houses['analyst']}")
    code, out, err = tacit("exchange", "unpack", "out.parcel", "--into", "north", *trusted)
    assert code == 0, err
    assert (house / "north/analyst/study.toml").read_text() == (house / "study.toml").read_text()
    assert "missing: north, south" in out
    publish(tacit, "north")
    back = ("exchange", "pack", "north.parcel", "north.json", "--sender", "north")
    assert tacit(*back, "--key", "north.key")[0] == 0
    code, out, _ = tacit("exchange", "unpack", "north.parcel", "--into", "round1")
    assert code == 0
    assert "published by north; missing: south" in out
    assert "compare it by telephone" in out
    (standing,) = json.loads(tacit("exchange", "missing", "round1", "--json")[1])
    assert (standing["published"], standing["missing"]) == (["north"], ["south"])
    assert tacit("fit", "round1/north", "--out", "posterior.parquet")[0] == 0


def test_no_table_travels_by_mistake(tacit, houses, house):
    assert houses
    words = ("exchange", "pack", "x.parcel", "table.csv", "--sender", "north", "--key", "north.key")
    code, _, err = tacit(*words)
    assert code == 2
    assert "so that no table travels by mistake" in err
    assert not (house / "x.parcel").exists()


@pytest.mark.parametrize("field", ["sender", "items", "expects", "public_key"])
def test_a_parcel_that_was_changed_is_refused(tacit, houses, house, field):
    words = (
        "exchange",
        "pack",
        "x.parcel",
        "study.toml",
        "--sender",
        "north",
        "--key",
        "north.key",
    )
    assert tacit(*words, "--expect", "north")[0] == 0
    parcel = json.loads((house / "x.parcel").read_text())
    changes = {
        "sender": "south",
        "items": [*parcel["items"], parcel["items"][0] | {"name": "other.toml"}],
        "expects": {},
        "public_key": houses["south"],
    }
    (house / "x.parcel").write_text(json.dumps(parcel | {field: changes[field]}))
    code, _, err = tacit("exchange", "unpack", "x.parcel", "--into", "in")
    assert code == 2
    assert "changed on its way" in err
    assert not (house / "in").exists()


def test_a_sender_known_by_another_key_is_refused(tacit, houses, house):
    words = (
        "exchange",
        "pack",
        "x.parcel",
        "study.toml",
        "--sender",
        "north",
        "--key",
        "south.key",
    )
    assert tacit(*words)[0] == 0
    trusted = ("--trusted-key", f"north={houses['north']}")
    code, _, err = tacit("exchange", "unpack", "x.parcel", "--into", "in", *trusted)
    assert code == 2
    assert "not signed by a key that is trusted" in err
    assert not (house / "in").exists()


def test_what_is_there_is_not_overwritten(tacit, houses, house):
    assert houses
    words = (
        "exchange",
        "pack",
        "x.parcel",
        "study.toml",
        "--sender",
        "north",
        "--key",
        "north.key",
    )
    assert tacit(*words)[0] == 0
    assert tacit("exchange", "unpack", "x.parcel", "--into", "in")[0] == 0
    assert tacit("exchange", "unpack", "x.parcel", "--into", "in")[0] == 0
    (house / "in/north/study.toml").write_text("edited")
    code, _, err = tacit("exchange", "unpack", "x.parcel", "--into", "in")
    assert code == 2
    assert "other content" in err


def test_names_stay_in_their_folder(tacit, houses, house):
    """A hostile parcel, rightly signed, cannot write elsewhere."""
    from tacit.errors import ReleaseError
    from tacit.release.parcel import Parcel

    assert houses
    words = (
        "exchange",
        "pack",
        "x.parcel",
        "study.toml",
        "--sender",
        "north",
        "--key",
        "north.key",
    )
    assert tacit(*words)[0] == 0
    parcel = json.loads((house / "x.parcel").read_text())
    for name in ("../x.toml", ".bashrc", "a/b"):
        parcel["items"][0]["name"] = name
        (house / "y.parcel").write_text(json.dumps(parcel))
        with pytest.raises(ReleaseError):
            Parcel.load(house / "y.parcel")


def test_a_hostile_parcel_rightly_signed_ends_in_a_sentence(tacit, houses, house):
    """Names that stand for what the folder has already, and one name for two documents."""
    from tacit.errors import ReleaseError
    from tacit.release.parcel import Item, Parcel, unpack

    assert houses
    text = (house / "study.toml").read_text()
    item = Item(name="study.toml", kind="study", text=text)
    fields = {"sender": "north", "made": "now", "items": (item,), "public_key": "A" * 43 + "="}
    for change in ({"sender": "expected.json"}, {"items": (item, item)}):
        with pytest.raises(ValueError, match="must"):
            Parcel(**(fields | change))
    (house / "in/north/study.toml").mkdir(parents=True)
    (house / "in/south").write_text("a file")
    for sender in ("north", "south"):
        with pytest.raises(ReleaseError, match=r"other content|cannot make"):
            unpack(Parcel(**(fields | {"sender": sender})), house / "in")
    (house / "in/expected.json").write_text("[1]")
    assert "no study lies there" in tacit("exchange", "missing", "in")[1]
