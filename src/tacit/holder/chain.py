"""The chain: every charge carries a hash of itself and of all before it.

So none can be changed or go missing unseen. The head after a charge is stated in the release it
paid for. Beside the ledger lies its witness, a small file with the number of charges and the last
head. A ledger that was put back from an older copy has fewer charges than its witness knows, and
publishes nothing until that is mended.
"""

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tacit.errors import LedgerError
from tacit.files import write_whole

GENESIS = "sha256:" + "0" * 64
"""What stands before the first charge."""


@dataclass(frozen=True)
class Mark:
    """How long a chain is, and its head."""

    charges: int
    head: str


def next_head(head: str, fields: Sequence[Any]) -> str:
    """The head after one more charge with these fields."""
    text = json.dumps([head, *fields], separators=(",", ":"), ensure_ascii=False)
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def check_chain(charges: Iterable[tuple[str, Sequence[Any]]], path: Path) -> Mark:
    """Recompute every head from its charge's fields; gives where the chain ends."""
    head = GENESIS
    count = 0
    for stated, fields in charges:
        count += 1
        head = next_head(head, fields)
        if stated != head:
            raise LedgerError(
                f"the ledger {str(path)!r} was changed: charge {count} does not fit its hash, "
                "so what was spent is not certain; restore it from a backup"
            )
    return Mark(charges=count, head=head)


class Witness:
    """The small file beside a ledger that remembers how far its chain had come."""

    def __init__(self, ledger: Path) -> None:
        self.path = ledger.with_name(ledger.name + ".head")

    def read(self) -> Mark | None:
        """What was last written; None where there is no such file."""
        try:
            fields = json.loads(self.path.read_text(encoding="utf-8"))
            return Mark(charges=int(fields["charges"]), head=str(fields["head"]))
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError):
            raise LedgerError(
                f"{str(self.path)!r}, which remembers how far the ledger had come, cannot be read: "
                "put it back, or remove it once you are sure that the ledger is the newest"
            ) from None

    def write(self, mark: Mark) -> None:
        """Remember a longer chain.

        A shorter one, from a process that was overtaken, is not written.
        """
        known = self.read()
        if known is None or known.charges < mark.charges:
            self.replace(mark)

    def replace(self, mark: Mark) -> None:
        """Remember this chain, whatever was known before."""
        fields = {"charges": mark.charges, "head": mark.head}
        write_whole(self.path, json.dumps(fields) + "\n", mode=0o600)
