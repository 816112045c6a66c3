"""Place: where a site's files of the federation lie, beside its policy.

`tacit federate join` writes site.toml with the server's address; keys, secret and the authority's
certificate lie beside it.
"""

from dataclasses import dataclass
from pathlib import Path

from tacit.errors import FederationError
from tacit.federation.project import NODE_PORT
from tacit.files import read_toml

FILE = "site.toml"


@dataclass(frozen=True)
class Place:
    """A folder with a site's files. `user` says whether services are the user's own."""

    folder: Path
    address: str = ""
    port: int = NODE_PORT
    user: bool = False

    @classmethod
    def beside(cls, policy: Path) -> "Place":
        """The place of a policy; without site.toml only what has a default is known."""
        folder = policy.absolute().parent
        if not (folder / FILE).exists():
            return cls(folder)
        fields = read_toml(folder / FILE, "the site's place", FederationError)
        return cls(
            folder=folder,
            address=str(fields.get("address", "")),
            port=int(fields.get("port", NODE_PORT)),
            user=bool(fields.get("user", False)),
        )

    def text(self) -> str:
        """What site.toml holds."""
        return (
            "# Written by `tacit federate join`: how this site reaches the server.\n"
            f'address = "{self.address}"\nport = {self.port}\nuser = {str(self.user).lower()}\n'
        )

    @property
    def certificate(self) -> Path:
        """The authority's certificate."""
        return self.folder / "ca.crt"

    @property
    def secret(self) -> Path:
        """What SuperNode and executor share."""
        return self.folder / "secret"

    def start(self, service: str) -> str:
        """The command that starts one of the site's services."""
        manner = "systemctl --user" if self.user else "systemctl"
        return f"`{manner} start tacit-{service}`"
