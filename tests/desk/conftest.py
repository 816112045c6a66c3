"""A desk that runs, an officer who came in to it, and a table of theirs."""

import pytest
from desks import AGREED, Visitor, running, setting_in, write_table


@pytest.fixture
def desk(tmp_path, monkeypatch):
    """A visitor at a desk where the study lies open."""
    with running(setting_in(tmp_path), tmp_path, monkeypatch, [AGREED]) as address:
        yield Visitor(address)


@pytest.fixture
def officer(desk):
    return desk.come_in()


@pytest.fixture
def patients(tmp_path):
    return write_table(tmp_path / "patients.csv")
