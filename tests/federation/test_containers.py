"""deploy/Containerfile, built by buildah without a network and run: a study between containers.

The base image is a clean Debian that debootstrap makes, with Python and nothing else. Isolation is
a chroot, so that neither a daemon nor a privilege beyond root's is needed.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from processes import BIN, at_most, federation, until
from sites import STUDY, charges

from tacit.federation.client.place import Place
from tacit.federation.project import Project, write_project

ROOT = Path(__file__).parents[2]
NOBODY = 10001
"""The user that both containers run as."""


class Images:
    """What buildah keeps in a folder of its own."""

    def __init__(self, folder):
        self.folder = folder
        places = ("--root", folder / "images", "--runroot", folder / "run")
        self._words = ("buildah", *places, "--storage-driver", "vfs")

    def __call__(self, *words):
        command = [str(word) for word in (*self._words, *words)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
        return done.stdout.strip()

    def build(self, context, target):
        """An image of the Containerfile, with a network that reaches nothing."""
        base = ("--build-arg", "BASE=localhost/base", "--target", target, "--tag", target)
        manner = ("--layers", "--isolation", "chroot", *base)
        command = ("unshare", "--net", *self._words, "bud", *manner)
        place = ("--file", ROOT / "deploy/Containerfile", context)
        words = [str(word) for word in (*command, *place)]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]

    def command(self, target):
        """What a container of the image runs, and as whom."""
        config = json.loads(self("inspect", "--type", "image", target))["OCIv1"]["config"]
        assert config["User"] == str(NOBODY)
        return config["Cmd"]

    def run(self, container, folder, *command):
        """The words that run a command in a container, with a folder of this machine in it.

        What the image declares to be a volume beside, buildah keeps in the container.
        """
        volume = ("--volume", f"{folder}:/etc/tacit")
        manner = ("run", "--isolation", "chroot", "--user", NOBODY, *volume, container, "--")
        return (*self._words, *manner, *command)


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    """Both images, or none where there is no buildah, debootstrap, root or package index."""
    missing = [name for name in ("buildah", "debootstrap") if shutil.which(name) is None]
    if missing or os.geteuid() != 0 or sys.version_info[:2] != (3, 11):
        pytest.skip("containers are built with buildah and debootstrap, as root, with Python 3.11")
    folder = tmp_path_factory.mktemp("containers")
    root = folder / "root"
    made = ["debootstrap", "--variant=minbase", "--include=python3-venv", "bookworm", str(root)]
    if subprocess.run(made, capture_output=True, check=False).returncode != 0:
        pytest.skip("no package index of Debian can be reached")
    context = folder / "context"
    (context / "dist").mkdir(parents=True)
    shutil.copytree(ROOT / "deploy", context / "deploy")
    bundle = [sys.executable, str(ROOT / "deploy/bundle.py"), str(context / "dist/bundle")]
    subprocess.run(bundle, check=True, capture_output=True)
    built = Images(folder)
    container = built("from", "scratch")
    built("copy", "--quiet", container, root, "/")
    built("commit", "--quiet", "--rm", container, "base")
    for target in ("site", "server"):
        built.build(context, target)
    yield built
    built("rm", "--all")
    shutil.rmtree(folder, ignore_errors=True)


def end_inside(folder):
    """End what runs in containers: a chroot's processes outlive the program that made it."""
    for process in psutil.process_iter():
        try:
            inside = str(Path(f"/proc/{process.pid}/root").readlink()).startswith(str(folder))
        except OSError:
            continue
        if inside:
            process.kill()


@pytest.mark.slow
def test_a_study_runs_between_a_server_and_a_site_in_containers(images, tmp_path):
    settings = tmp_path / "etc"
    with at_most(900), federation(tmp_path) as made:
        names = ("north", "south")
        out = "/var/lib/tacit/out"
        project = Project(STUDY, names, f"127.0.0.1:{made.port}", str(BIN.parent), out)
        write_project(project, tmp_path / "project")
        assert made.run("sh", "project/superlink/certificates.sh").returncode == 0
        shutil.copytree(tmp_path / "project/superlink", settings)
        for name in names:
            made.add_site(name)
        (tmp_path / "flwr").mkdir()
        config = (tmp_path / "project/superlink/config.toml").read_text()
        config = config.replace("127.0.0.1:8000", f"127.0.0.1:{made.port}")
        config = config.replace("/etc/tacit/ca.crt", str(made.certificate))
        (tmp_path / "flwr/config.toml").write_text(config)
        place = Place(tmp_path / "south", f"127.0.0.1:{made.port}")
        (tmp_path / "south/site.toml").write_text(place.text())
        shutil.copy(made.certificate, tmp_path / "south/ca.crt")
        for folder in (settings, tmp_path / "south"):
            assert made.run("chown", "-R", NOBODY, folder).returncode == 0
        server = images("from", "server")
        site = images("from", "site")
        try:
            link = (*images.command("server"), "--port", made.port)
            made.start("superlink", *images.run(server, settings, *link))
            until(made.superlink_answers, "the SuperLink answers")
            made.trust(*names)
            made.register(*names)
            answering = images.run(site, tmp_path / "south", *images.command("site"))
            made.start("south-container", *answering)
            made.start_site("north")
            code, said = made.ended(made.start_study(deadline=300.0, poll=2.0), 400)
            assert code == 0, said
            read = images.run(server, settings, "tacit", "summary", f"{out}/posterior.parquet")
            assert "age" in made.run(*read).stdout
            paid = [len(charges(tmp_path / name / "holder.toml")) for name in names]
            assert paid == [1, 1]
        finally:
            end_inside(images.folder)
