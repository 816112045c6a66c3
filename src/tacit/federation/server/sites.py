"""Sites: which holders a project knows, in its folder app/: their keys, and their SuperNodes.

app/holders.toml   name = "public key of releases"
app/nodes.toml     name = "number of its SuperNode"
app/nodes/NAME.pub the public key of its SuperNode
"""

from dataclasses import dataclass
from pathlib import Path

from tacit.errors import FederationError
from tacit.files import read_toml, write_whole
from tacit.study.toml import table_lines


@dataclass(frozen=True)
class Sites:
    """The holders of the project whose app lies in a folder."""

    app: Path

    def nodes(self) -> dict[str, str]:
        """The number of each holder's SuperNode."""
        return self._read("nodes.toml")

    def keys(self) -> dict[str, str]:
        """Each holder's public key of releases."""
        return self._read("holders.toml")

    def key_file(self, name: str) -> Path:
        """Where the public key of a holder's SuperNode lies."""
        return self.app.parent / "nodes" / f"{name}.pub"

    def node_key(self, name: str) -> str:
        """The public key of a holder's SuperNode as the SuperLink knows it."""
        path = self.key_file(name)
        if not path.exists():
            return ""
        from cryptography.hazmat.primitives.serialization import (
            Encoding,
            PublicFormat,
            load_ssh_public_key,
        )

        key = load_ssh_public_key(path.read_bytes())
        return key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode().strip()

    def add(self, name: str, key: str, node_key: str, number: str) -> None:
        """Keep a holder; one that was there is replaced."""
        self.key_file(name).parent.mkdir(exist_ok=True)
        write_whole(self.key_file(name), node_key)
        self._write("holders.toml", self.keys() | {name: key})
        self._write("nodes.toml", self.nodes() | {name: number})

    def remove(self, name: str) -> None:
        """Forget a holder."""
        self.key_file(name).unlink(missing_ok=True)
        for file, kept in (("holders.toml", self.keys()), ("nodes.toml", self.nodes())):
            self._write(file, {other: text for other, text in kept.items() if other != name})

    def _read(self, file: str) -> dict[str, str]:
        path = self.app / file
        if not path.exists():
            return {}
        fields = read_toml(path, f"the holders' {file}", FederationError)
        return {str(name): str(text) for name, text in fields.items()}

    def _write(self, file: str, fields: dict[str, str]) -> None:
        write_whole(self.app / file, table_lines(dict(sorted(fields.items()))))
