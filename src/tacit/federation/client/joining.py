"""Joining, leaving and renewing at a site: said before it is done, and no harm if done twice.

A key is never overwritten, nor a policy that was edited: what is there already is left as it is.
"""

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tacit.errors import FederationError
from tacit.federation.client.place import FILE, Place
from tacit.federation.invitation import Invitation, Reply
from tacit.federation.keys import ensure_keys, write_node_key
from tacit.federation.project import NODE_PORT, Project, filled
from tacit.federation.services import Services, add_users, is_user
from tacit.files import write_whole

SERVICES = ("tacit-supernode", "tacit-site")
GROUP = "tacit-link"


@dataclass(frozen=True)
class Act:
    """One thing to do: its words, whether it is done already, and how it is done."""

    words: str
    is_done: bool
    do: Callable[[], None]


@dataclass(frozen=True)
class Joining:
    """A site about to join. `data` is where its rows lie, `user` without root."""

    invitation: Invitation
    folder: Path
    state: Path
    data: str
    prefix: Path
    services: Services
    port: int = NODE_PORT

    @property
    def user(self) -> bool:
        """Whether services are the user's own."""
        return self.services.user

    def acts(self) -> list[Act]:
        """Everything that joining is, in order."""
        return [
            *self._accounts(),
            Act(
                f"make the folders {self.folder} and {self.state}",
                self.folder.is_dir() and self.state.is_dir(),
                self._make_folders,
            ),
            Act(
                f"make this site's keys in {self.folder}",
                all((self.folder / name).exists() for name in ("sign.key", "node.key", "secret")),
                self._make_keys,
            ),
            self._file("ca.crt", self.invitation.authority),
            self._file(
                FILE, Place(self.folder, self.invitation.address, self.port, self.user).text()
            ),
            Act(
                f"write the policy {self.folder / 'holder.toml'}, to be read and edited",
                (self.folder / "holder.toml").exists(),
                lambda: write_whole(self.folder / "holder.toml", self._filled("holder.toml")),
            ),
            *(self._service(name) for name in SERVICES),
        ]

    def _accounts(self) -> list[Act]:
        """As root: users of the two processes, of whom one cannot read rows."""
        if self.user or self.services.root != Path("/"):
            return []
        users = ("tacit", "tacit-supernode")
        return [
            Act(
                f"add the users {' and '.join(users)}, with the group {GROUP} in common",
                all(is_user(user) for user in users),
                lambda: add_users(users, GROUP),
            )
        ]

    def _make_folders(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self.state.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not self.user and is_user("tacit"):
            shutil.chown(self.state, "tacit")

    def _make_keys(self) -> None:
        ensure_keys(self.folder)
        if not self.user and is_user("tacit"):
            shutil.chown(self.folder / "node.key", "tacit-supernode")
            shutil.chown(self.folder / "sign.key", "tacit")
            shutil.chown(self.folder / "secret", group=GROUP)

    def _file(self, name: str, text: str) -> Act:
        path = self.folder / name
        same = path.exists() and path.read_text(encoding="utf-8") == text
        return Act(f"write {path}", same, lambda: write_whole(path, text))

    def _service(self, name: str) -> Act:
        path = self.services.folder / f"{name}.service"
        return Act(
            f"write the service {path}",
            path.exists(),
            lambda: self.services.write(f"{name}.service", self._filled(f"{name}.service")),
        )

    def _filled(self, name: str) -> str:
        """A template of this site: the policy too is made here, of the study and nothing else."""
        holder = self.invitation.holder
        common = Project(self.invitation.agreement(), (holder,), self.invitation.address).words()
        places = {
            "HOLDER": holder,
            "PREFIX": str(self.prefix),
            "FOLDER": str(self.folder),
            "STATE": str(self.state),
            "NODESTATE": str(self.state / "node") if self.user else "/var/lib/tacit-supernode",
            "NODEPORT": str(self.port),
            "DATA": json.dumps(self.data)[1:-1],
        }
        return filled(f"holder/{name}", common | places)

    def reply(self) -> Reply:
        """What the analyst needs to know of this site."""
        public = (self.folder / "node.key.pub").read_text(encoding="utf-8").strip()
        return Reply.of(self.invitation.holder, public, self.folder / "sign.key")


def perform(acts: list[Act]) -> None:
    """Do what is not done yet."""
    for act in acts:
        if act.is_done:
            continue
        try:
            act.do()
        except PermissionError as error:
            raise FederationError(
                f"could not {act.words}: {error.strerror}; run it as root, or without root with "
                "--user"
            ) from None


def leave(place: Place, services: Services) -> str | None:
    """Stop the services, take them away, and destroy what lets this site connect.

    Ledger, policy and signing key stay: they prove what was published. Gives the commands that
    could not be run.
    """
    unsaid = services.stop(SERVICES)
    services.remove(SERVICES)
    for name in ("node.key", "node.key.pub", "secret"):
        (place.folder / name).unlink(missing_ok=True)
    return unsaid


def renew(place: Place, *, sign: bool) -> None:
    """New keys in the place of those that connect, and, if told so, of the one that signs.

    The old ones are kept beside them, with `.old`, until the analyst has admitted the new reply.
    """
    names = ["node.key.pub", "node.key", *(["sign.key"] if sign else [])]
    for name in names:
        path = place.folder / name
        if path.exists():
            owner = path.stat()
            os.replace(path, path.with_name(f"{name}.old"))  # noqa: PTH105
            _renewed(path, name)
            if path.exists() and os.geteuid() == 0:
                os.chown(path, owner.st_uid, owner.st_gid)


def _renewed(path: Path, name: str) -> None:
    from tacit.release.signature import new_key

    if name == "node.key":
        write_node_key(path)
    elif name == "sign.key":
        new_key(path)
