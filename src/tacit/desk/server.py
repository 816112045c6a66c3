"""The server: addresses of the desk, and what each does; every answer passes the guard."""

import contextlib
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import wraps
from importlib.resources import files
from urllib.parse import parse_qsl

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from tacit import limits
from tacit.desk.chosen import Chosen
from tacit.desk.desk import Desk, Notice
from tacit.desk.guard import Guard, Lock
from tacit.desk.pages.frame import paragraph, post, problem
from tacit.errors import DeskError, TacitError
from tacit.page.markup import Html, html
from tacit.study import Study

MOST_FORM = 4 * limits.STUDY.letters
"""Bytes of a form that are read: the longest study, percent-encoded where it is not plain."""
WRONG = 422
STATIC = {"page.css": "text/css", "desk.css": "text/css", "desk.js": "text/javascript"} | {
    "icon.svg": "image/svg+xml"
}
DOSSIERS = {".html": "text/html", ".md": "text/markdown", ".json": "application/json"}
DOSSIER_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'; sandbox"
)
"""The dossier's page brings its own style along, and may do nothing."""

Endpoint = Callable[[Desk, Request], Awaitable[Response]]


def application(
    desk: Desk, lock: Lock, *, announce: Callable[[], None], close: Callable[[], None]
) -> Starlette:
    """The desk behind its guard; `announce` is called once it can be closed, `close` closes it."""

    @contextlib.asynccontextmanager
    async def living(_app: Starlette) -> AsyncIterator[None]:
        announce()
        yield
        desk.uploads.close()

    async def closing(desk: Desk, request: Request) -> Response:
        if request.method == "POST":
            close()
            return HTMLResponse(desk.frame().page("The desk is closed", CLOSED))
        return HTMLResponse(desk.frame().page("Close the desk", _close_form(desk), here="close"))

    addresses: list[tuple[str, Endpoint, list[str]]] = [
        ("/", _home, ["GET"]),
        ("/static/{name}", _static, ["GET"]),
        ("/studies", _open_study, ["POST"]),
        ("/studies/{digits}", _study, ["GET"]),
        ("/studies/{digits}/rehearsals", _rehearse, ["POST"]),
        ("/studies/{digits}/dossier{ending}", _dossier, ["GET"]),
        ("/uploads", _upload, ["PUT"]),
        ("/errands/{number}", _errand, ["GET"]),
        ("/errands/{number}/publish", _publish, ["POST"]),
        ("/errands/{number}/discard", _discard, ["POST"]),
        ("/ledger", _ledger, ["GET"]),
        ("/ledger/limit", _limit, ["POST"]),
        ("/charges/{number}/release", _release, ["GET"]),
        ("/key", _key, ["POST"]),
        ("/requests", _requests, ["GET"]),
        ("/requests/{digits}", _request, ["GET"]),
        ("/requests/{digits}/decision", _decide, ["POST"]),
        ("/close", closing, ["GET", "POST"]),
    ]
    routes = [
        Route(path, _told(desk, endpoint), methods=methods) for path, endpoint, methods in addresses
    ]
    return Starlette(routes=routes, middleware=[Middleware(Guard, lock=lock)], lifespan=living)


def _told(desk: Desk, endpoint: Endpoint) -> Callable[[Request], Awaitable[Response]]:
    """The endpoint at this desk; what it refuses becomes a page that says so.

    Anything unforeseen is told by its type alone: its text could quote data.
    """

    @wraps(endpoint)
    async def answer(request: Request) -> Response:
        try:
            return await endpoint(desk, request)
        except TacitError as error:
            return _problem(desk, request, str(error), WRONG)
        except Exception as error:
            if os.environ.get("TACIT_DEBUG"):
                raise
            sentence = f"unexpected {type(error).__name__}: please report it"
            return _problem(desk, request, sentence, 500)

    return answer


def _problem(desk: Desk, request: Request, sentence: str, status: int) -> Response:
    if request.method == "PUT":
        return JSONResponse({"error": sentence}, status_code=status)
    try:
        frame = desk.frame()
    except TacitError:  # a ledger or request that cannot be read is told by the page itself
        return Response(sentence + "\n", status_code=status, media_type="text/plain")
    return HTMLResponse(frame.page("That did not work", problem(sentence)), status_code=status)


# Publishing.


async def _home(desk: Desk, request: Request) -> Response:
    return HTMLResponse(await run_in_threadpool(desk.home, _said(desk, request)))


async def _static(_desk: Desk, request: Request) -> Response:
    name = request.path_params["name"]
    if name not in STATIC:
        raise DeskError("there is nothing here")
    package = "tacit.page" if name == "page.css" else "tacit.desk.static"
    source = "style.css" if name == "page.css" else name
    content = files(package).joinpath(source).read_bytes()
    return Response(content, media_type=STATIC[name])


async def _open_study(desk: Desk, request: Request) -> Response:
    text = (await _form(request)).get("text", "")
    try:
        study = await run_in_threadpool(desk.open_study, text)
    except TacitError as error:
        return _go(desk, "", Notice(complaint=str(error), text=text))
    return _go(desk, _place(study))


async def _study(desk: Desk, request: Request) -> Response:
    study = desk.study(request.path_params["digits"])
    return HTMLResponse(await run_in_threadpool(desk.study_page, study, _said(desk, request)))


async def _upload(desk: Desk, request: Request) -> Response:
    name = request.query_params.get("name", "table")
    upload = await desk.uploads.receive(name, request.stream())
    return JSONResponse({"id": upload.id})


async def _rehearse(desk: Desk, request: Request) -> Response:
    study = desk.study(request.path_params["digits"])
    chosen = Chosen.of(await _form(request))
    try:
        errand = await run_in_threadpool(desk.rehearse, study, chosen)
    except TacitError as error:
        return _go(desk, _place(study), Notice(complaint=str(error), chosen=chosen))
    return _go(desk, f"errands/{errand.id}")


async def _errand(desk: Desk, request: Request) -> Response:
    errand = desk.errand(request.path_params["number"])
    return HTMLResponse(await run_in_threadpool(desk.errand_page, errand, _said(desk, request)))


async def _publish(desk: Desk, request: Request) -> Response:
    errand = desk.errand(request.path_params["number"])
    form = await _form(request)
    try:
        await run_in_threadpool(
            desk.publish, errand, form.get("seen", ""), anyway=form.get("anyway") == "yes"
        )
    except TacitError as error:
        return _go(desk, f"errands/{errand.id}", Notice(complaint=str(error)))
    return _go(desk, f"errands/{errand.id}")


async def _discard(desk: Desk, request: Request) -> Response:
    await run_in_threadpool(desk.discard, desk.errand(request.path_params["number"]))
    return _go(desk, "")


async def _dossier(desk: Desk, request: Request) -> Response:
    study = desk.study(request.path_params["digits"])
    ending = request.path_params["ending"]
    if ending not in DOSSIERS:
        raise DeskError("there is nothing here")
    text = await run_in_threadpool(desk.dossier, study, ending)
    headers = {"content-security-policy": DOSSIER_POLICY}
    if ending != ".html":
        headers["content-disposition"] = f'attachment; filename="dossier{ending}"'
    return Response(text, media_type=DOSSIERS[ending], headers=headers)


# The ledger.


async def _ledger(desk: Desk, request: Request) -> Response:
    return HTMLResponse(await run_in_threadpool(desk.ledger_page, _said(desk, request)))


async def _limit(desk: Desk, request: Request) -> Response:
    form = await _form(request)
    fields = [form.get(name, "") for name in ("dataset", "epsilon", "delta")]
    try:
        news = await run_in_threadpool(desk.set_limit, *fields)
    except TacitError as error:
        return _go(desk, "ledger", Notice(complaint=str(error)))
    return _go(desk, "ledger", Notice(news=news))


async def _release(desk: Desk, request: Request) -> Response:
    number = request.path_params["number"]
    if not number.isdecimal():
        raise DeskError("there is nothing here")
    charge, _account = await run_in_threadpool(desk.charge, int(number))
    text = await run_in_threadpool(desk.setting.ledger.release, charge.id)
    name = _plain(f"{charge.holder}-{charge.study}")
    ending = "json" if charge.batches is None else "jsonl"
    headers = {"content-disposition": f'attachment; filename="{name}.{ending}"'}
    return Response(text, media_type="application/json", headers=headers)


async def _key(desk: Desk, _request: Request) -> Response:
    await run_in_threadpool(desk.setting.make_key)
    return _go(desk, "#key")


# A federation's requests.


async def _requests(desk: Desk, _request: Request) -> Response:
    from tacit.desk.pages.requests import requests_page

    requests = desk.requests()
    pages = (await run_in_threadpool(requests.every), await run_in_threadpool(requests.broken))
    return HTMLResponse(requests_page(desk.frame(), *pages))


async def _request(desk: Desk, request: Request) -> Response:
    from tacit.desk.pages.requests import request_page

    digits = request.path_params["digits"]
    described = await run_in_threadpool(desk.described, digits)
    notice = _said(desk, request)
    return HTMLResponse(request_page(desk.frame(), described, complaint=notice.complaint))


async def _decide(desk: Desk, request: Request) -> Response:
    digits = request.path_params["digits"]
    form = await _form(request)
    try:
        await run_in_threadpool(desk.decide, digits, form.get("decision", ""), form.get("seen", ""))
    except TacitError as error:
        return _go(desk, f"requests/{digits}", Notice(complaint=str(error)))
    return _go(desk, "requests")


# Small things.


async def _form(request: Request) -> dict[str, str]:
    """The fields of a form, of which no page of the desk sends more than this."""
    body = bytearray()
    async for piece in request.stream():
        body += piece
        if len(body) > MOST_FORM:
            raise DeskError("this is longer than any study may be")
    try:
        text = body.decode("ascii")
        return dict(parse_qsl(text, keep_blank_values=True, errors="strict"))
    except ValueError:
        raise DeskError("this form is not one of the desk's") from None


def _go(desk: Desk, place: str, notice: Notice | None = None) -> Response:
    """Show another page, with what it is to say, so that reload and back repeat nothing."""
    said = "" if notice is None else f"?said={desk.keep(notice)}"
    return RedirectResponse(f"{desk.room}/{place}{said}", status_code=303)


def _said(desk: Desk, request: Request) -> Notice:
    """What the page is to say; nothing, where that is long ago."""
    return desk.notices.get(request.query_params.get("said", ""), Notice())


def _place(study: Study) -> str:
    return f"studies/{study.hash.removeprefix('sha256:')}"


def _plain(name: str) -> str:
    """A file's name in plain letters."""
    letters = [
        letter if letter.isascii() and (letter.isalnum() or letter in "-_") else "-"
        for letter in name
    ]
    return "".join(letters)[:80] or "release"


CLOSED = html("<p>Tables that were handed over are removed. You may close this tab.</p>")


def _close_form(desk: Desk) -> Html:
    return post(
        f"{desk.room}/close",
        paragraph("Tables that were handed over are removed; the ledger and its releases stay."),
        "Close the desk",
    )
