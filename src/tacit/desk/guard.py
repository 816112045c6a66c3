"""Guard: who may speak to the desk.

Every program on the machine, and every page in the officer's browser, can reach a port of
127.0.0.1. So the guard asks four things before the desk hears of a request:

1. *Host* is this address itself. A site whose name is made to point here (DNS rebinding) sends its
   own name.
2. The *key* of the address that the terminal showed, once. It becomes a cookie, which other sites'
   pages do not send (SameSite), and which is bound to a path that nobody else knows: cookies are
   shared by all ports of a machine, so another program's page could otherwise read it.
3. The request comes from the desk's own pages: *Sec-Fetch-Site* is same-origin, or none for what
   the officer types.
4. What changes anything has this *Origin*.

Answers may be kept by nobody, framed by nobody, and load nothing from elsewhere.
"""

import hmac
import secrets
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

COOKIE = "tacit-desk"
HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
        "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "cache-control": "no-store",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "referrer-policy": "same-origin",  # with no-referrer a form's Origin would be null
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}
"""What every answer says of itself, unless it says otherwise."""
READING = {"GET", "HEAD"}


def _secret() -> str:
    return secrets.token_urlsafe(32)


@dataclass
class Lock:
    """The secrets of one desk: the key that opens it once, the cookie after that, its path."""

    origin: str
    key: str | None = field(default_factory=_secret)
    session: str = field(default_factory=_secret)
    room: str = field(default_factory=lambda: "/" + secrets.token_urlsafe(16))

    @property
    def address(self) -> str:
        """What the officer opens, once."""
        return f"{self.origin}/?key={self.key}"

    @property
    def host(self) -> str:
        """The only Host that is answered."""
        return self.origin.removeprefix("http://")

    def opens(self, key: str) -> bool:
        """Whether this is the key; it fits once."""
        if self.key is None or not _same(key, self.key):
            return False
        self.key = None
        return True

    def knows(self, cookies: str) -> bool:
        """Whether a cookie of this desk is among those that were sent."""
        try:
            sent = SimpleCookie(cookies).get(COOKIE)
        except CookieError:
            return False
        return sent is not None and _same(sent.value, self.session)


class Guard:
    """Lets through to the desk what its own pages ask for."""

    def __init__(self, app: ASGIApp, lock: Lock) -> None:
        self.app = app
        self.lock = lock

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer or pass on one request."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
        elif scope["type"] == "http":
            await self._answer(scope, receive, send)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        refusal = self._refusal(scope)
        if refusal is not None:
            await refusal(scope, receive, _sealed(send))
            return
        inner = dict(scope)
        inner["root_path"] = self.lock.room
        await self.app(inner, receive, _sealed(send))

    def _refusal(self, scope: Scope) -> Response | None:
        """The answer to who may not come in, or comes in now; None for who is in."""
        headers = Headers(scope=scope)
        if headers.getlist("host") != [self.lock.host]:
            return _refuse(421, "This is no public server.")
        path = scope["path"]
        if path == "/" and scope["method"] in READING:
            return self._entrance(scope, headers)
        if not path.startswith(self.lock.room + "/"):
            return _refuse(404, "There is nothing here.")
        if not self.lock.knows(headers.get("cookie", "")):
            return _refuse(403, ASK_AGAIN)
        return self._strange(scope, headers)

    def _entrance(self, scope: Scope, headers: Headers) -> Response:
        """Take the key, once, and give a cookie for it."""
        if headers.get("sec-fetch-site", "none") not in {"none", "same-origin"}:
            return _refuse(403, "Another page may not open the desk.")
        given = parse_qs(scope["query_string"].decode("latin-1")).get("key", [""])[0]
        if scope["method"] != "GET" or not self.lock.opens(given):
            return _refuse(403, ASK_AGAIN)
        response = RedirectResponse(self.lock.room + "/", status_code=303)
        response.set_cookie(
            COOKIE, self.lock.session, path=self.lock.room + "/", httponly=True, samesite="strict"
        )
        return response

    def _strange(self, scope: Scope, headers: Headers) -> Response | None:
        """Refuse what another page asks for in the officer's name."""
        reading = scope["method"] in READING
        allowed = {"same-origin", "none"} if reading else {"same-origin"}
        if headers.get("sec-fetch-site", "same-origin") not in allowed:
            return _refuse(403, "Another page may not use the desk.")
        if not reading and headers.get("origin") != self.lock.origin:
            return _refuse(403, "Another page may not use the desk.")
        return None


ASK_AGAIN = (
    "This address opens the desk once, in one browser. Use the tab that is open, or stop "
    "`tacit desk` and start it again: it shows a new address."
)


def _same(given: str, secret: str) -> bool:
    return hmac.compare_digest(given.encode(), secret.encode())


def _refuse(status: int, sentence: str) -> Response:
    return PlainTextResponse(sentence + "\n", status_code=status)


def _sealed(send: Send) -> Send:
    """Send, with the headers that every answer has."""

    async def sealed(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers.setdefault(name, value)
        await send(message)

    return sealed
