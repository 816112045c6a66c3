"""Opening a federation at the server, admitting sites to it and dismissing them.

Each may be done again: certificates that are there are kept until they are renewed, an invitation
is written anew, and a site that was admitted before is replaced.
"""

import re
import shutil
import subprocess
import sys
from pathlib import Path

from tacit.errors import FederationError
from tacit.federation.invitation import Invitation, Reply
from tacit.federation.project import INNER_PORT, filled
from tacit.federation.server.control import Control
from tacit.federation.server.sites import Sites
from tacit.federation.services import Services, add_users
from tacit.files import read_toml, write_whole
from tacit.study import Study
from tacit.study.toml import study_toml

CERTIFICATES = ("ca.crt", "superlink.crt", "superlink.key")


def address_of(project: Path) -> str:
    """Where sites reach the server, as the project's nginx.conf says."""
    text = _read(project / "superlink/nginx.conf")
    port = re.search(r"listen (\d+) ssl", text)
    host = re.search(r"server_name ([^;]+);", text)
    if port is None or host is None:
        raise FederationError(f"{str(project)!r} is no project that `tacit federate init` wrote")
    name = f"[{host[1]}]" if ":" in host[1] else host[1]
    return f"{name}:{port[1]}"


def invitation_of(project: Path, holder: str) -> Invitation:
    """What a site is sent."""
    return Invitation(
        holder=holder,
        address=address_of(project),
        authority=_read(project / "superlink/ca.crt"),
        study=study_toml(Study.load(project / "app/study.toml")),
    )


def holders_of(project: Path) -> list[str]:
    """The holders that the project was written for, or that were admitted since."""
    known = Sites(project / "app").keys()
    folders = {path.name for path in (project / "sites").iterdir() if path.is_dir()}
    return sorted(folders | set(known))


def certify(project: Path, *, anew: bool) -> bool:
    """Make certificates where there are none, or anew; says whether it did."""
    folder = project / "superlink"
    if not anew and (folder / "superlink.crt").exists():
        return False
    made = subprocess.run(  # noqa: S603 - the project's own script
        ["sh", str(folder / "certificates.sh")],  # noqa: S607
        capture_output=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    if made.returncode != 0:
        raise FederationError(
            "certificates could not be made: install openssl, or see what "
            f"`sh {folder / 'certificates.sh'}` says"
        )
    return True


def install(project: Path, folder: Path, state: Path, services: Services) -> str | None:
    """Put certificates and services in their places and start them; gives what could not be run."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in CERTIFICATES:
        shutil.copy(project / "superlink" / name, folder / name)
    (folder / "superlink.key").chmod(0o600)
    state.mkdir(parents=True, exist_ok=True)
    if not services.user:
        add_users(["tacit"], "tacit-link")
        for place in (folder / "superlink.key", state):
            shutil.chown(place, "tacit")
    words = {
        "PREFIX": sys.prefix,
        "FOLDER": str(folder),
        "STATE": str(state),
        "INNER": str(INNER_PORT),
    }
    unit = filled("superlink/tacit-superlink.service", words)
    services.write("tacit-superlink.service", unit)
    home = folder / "flwr"
    home.mkdir(exist_ok=True)
    write_whole(home / "config.toml", filled("superlink/config.toml", words))
    return services.start(["tacit-superlink"])


def front(project: Path, services: Services) -> str | None:
    """Put nginx before the SuperLink, where this machine has it; gives what could not be done."""
    source = project / "superlink/nginx.conf"
    target = services.root / "etc/nginx/conf.d/tacit.conf"
    if services.user or not target.parent.is_dir():
        return f"cp {source} {target}; systemctl restart nginx"
    shutil.copy(source, target)
    return services.start(["nginx"])


def admit(app: Path, reply: Reply, control: Control) -> str:
    """Register a site's SuperNode and keep its keys; gives the SuperNode's number."""
    reply.check()
    sites = Sites(app)
    before = sites.nodes().get(reply.holder)
    path = sites.key_file(reply.holder)
    if (
        before is not None
        and path.exists()
        and path.read_text(encoding="utf-8").strip() == reply.node_key
    ):
        sites.add(reply.holder, reply.sign_key, reply.node_key + "\n", before)
        return before
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_suffix(".new")
    write_whole(fresh, reply.node_key + "\n")
    number = control.register(fresh, reply.holder)
    fresh.unlink()
    sites.add(reply.holder, reply.sign_key, reply.node_key + "\n", number)
    if before is not None:
        control.unregister(before)
    return number


def dismiss(app: Path, holder: str, control: Control) -> None:
    """Turn a site away, and count no release of its any more."""
    sites = Sites(app)
    number = sites.nodes().get(holder)
    if number is None and holder not in set(sites.keys()):
        raise FederationError(f"the project knows no site {holder!r}: see {app / 'nodes.toml'}")
    if number is not None:
        control.unregister(number)
    sites.remove(holder)


def project_config(app: Path) -> dict[str, object]:
    """The run's configuration in the app's pyproject.toml."""
    fields = read_toml(app / "pyproject.toml", "the app", FederationError)
    return dict(fields.get("tool", {}).get("flwr", {}).get("app", {}).get("config", {}))


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise FederationError(
            f"cannot read {str(path)!r}: {error.strerror}; it belongs to a project that "
            "`tacit federate init` wrote and `tacit federate open` completed"
        ) from None
