"""The public listener: a socket reachable from the network, which serves only webhooks.

    connection ── TLS ── head ── POST to a mounted path ── hook ── a status, seldom with a plain text

It is bound only if a channel of the configuration needs it. Refused requests are counted; in a
flood, the first, second, fourth and so on are logged, but never their content.
"""

import asyncio
import ssl
from collections.abc import Generator, Mapping
from contextlib import contextmanager

import h11

from zeroclaw.channel import Log, Refusals
from zeroclaw.config.model import PublicSettings
from zeroclaw.errors import ConfigError, ZeroclawError, refused_as
from zeroclaw.foreign import Raised, call
from zeroclaw.host.connections import Bounds, bind
from zeroclaw.host.http_server import HttpConnection, HttpServer
from zeroclaw.host.places import expand
from zeroclaw.mount import HOOK_PATH, Hook, HookAnswer

DEFAULT_BOUNDS = Bounds()
SUCCESS = 300


class NotRead(ZeroclawError):
    """Raised when a body is not acceptable; its text is the reason for the counter."""

    def __init__(self, status: int) -> None:
        """Store the status of the answer; 0 if the client is gone."""
        super().__init__({413: "too large", 408: "slow"}.get(status, "cut"))
        self.status = status


class Request:
    """One request after its head was read.

    Attributes:
        headers: By lower-case name.
    """

    def __init__(self, connection: HttpConnection, head: h11.Request) -> None:
        self._connection = connection
        self._bounds = connection.bounds
        self.headers: Mapping[str, str] = {
            name.decode("ascii", "replace"): value.decode("latin-1") for name, value in head.headers
        }

    async def body(self, max_bytes: int = 0) -> bytes:
        """Read the body; see `HookRequest.body`."""
        length, limit = self.headers.get("content-length", ""), max_bytes or self._bounds.body_bytes
        # h11 bounds the number of digits.
        if length.isdecimal() and int(length) > limit:
            raise NotRead(413)
        body = bytearray()
        try:
            async with asyncio.timeout(self._bounds.body_s):
                while data := await self._connection.body():
                    body += data
                    if len(body) > limit:
                        raise NotRead(413)
        except TimeoutError as error:
            raise NotRead(408) from error
        except (OSError, h11.RemoteProtocolError) as error:
            raise NotRead(0) from error
        return bytes(body)


class PublicListener:
    """The public listener; bound on creation.

    Attributes:
        port: The actual port, also if 0 was requested.
        refused: Counts refused requests and connections by reason.
        serve: Answers requests until cancelled, which frees the port; call once.
        close: Frees the port if `serve` was never called; safe twice.
    """

    def __init__(
        self, settings: PublicSettings, *, log: Log, bounds: Bounds = DEFAULT_BOUNDS
    ) -> None:
        """Bind; blocks on files, so call this in a thread.

        Without a certificate it speaks plain HTTP, to a proxy. `bounds` bounds the resources that
        strangers can use.

        Raises:
            ConfigError: The certificate or its key can't be used.
            PortInUse: Another program has the port, or binding is not permitted.
        """
        self._bounds = bounds
        self._log = log
        self._hooks: dict[str, Hook] = {}
        self.refused = Refusals(log, "public_refused")
        tls = _tls(settings.cert_file, settings.key_file) if settings.cert_file else None
        bound = bind(settings.host, settings.port, key="public.port")
        server = HttpServer(
            bound, self._answer, bounds=bounds, log=log, refused=self.refused, tls=tls
        )
        self.port: int = bound.getsockname()[1]
        self.serve, self.close = server.serve, server.close

    @contextmanager
    def mount(self, path: str, hook: Hook) -> Generator[None]:
        """Answer POST requests to a path while the context is open; see `Mount.public`.

        Raises:
            ConfigError: Another hook has the path, or the path is invalid.
        """
        if HOOK_PATH.fullmatch(path) is None:
            fault = f"`{path}` can't be the path of a webhook; use one such as `/telegram`"
            raise ConfigError((fault,))
        if path in self._hooks:
            fault = f"two channels have the webhook path `{path}`; give each another path"
            raise ConfigError((fault,))
        self._hooks[path] = hook
        try:
            yield
        finally:
            del self._hooks[path]

    async def _answer(self, connection: HttpConnection, head: h11.Request) -> None:
        path, _, _ = head.target.decode("ascii", "replace").partition("?")
        hook = self._hooks.get(path) if head.method == b"POST" else None
        if hook is None:
            self.refused.note("elsewhere")
            answer = HookAnswer(status=404)
        elif (reply := await self._call(hook, Request(connection, head))) is None:
            connection.cut()
            return
        else:
            answer = reply
        headers: list[tuple[bytes, bytes]] = []
        if answer.retry_after_s:
            headers.append((b"retry-after", str(answer.retry_after_s).encode()))
        # Announce it if we close the connection after this answer.
        connection.is_proven |= answer.status < SUCCESS
        if not connection.has_full_request or answer.status >= SUCCESS:
            headers.append((b"connection", b"close"))
        if answer.body:
            # So that no browser interprets text that the hook echoes as a page.
            headers.append((b"content-type", b"text/plain; charset=utf-8"))
            headers.append((b"x-content-type-options", b"nosniff"))
        connection.answer(answer.status, headers, answer.body.encode())

    async def _call(self, hook: Hook, request: Request) -> HookAnswer | None:
        """Call a hook and return its answer; None if the client is gone."""
        try:
            async with asyncio.timeout(self._bounds.answer_s):
                answer = await call(lambda: hook(request))
        except TimeoutError:
            self._log("hook_took_too_long", level="error")
            return HookAnswer(status=503)
        if not isinstance(answer, Raised):
            return answer
        match answer.error:
            case NotRead() as error:
                self.refused.note(str(error))
                return HookAnswer(status=error.status) if error.status else None
            case ZeroclawError():
                return HookAnswer(status=503)
            case _:
                self._log("hook_failed", reason=answer.line, level="error")
                return HookAnswer(status=500)


def _tls(cert_file: str, key_file: str) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    cert, key = expand(cert_file), expand(key_file)
    for name, path in (("cert_file", cert), ("key_file", key)):
        with refused_as(
            lambda line: ConfigError((line,)), f"public.{name}: `{path}` can't be read"
        ):
            path.read_bytes()
    try:
        # With a password argument, OpenSSL never prompts on the terminal.
        context.load_cert_chain(cert, key, password="")
    except ssl.SSLError as error:
        fault = (
            f"public.cert_file: `{cert_file}` and `{key_file}` are no certificate and its key, in "
            "PEM and without a password"
        )
        raise ConfigError((fault,)) from error
    return context
