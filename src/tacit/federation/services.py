"""Services of systemd: written, started and taken away, for the machine or for one user.

As root they are the machine's, each with the user that its file names. Without root they are the
user's own (`systemctl --user`): they run as that user, and what only root can forbid is left out.
Where there is no systemd, as in a container, files are written and the commands are said.
"""

import os
import pwd
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tacit.files import write_whole

ROOTS_ONLY = (
    "User=",
    "Group=",
    "StateDirectory=",
    "ProtectSystem=",
    "ProtectHome=",
    "PrivateTmp=",
    "InaccessiblePaths=",
    "IPAddressDeny=",
    "IPAddressAllow=",
)
"""Lines that only a service of the machine can have."""


def is_root() -> bool:
    """Whether this process may change the machine."""
    return os.geteuid() == 0


def is_user(name: str) -> bool:
    """Whether the machine has such a user."""
    try:
        pwd.getpwnam(name)
    except KeyError:
        return False
    return True


def add_users(users: Sequence[str], group: str) -> None:
    """Add users for services, with a group in common; those that are there stay as they are."""
    subprocess.run(["groupadd", "--system", "--force", group], check=True)  # noqa: S603,S607
    for user in users:
        if not is_user(user):
            command = ["useradd", "--system", "--groups", group, user]
            subprocess.run(command, check=True)  # noqa: S603


@dataclass(frozen=True)
class Services:
    """Where services are written, and how they are started.

    `root` is the top of the file system, which a test may put elsewhere.
    """

    user: bool
    root: Path = Path("/")

    @property
    def folder(self) -> Path:
        """Where unit files lie."""
        if self.user:
            home = os.environ.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
            return Path(home) / "systemd/user"
        return self.root / "etc/systemd/system"

    def write(self, name: str, text: str) -> None:
        """Put a unit file in its place."""
        lines = text.splitlines()
        if self.user:
            lines = [line for line in lines if not line.startswith(ROOTS_ONLY)]
            lines = [line.replace("multi-user.target", "default.target") for line in lines]
        self.folder.mkdir(parents=True, exist_ok=True)
        write_whole(self.folder / name, "\n".join(lines) + "\n")

    def start(self, names: Sequence[str]) -> str | None:
        """Start services now and at every boot; the commands to give where that cannot be done."""
        return self._ask(["daemon-reload"], ["enable", *names], ["restart", *names])

    def stop(self, names: Sequence[str]) -> str | None:
        """Stop services and start them no more."""
        return self._ask(["disable", "--now", *names])

    def remove(self, names: Sequence[str]) -> None:
        """Take unit files away."""
        for name in names:
            (self.folder / f"{name}.service").unlink(missing_ok=True)

    def _ask(self, *orders: Sequence[str]) -> str | None:
        manner = ["systemctl", *(["--user"] if self.user else [])]
        said = "; ".join(" ".join([*manner, *order]) for order in orders)
        if shutil.which("systemctl") is None or self.root != Path("/"):
            return said
        for order in orders:
            asked = subprocess.run(  # noqa: S603 - fixed words
                [*manner, *order], capture_output=True, check=False, stdin=subprocess.DEVNULL
            )
            if asked.returncode != 0:
                return said
        return None
