"""A study of stays in hospital, for tests of what is read off a posterior."""

import tacit

STUDY = tacit.Study.from_toml(
    """
    name = "test"
    epsilon = 1
    delta = 1e-6
    [response]
    name = "days"
    range = [0, 30]
    [[features]]
    name = "age"
    range = [20, 100]
    [[features]]
    name = "sex"
    levels = ["f", "m"]
    """
)
