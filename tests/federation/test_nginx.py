"""tacit.federation.project: its nginx configuration, in a real nginx.

Sites reach Fleet, and nobody reaches Control or Runtime.
"""

import os
import shutil
import socket
import ssl
import subprocess
import threading
import time
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from processes import free_port
from sites import STUDY

from tacit.cli.federate import init
from tacit.study.toml import study_toml

NGINX = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
pytestmark = pytest.mark.skipif(
    NGINX is None and "CI" not in os.environ, reason="nginx is not installed"
)
DEADLINE = 120.0


class SuperLink(BaseHTTPRequestHandler):
    """Stands behind nginx and answers to every path."""

    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


@pytest.fixture
def front(tmp_path):
    """Address and certificate of an nginx with the project's configuration, before a server."""
    assert NGINX is not None, "CI must have nginx"
    project = tmp_path / "project"
    outer = free_port()
    inner = free_port()
    (tmp_path / "study.toml").write_text(study_toml(STUDY), encoding="utf-8")
    init(
        project,
        study=tmp_path / "study.toml",
        holder=["north", "south"],
        address=f"localhost:{outer}",
    )
    folder = project / "superlink"
    subprocess.run(["bash", "certificates.sh"], cwd=folder, check=True, capture_output=True)  # noqa: S607
    server = ThreadingHTTPServer(("127.0.0.1", inner), SuperLink)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "superlink.crt", folder / "superlink.key")
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    site = (
        (folder / "nginx.conf")
        .read_text(encoding="utf-8")
        .replace("/etc/tacit", str(folder))
        .replace("127.0.0.1:8000", f"127.0.0.1:{inner}")
    )
    whole = (
        f"events {{}}\npid {tmp_path}/pid;\nerror_log {tmp_path}/errors;\n"
        f"http {{ access_log off;\n{site}\n}}\n"
    )
    (tmp_path / "nginx.conf").write_text(whole, encoding="utf-8")
    nginx = subprocess.Popen(
        [NGINX, "-c", tmp_path / "nginx.conf", "-g", "daemon off;"], stderr=subprocess.DEVNULL
    )
    try:
        wait_for(outer)
        yield f"https://localhost:{outer}", folder / "ca.crt"
    finally:
        nginx.terminate()
        nginx.wait(DEADLINE)
        server.shutdown()
        server.server_close()


def wait_for(port):
    end = time.monotonic() + DEADLINE
    while time.monotonic() < end:
        with socket.socket() as place:
            if place.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    pytest.fail("nginx did not start")


def status(address, certificate):
    try:
        with urllib.request.urlopen(  # noqa: S310
            address, context=ssl.create_default_context(cafile=certificate), timeout=DEADLINE
        ) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        error.close()
        return error.code


def test_sites_reach_fleet_and_nothing_else(front):
    address, certificate = front
    asked = [
        "/health",
        "/v1/fleet/nodes",
        "/v1/control/runs",
        "/v1/runtime/x",
        "/",
        "/health",
        "/v1/fleet/nodes",
    ]
    assert [status(address + path, certificate) for path in asked] == [
        200,
        200,
        403,
        403,
        403,
        200,
        200,
    ]
