"""Status: what an operator must know, as sentences, JSON, metrics and an exit code.

A status is a list of checks. Each says whether all is well, in words that name the one command that
mends it where it is not. No check holds a value of the data: budgets, counts of requests, versions,
clocks and certificates are all there is.
"""

import json
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tacit.errors import FederationError, TacitError

SOON = 30.0
"""Days before its end from which on a certificate is a matter to attend to."""


@dataclass(frozen=True)
class Check:
    """One thing that was looked at; `about` is a holder where it is one's, and `value` a number."""

    name: str
    good: bool
    words: str
    value: float | None = None
    about: str = ""


Status = list[Check]


def checked(name: str, look: Callable[[], Check]) -> Check:
    """A check whose own failure is a finding."""
    try:
        return look()
    except TacitError as error:
        return Check(name, good=False, words=str(error))
    except OSError as error:
        return Check(name, good=False, words=f"cannot be seen from here: {error.strerror}")


def certificate_check(days: float | None, mend: str) -> Check:
    """Whether a certificate lasts."""
    if days is None:
        return Check("certificate", good=False, words="its end could not be seen")
    words = f"{days:.0f} days left"
    if days < SOON:
        words += f": {mend}"
    return Check("certificate", good=days >= SOON, words=words, value=round(days, 1))


def healthy(status: Iterable[Check]) -> bool:
    """Whether nothing needs a person."""
    return all(check.good for check in status)


def in_words(status: Iterable[Check]) -> str:
    """One line a check; what needs a person is marked."""
    return "\n".join(
        f"{'  ' if check.good else '! '}{check.about or check.name:<12} "
        f"{f'{check.name}: ' if check.about else ''}{check.words}"
        for check in status
    )


def in_json(status: Iterable[Check]) -> str:
    """The status as one JSON object."""
    checks = list(status)
    return json.dumps({"healthy": healthy(checks), "checks": [asdict(check) for check in checks]})


def in_metrics(status: Iterable[Check]) -> str:
    """Metrics in the text format of Prometheus."""
    checks = list(status)
    lines = [
        "# HELP tacit_healthy Whether nothing needs a person.",
        "# TYPE tacit_healthy gauge",
        f"tacit_healthy {int(healthy(checks))}",
        "# HELP tacit_check Whether one check found all well.",
        "# TYPE tacit_check gauge",
        *(f"tacit_check{_labels(check)} {int(check.good)}" for check in checks),
        "# HELP tacit_value The number that goes with a check: days, seconds, epsilon, requests.",
        "# TYPE tacit_value gauge",
        *(
            f"tacit_value{_labels(check)} {check.value:g}"
            for check in checks
            if check.value is not None
        ),
    ]
    return "\n".join(lines) + "\n"


def _labels(check: Check) -> str:
    labels = {"check": check.name} | ({"holder": check.about} if check.about else {})
    return "{" + ",".join(f'{name}="{_escaped(text)}"' for name, text in labels.items()) + "}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def serve_status(look: Callable[[], Status], port: int) -> ThreadingHTTPServer:
    """A server on this machine's loopback: /metrics, /status and /health; the caller runs it."""

    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status = look() if self.path in {"/metrics", "/status", "/health"} else None
            if status is None:
                self._say(404, "text/plain", "there are /metrics, /status and /health\n")
            elif self.path == "/metrics":
                self._say(200, "text/plain; version=0.0.4", in_metrics(status))
            else:
                well = self.path == "/status" or healthy(status)
                self._say(200 if well else 503, "application/json", in_json(status) + "\n")

        def _say(self, code: int, kind: str, text: str) -> None:
            content = text.encode()
            self.send_response(code)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            """Say nothing: a scrape every few seconds would fill the log."""

    try:
        return ThreadingHTTPServer(("127.0.0.1", port), Page)
    except OSError as error:
        raise FederationError(
            f"port {port} of this machine cannot be used ({error.strerror}): give another"
        ) from None
