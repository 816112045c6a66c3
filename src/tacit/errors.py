"""The exception tree: every failure a user can cause is a `TacitError` with a one-sentence message.

A message names the field, the rule and the way out. It never holds a value from a holder's table,
because errors and logs leave the house more easily than data does.
"""


class TacitError(Exception):
    """Base of all errors that Tacit raises on purpose; on the command line they are exit code 2."""


class StudyError(TacitError):
    """The study document breaks a rule."""


class TableError(TacitError):
    """A holder's table cannot be read as the study asks; the message holds no data value."""


class ReleaseError(TacitError):
    """A release document is malformed, or does not fit what it is used with."""


class SignatureError(ReleaseError):
    """A signature is missing, malformed or does not verify."""


class LedgerError(TacitError):
    """The ledger cannot be used as asked."""


class BudgetError(LedgerError):
    """A charge would exceed the limit, so nothing was published."""


class PriorError(TacitError):
    """A prior breaks a rule."""


class MethodError(TacitError):
    """A method is unknown, or needs something that the releases do not hold."""


class PosteriorError(TacitError):
    """A posterior file is malformed, or cannot give what is asked."""


class PolicyError(TacitError):
    """A site's policy file breaks a rule."""


class FederationError(TacitError):
    """A message between sites and server is malformed, or a federation cannot be run as asked."""


class DeskError(TacitError):
    """The desk cannot do what a page asks for; the page says what to do instead."""
