"""The console as an ASGI application: sections, forms, and an event stream that reports changes.

The listener admits only browsers that are logged in, from pages of its own origin. A form must also
send back a token that no page of another program on this machine can know. The answer to a form is
a redirect, so that a reload sends nothing twice. Its result waits on the server, since another page
could forge text in the redirect's URL.
"""

import hmac
from asyncio import Semaphore
from collections.abc import AsyncGenerator, Awaitable, Callable
from urllib.parse import parse_qsl, quote

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from zeroclaw.console.chain_checks import ChainChecker
from zeroclaw.console.context import ConsoleContext
from zeroclaw.console.notifier import Notice
from zeroclaw.console.sections import UNREADABLE, Fields, Sections
from zeroclaw.errors import ZeroclawError
from zeroclaw.recent import Recent
from zeroclaw.web_page import PING, event_stream, page_files

MAX_CONCURRENT = 2
"""Pages built concurrently; readers of the console must not slow down answers (P9)."""
MAX_BYTES = 32_768
"""Largest form; its longest field is a reason, where a character takes up to 9 bytes."""
MAX_FIELDS = 16
MAX_RESULTS = 32
"""Most form results that wait for the page after their redirect."""
CHANGED = b"event: changed\ndata: {}\n\n"


class Site:
    """Answers the requests of the console's pages.

    Attributes:
        chains: Checks the audit chains; the creator of the site must start its `run`.
    """

    def __init__(self, context: ConsoleContext) -> None:
        """Read the files of the page; blocks."""
        self._context = context
        self.chains = ChainChecker(
            context.inbound.store,
            context.inbound.clock,
            changed=context.notifier.notify,
            log=context.log,
        )
        self._sections = Sections(context, self.chains)
        self._results: Recent[str, str] = Recent(MAX_RESULTS)
        self._slots = Semaphore(MAX_CONCURRENT)
        self._files = {
            name: Response(body, media_type=kind)
            for name, (body, kind) in page_files("zeroclaw.console").items()
        }

    def application(self) -> Starlette:
        """Return the ASGI application."""
        return Starlette(
            routes=[
                Route("/", self._begin),
                Route("/events", self._follow),
                *(Route(f"/{name}", self._act, methods=["POST"]) for name in self._sections.acts),
                Route("/{section}", self._show),
                Route("/conversations/{of}", self._show),
            ]
        )

    # --- pages -----------------------------------------------------------------------------------

    async def _begin(self, _request: Request) -> Response:
        return RedirectResponse(self._context.paths.to("approvals"), status_code=303)

    async def _show(self, request: Request) -> Response:
        parameters = {"section": "conversations", **request.path_params}
        section = parameters.pop("section")
        query = {**request.query_params, **parameters}
        return self._files.get(section) or await self._page(section, query)

    async def _page(self, section: str, query: Fields) -> Response:
        result = self._results.pop(query.get("result", ""), "")
        try:
            async with self._slots:
                body, status = await self._sections.page(section, query, result=result)
        except ZeroclawError as error:
            self._context.log(
                "section_not_read", section=section, reason=str(error), level="warning"
            )
            message = "this can't be read right now; `zeroclaw doctor` may say why"
            return PlainTextResponse(message, status_code=503)
        return Response(body, status, media_type="text/html")

    # --- forms -----------------------------------------------------------------------------------

    async def _act(self, request: Request) -> Response:
        section = request.url.path.rpartition("/")[2]
        fields = await _fields(request)
        if fields is None:
            return PlainTextResponse(UNREADABLE, status_code=422)
        token = fields.get("token", "").encode()
        if not hmac.compare_digest(token, self._context.paths.token.encode()):
            self._context.log("form_refused", section=section, level="warning")
            message = "this page is older than the daemon; reload it and try again"
            return PlainTextResponse(message, status_code=403)
        try:
            result = await self._sections.acts[section](fields)
        except ZeroclawError as error:
            self._context.log(
                "form_not_stored", section=section, reason=str(error), level="warning"
            )
            return PlainTextResponse("it could not be stored; try again", status_code=503)
        key = self._context.inbound.ids.token()
        self._results[key] = result
        chain = f"&of={quote(fields['check'])}" if fields.get("check") else ""
        url = f"{self._context.paths.to(section)}?result={key}{chain}"
        return RedirectResponse(url, status_code=303)

    # --- changes ---------------------------------------------------------------------------------

    async def _follow(self, _request: Request) -> Callable[..., Awaitable[None]]:
        if not self._context.notifier.has_room():
            return PlainTextResponse("too many pages are open", status_code=503)
        return event_stream(self._changes())

    async def _changes(self) -> AsyncGenerator[bytes]:
        with self._context.notifier.subscribe() as subscription:
            yield CHANGED  # covers changes before the stream was open
            while (notice := await subscription.get()) is not Notice.END:
                yield CHANGED if notice is Notice.CHANGED else PING


async def _fields(request: Request) -> Fields | None:
    """Return the fields of a form, the last of equal names; None if it is not a whole form."""
    body = b""
    try:
        async for chunk in request.stream():
            body += chunk
            if len(body) > MAX_BYTES:
                return None
        pairs = parse_qsl(body.decode("ascii"), keep_blank_values=True, max_num_fields=MAX_FIELDS)
    except (ClientDisconnect, ValueError):
        return None
    return dict(pairs)
