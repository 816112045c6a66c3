"""A PostgreSQL server of its own for tests: a new cluster on a Unix socket, under a user that is
not root.
"""

import os
import pwd
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

OWNER = "owner"
PASSWORD = "Tr0ub4dor-7731"  # noqa: S105


def binaries():
    """The folder of initdb; without it the test is skipped, but under CI it fails."""
    found = shutil.which("initdb")
    folders = [Path(found).parent] if found else sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    if not folders:
        message = "no PostgreSQL server is installed (initdb)"
        (pytest.fail if os.environ.get("CI") else pytest.skip)(message)
    return folders[-1]


def unprivileged():
    """A user that the server may run as: it refuses root."""
    if os.geteuid() != 0:
        return {}
    names = {user.pw_name for user in pwd.getpwall()}
    return {
        "user": "postgres" if "postgres" in names else "nobody",
        "group": pwd.getpwnam("nobody").pw_gid,
        "extra_groups": [],
    }


class Server:
    """Started and stopped by `with`; `url` holds no password."""

    def __enter__(self):
        self._binaries = binaries()
        self.folder = Path(
            tempfile.mkdtemp(prefix="tacit-pg-", dir="/tmp")
        )  # a socket's path must be short
        user = unprivileged()
        if user:
            shutil.chown(self.folder, user["user"])
        (self.folder / "password").write_text(PASSWORD)
        (self.folder / "password").chmod(0o644)
        self._run(
            "initdb",
            "-D",
            "data",
            "-U",
            OWNER,
            "-A",
            "scram-sha-256",
            "--pwfile=password",
            "-N",
            "-E",
            "UTF8",
            "--locale=C",
        )
        self._run(
            "pg_ctl",
            "-D",
            "data",
            "-w",
            "-t",
            "300",
            "-l",
            "log",
            "-o",
            f"-k {self.folder} -c listen_addresses='' -c fsync=off",
            "start",
        )
        self.url = f"postgresql://{OWNER}@/postgres?host={self.folder}"
        return self

    def __exit__(self, *_):
        self._run("pg_ctl", "-D", "data", "-m", "immediate", "stop")
        shutil.rmtree(self.folder)

    def _run(self, program, *arguments):
        environment = {"PATH": os.environ["PATH"], "LC_ALL": "C"}
        command = [self._binaries / program, *arguments]
        subprocess.run(
            command,
            check=True,
            cwd=self.folder,
            stdout=subprocess.DEVNULL,
            env=environment,
            **unprivileged(),
        )

    def execute(self, *statements):
        """Run statements as the owner."""
        import adbc_driver_postgresql.dbapi

        with (
            adbc_driver_postgresql.dbapi.connect(
                self.url.replace("@", f":{PASSWORD}@")
            ) as connection,
            connection.cursor() as cursor,
        ):
            for statement in statements:
                cursor.execute(statement)
            connection.commit()
