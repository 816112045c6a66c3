"""What all tests share."""

import pytest

from tacit.privacy.gaussian import mu_of


@pytest.fixture(autouse=True)
def nothing_remembered():
    """A test that breaks the calculus must not be answered by what another computed."""
    mu_of.cache_clear()
    yield
    mu_of.cache_clear()
