"""A ready project: the Flower app and what the SuperLink and each site need, filled from template/.

Names go into files of several languages. Those of TOML are written by its writer; an address, a
path or a holder's name must be plain enough to mean itself in shell, nginx and systemd.
"""

import glob
import re
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from tacit.errors import FederationError
from tacit.files import write_whole
from tacit.study import Study
from tacit.study.toml import study_toml, table_lines

INNER_PORT = 8000
"""Where the SuperLink itself listens, on its own machine alone."""
NODE_PORT = 9094
"""Where a site's SuperNode hands tasks to its executor, on the site's own machine alone."""
_ADDRESS = re.compile(r"(?P<host>[A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\]):(?P<port>[0-9]{1,5})")
_PATH = re.compile(r"[\w./+~-]+")
_HOLDER = re.compile(r"[A-Za-z0-9_-]+")


@dataclass(frozen=True)
class Project:
    """What the files are filled in with.

    `prefix` is the environment that Tacit is installed in, on every machine.
    """

    study: Study
    holders: tuple[str, ...]
    address: str
    prefix: str = "/opt/tacit"
    out: str = "/var/lib/tacit/results"

    def words(self) -> dict[str, str]:
        """What stands between @ signs in the templates."""
        address = _ADDRESS.fullmatch(self.address)
        if address is None:
            raise FederationError(
                "the SuperLink's address must be host:port, such as tacit.example.org:8443; "
                f"got {self.address!r}"
            )
        columns = [self.study.response.name, *(feature.name for feature in self.study.features)]
        return {
            "ADDRESS": self.address,
            "HOST": address["host"].strip("[]"),
            "PORT": address["port"],
            "INNER": str(INNER_PORT),
            "NODEPORT": str(NODE_PORT),
            "FOLDER": "/etc/tacit",
            "STATE": "/var/lib/tacit",
            "NODESTATE": "/var/lib/tacit-supernode",
            "DATA": "/srv/tacit/*.parquet",
            "PREFIX": self.prefix,
            "OUT": self.out,
            "HOLDERS": str(len(self.holders)),
            "NAMES": ", ".join(self.holders),
            "STUDY": self.study.name,
            "STUDIES": table_lines({"studies": [glob.escape(self.study.name)]}).rstrip(),
            "COLUMNS": table_lines({"columns": columns}).rstrip(),
            "EPSILON": repr(self.study.epsilon),
            "DELTA": repr(self.study.delta),
        }


def write_project(project: Project, folder: Path) -> list[Path]:
    """Write everything into a new folder; returns what was written."""
    _refuse_strange_names(project)
    _refuse_unrunnable(project)
    contents = _contents(project)
    try:
        folder.mkdir(parents=True)
    except OSError as error:
        raise FederationError(
            f"cannot make the folder {str(folder)!r}: {error.strerror}; "
            "choose one that does not exist yet"
        ) from None
    for name, text in contents.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, text, mode=0o755 if name.endswith(".sh") else 0o644)
    return [folder / name for name in contents]


def _refuse_strange_names(project: Project) -> None:
    """Refuse names that would mean something else in a file of the project."""
    plain = all(_HOLDER.fullmatch(holder) for holder in project.holders)
    if not plain or len(set(project.holders)) < len(project.holders):
        raise FederationError(
            "holders need names that differ, of letters, digits, - and _: they name folders too"
        )
    for option, path in (("--prefix", project.prefix), ("--out", project.out)):
        if _PATH.fullmatch(path) is None:
            raise FederationError(f"{option} must be a path without spaces, quotes or signs")


def _refuse_unrunnable(project: Project) -> None:
    """Find a study that no site could answer before anybody installs it."""
    agreed = project.study.secure_sum
    if agreed is not None and set(agreed.holders) != set(project.holders):
        raise FederationError(
            f"the study's secure_sum is of {', '.join(agreed.holders)}: "
            "give --holder for just these"
        )


def _contents(project: Project) -> dict[str, str]:
    words = project.words()
    common = {
        name.removesuffix(".in"): filled(name, words)
        for name in _names()
        if not name.startswith("holder/")
    }
    sites = {
        f"sites/{holder}/{name.removeprefix('holder/')}": filled(name, words | {"HOLDER": holder})
        for holder in project.holders
        for name in _names()
        if name.startswith("holder/")
    }
    keys = "".join(
        f'{holder} = "the public key that `tacit federate keys` printed at {holder}"\n'
        for holder in project.holders
    )
    return common | sites | {"app/study.toml": study_toml(project.study), "app/holders.toml": keys}


def _names() -> list[str]:
    top = files("tacit.federation") / "template"
    folders = [
        ("", top),
        *((f"{folder}/", top / folder) for folder in ("app", "superlink", "holder")),
    ]
    return [
        f"{prefix}{entry.name}"
        for prefix, folder in folders
        for entry in folder.iterdir()
        if entry.is_file()
    ]


def filled(name: str, words: dict[str, str]) -> str:
    """A template with its words filled in, all at once: no value is searched for words."""
    text = (files("tacit.federation") / "template" / name).read_text(encoding="utf-8")
    return re.sub("@([A-Z]+)@", lambda word: words[word[1]], text)
