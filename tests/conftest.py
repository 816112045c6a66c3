"""What all tests share."""

import pytest

from tacit.privacy.gaussian import mu_of


@pytest.fixture(autouse=True)
def nothing_remembered():
    """A test that breaks the calculus must not be answered from what an earlier one computed.

    Nor the reverse.
    """
    mu_of.cache_clear()
    yield
    mu_of.cache_clear()
