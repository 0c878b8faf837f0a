"""The tool that reads a page of the public internet.

Its resources are host and port: `host:example.org:443`. An `http` URL also names the `https` port
of the host, because most sites redirect to it. No server is contacted before the decision, not even
a name server: a looked-up name can carry a secret to the server that answers for it.
"""

import asyncio
from http import HTTPStatus
from urllib.parse import urldefrag, urljoin

from pydantic import Field

from zeroclaw.config.model import FetchSettings
from zeroclaw.errors import ResourcesUnresolved, ToolArgumentsInvalid, ToolFailed
from zeroclaw.host import resolver
from zeroclaw.host.executors import FairShare
from zeroclaw.host.http import HttpClient
from zeroclaw.text import catalogue
from zeroclaw.text.page import readable_page
from zeroclaw.tool import Tool, ToolContext, ToolOutput, ToolSpec
from zeroclaw.tools import (
    ModelSchema,
    ModelTool,
    ToolArguments,
    described,
    quoted,
    without_controls,
)
from zeroclaw.tools.fetch.body import decode
from zeroclaw.tools.fetch.client import (
    ANY_HOST,
    FetchClient,
    Fetched,
    RedirectElsewhere,
    Resolve,
    limits,
)
from zeroclaw.tools.fetch.target import Target, TargetRefused, read_allowed, read_target
from zeroclaw.value import Struct, field

__all__ = ["limits", "tools"]

# For turning the response into text, on top of the time for fetching it.
_OVERHEAD_S = 20.0
_HTTPS = 443
# Characters that are checked for NUL, to tell text from binary data.
_SAMPLE_CHARS = 8_192


class FetchArguments(ToolArguments):
    """Arguments of `fetch`."""

    url: str = Field(min_length=1)
    links: bool = Field(default=False, description="Show where links lead.")


def tools(
    settings: FetchSettings, *, http: HttpClient, resolve: Resolve = resolver.resolve
) -> tuple[Tool, ...]:
    """Return the tool.

    Args:
        settings: Limits of a fetch, and the addresses it may reach.
        http: A client that keeps to `limits(settings)`; its opener closes it.
        resolve: Resolves a name to addresses; raises `NameUnknown`.
    """
    allowed = read_allowed(settings.allow)
    fetch = _Fetch(settings, FetchClient(settings, http, resolve, allowed))
    note = " A redirect to another host is reported." if settings.redirects == "same_host" else ""
    spec = ToolSpec(
        name="fetch",
        description=(f"GET a URL of the public internet as text, pages in readable form.{note}"),
        parameters=ModelSchema(FetchArguments),
        effects=frozenset({"network", "read"}),
        idempotent=True,  # GET is, RFC 9110 section 9.2.2
        timeout_s=settings.timeout_s + _OVERHEAD_S,
    )
    return (
        ModelTool(
            spec=spec,
            model=FetchArguments,
            summary=lambda arguments: catalogue.WOULD_FETCH.about(url=quoted(arguments.url)),
            find_resources=fetch.resources,
            handler=fetch.run,
            apply_settings=fetch.apply_settings,
        ),
    )


class _Fetch(Struct, eq=False):
    """Fetches one URL per call."""

    settings: FetchSettings
    client: FetchClient
    _fetches: FairShare = field(default_factory=lambda: FairShare("fetches", at_once=16, each=4))
    _pages: FairShare = field(default_factory=lambda: FairShare("fetched pages", at_once=2))

    def apply_settings(self, arguments: FetchArguments) -> FetchArguments:
        """Bring the URL into its canonical form, which is judged, shown and fetched."""
        try:
            return arguments.model_copy(update={"url": self._target(arguments).url})
        except TargetRefused as error:
            raise ToolArgumentsInvalid((f"url: {error.reason}",)) from error

    def resources(self, arguments: FetchArguments, _: ToolContext) -> tuple[str, ...]:
        """Return the host; refuse a literal address that must not be connected to."""
        target = self._target(arguments)
        if reason := self.client.refusal(target):
            raise ResourcesUnresolved(reason)
        return self._resources(target)

    async def run(self, arguments: FetchArguments, context: ToolContext) -> ToolOutput:
        """Fetch within the time limit, and turn the response into text in a thread."""
        target, limit_s = self._target(arguments), self.settings.timeout_s
        async with self._fetches.slot(context.conversation):
            try:
                async with asyncio.timeout(limit_s):
                    found = await self.client.fetch(target, self._resources(target))
            except TimeoutError as error:
                message = f"{quoted(target.url)} did not arrive completely within {limit_s:g} s"
                raise ToolFailed(message) from error
            if isinstance(found, RedirectElsewhere):
                return ToolOutput(text=_redirect_text(found))
            return ToolOutput(
                text=await self._pages.run(
                    context.conversation, lambda: _displayed(found, target, links=arguments.links)
                )
            )

    def _target(self, arguments: FetchArguments) -> Target:
        return read_target(arguments.url, self.settings.ports)

    def _resources(self, target: Target) -> tuple[str, ...]:
        """Return every resource that a call may connect to."""
        reach = [target.resource]
        if target.is_plain and _HTTPS in self.settings.ports:
            reach.append(f"host:{target.host}:{_HTTPS}")
        if self.settings.redirects == "anywhere":
            reach.append(ANY_HOST)
        return tuple(reach)


def _redirect_text(found: RedirectElsewhere) -> str:
    return (
        f"{found.target.url} answered {_status(found.status)} and redirects to"
        f" {found.elsewhere.url}\nThat is another host, so it was not followed: fetch that URL if"
        " you want it."
    )


def _displayed(found: Fetched, requested: Target, *, links: bool) -> str:
    """Return a response for the model: source, status and type, then the text."""
    declared = found.type.name or "of no declared type"
    size = f"{len(found.data):,} bytes"
    head = [f"{found.target.url} answered {_status(found.status)}, {declared}, {size}"]
    if found.hops:
        head.append(f"redirected from {requested.url}")
    if found.is_cut:
        head.append(f"cut after {size}: the rest was not read")
    text = decode(found.data, found.type)
    if "\0" in text[:_SAMPLE_CHARS]:
        text = described(found.data, len(found.data))
    elif found.type.kind == "html":
        base = found.target.url
        page = readable_page(text, (lambda address: _absolute(base, address)) if links else None)
        head += [f"title: {page.title}"] if page.title else []
        text = page.text
    body = without_controls(text).strip()
    return "\n".join([without_controls(line) for line in head]) + f"\n\n{body or '(no text)'}"


def _status(status: int) -> str:
    try:
        return f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        return str(status)


def _absolute(base: str, address: str) -> str:
    """Return the absolute URL of a link; empty if it is not a page, or the same one."""
    try:
        absolute = urldefrag(urljoin(base, address.strip())).url
    except ValueError:
        return ""
    is_page = absolute.startswith(("http://", "https://")) and absolute.isprintable()
    return absolute if is_page and " " not in absolute and absolute != base else ""
