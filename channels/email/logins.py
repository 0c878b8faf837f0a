"""Credentials: a password, or an OAuth 2 access token that is reused until shortly before it expires.

Two flows of RFC 6749 yield a token without a person: a refresh token that the operator got for this
account (section 6; Google, Microsoft), or the application's own credentials, if an administrator has
permitted it (section 4.4; Exchange Online). Microsoft returns a new refresh token with each response
and accepts the previous one for 90 days (read 2026-11); others accept each only once. So the newest
is stored in the channel's directory, readable only by its owner, with a digest of the configured one.
"""

import asyncio
import os
import re
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing, asynccontextmanager, suppress
from pathlib import Path
from ssl import SSLContext, create_default_context

from channels._remote.fields import as_object, number, parse_json, text
from channels._remote.http import Form, Http, repeatable
from channels._remote.limits import FAILED, FIRST_FAILURE, NO_TIME, TOO_MANY
from channels.email import EmailSettings, identity
from channels.email.state import TextFile
from zeroclaw import ChannelUnauthorized, ChannelUnavailable, Value, refused_as

EARLY_S = 120.0
"""Seconds before its expiry at which a token is replaced, so that none expires during a login."""
DEFAULT_LIFETIME_S = 1_200.0
MAX_BYTES = 65_536
_PASSWORD = re.compile(r"[^\0\r\n]+")
_TOKEN = re.compile(r"[!-~]{1,20000}")
_CODE = re.compile(r"[a-z_]{1,40}")


class Login(Value):
    """The credentials of one login.

    Attributes:
        secret: A password, or an access token.
    """

    username: str
    secret: str
    is_token: bool = False

    @property
    def kind(self) -> str:
        """The name of the credentials, for the error when a server refuses them."""
        return "access token" if self.is_token else "user name and password"


class Logins:
    """The logins of one account.

    Attributes:
        channel: The name in the configuration.
        settings: The user and the servers.
    """

    def __init__(
        self,
        channel: str,
        settings: EmailSettings,
        secrets: Mapping[str, str],
        directory: Path | None = None,
        now: Callable[[], float] = float,
    ) -> None:
        """Request nothing yet.

        Args:
            channel: See above.
            settings: See above.
            secrets: The password; or the refresh token and the application's secret.
            directory: Where the newest refresh token is stored.
            now: Returns the time, to expire tokens; a constant for logins that end at once.

        Raises:
            ChannelUnauthorized: The password is not set, or can't be sent.
        """
        self.channel, self.settings, self._secrets = channel, settings, secrets
        if settings.password and not _PASSWORD.fullmatch(secrets.get("password", "")):
            message = f"`{channel}`: the password is not set, or has a line break"
            raise ChannelUnauthorized(message)
        self._token_file, self._now = TextFile(directory, "refresh-token"), now
        self._renewal: asyncio.Task[tuple[str, bool]] | None = None
        self._tls: SSLContext | None = None
        self._token, self._expires_at, self._refresh_line = "", 0.0, ""

    @asynccontextmanager
    async def lend(self) -> AsyncGenerator[Login]:
        """Lend credentials; a token that a server refuses is not lent again.

        Raises:
            ChannelUnauthorized: `token_url` issues no token, or a server refuses a new one.
            ChannelUnavailable: `token_url` can't be reached, or a server refuses an older token.
        """
        username = self.settings.username or self.settings.address
        if password := self._secrets.get("password"):
            yield Login(username=username, secret=password)
            return
        if self._renewal is None or self._renewal.done():
            self._renewal = asyncio.create_task(self._current_token())  # noqa: TID251  `aclose` waits
            # So that the error of one whose logins were all cancelled is not logged.
            self._renewal.add_done_callback(lambda task: task.cancelled() or task.exception())
        # It is not cancelled with the login: the server may accept the refresh token only once, and
        # its answer holds the next one.
        token, is_new = await asyncio.shield(self._renewal)
        try:
            yield Login(username=username, secret=token, is_token=True)
        except ChannelUnauthorized as error:
            self._token = ""
            if is_new:
                raise
            message = f"{error}; it did before, so the next attempt requests another"
            raise ChannelUnavailable(message) from error

    async def aclose(self) -> None:
        """Wait for a requested token, so that it is stored."""
        if self._renewal is not None:
            await asyncio.wait((self._renewal,))

    async def _current_token(self) -> tuple[str, bool]:
        """Return the token, and whether it is new."""
        now = self._now()
        if is_new := not self._token or now >= self._expires_at:
            await self._renew(now)
        if self._refresh_line:
            with suppress(ChannelUnavailable):  # a full disk; the next login writes it again
                await self._token_file.write(self._refresh_line)
        return self._token, is_new

    async def _renew(self, now: float) -> None:
        """Request a token; an error contains the status and code of a refusal, never its text."""
        settings, configured = self.settings, self._secrets.get("refresh_token", "")
        hashed, _, newest = (self._refresh_line or await self._token_file.read()).partition(" ")
        refresh = newest if configured and hashed == identity.digest(configured) else configured
        form = {
            "grant_type": "refresh_token" if refresh else "client_credentials",
            "client_id": settings.client_id,
            "client_secret": self._secrets.get("client_secret", ""),
            "refresh_token": refresh,
            "scope": settings.token_scope,
        }
        data = Form({key: value for key, value in form.items() if value})
        tls = await self.tls_context()
        async with aclosing(Http(self.channel, "`token_url`", tls=tls)) as http:
            with repeatable():
                answer = await http.call("POST", settings.token_url, data=data, max_bytes=MAX_BYTES)
        fields, status = as_object(parse_json(answer.content)), answer.status
        token, newest = text(fields, "access_token"), text(fields, "refresh_token")
        if status >= FIRST_FAILURE or not _TOKEN.fullmatch(token):
            code = text(fields, "error")
            reason = f"{status} {code}" if _CODE.fullmatch(code) else f"{status}"
            message = f"`{self.channel}`: `token_url` gives no access token ({reason})"
            # A refusal has a code (RFC 6749, 5.2); without one it comes from a proxy, and may pass.
            is_final = bool(code) and status < FAILED and status not in {NO_TIME, TOO_MANY}
            raise ChannelUnauthorized(message) if is_final else ChannelUnavailable(message)
        if configured and newest not in {"", configured}:
            self._refresh_line = f"{identity.digest(configured)} {newest}"
        self._token = token
        self._expires_at = now + (number(fields, "expires_in") or DEFAULT_LIFETIME_S) - EARLY_S

    async def tls_context(self) -> SSLContext:
        """Return the context that verifies servers; reads the certificates once, in a thread.

        Raises:
            ChannelUnavailable: The certificates can't be read; they may be put there, or replaced.
        """
        if self._tls is None:
            what = f"`{self.channel}`: `ca_file` can't be read as certificates"
            with refused_as(ChannelUnavailable, what):
                self._tls = await asyncio.to_thread(_load_tls, self.settings.ca_file)
        return self._tls


def _load_tls(ca_file: str) -> SSLContext:
    # `Path.expanduser` raises for a user without a home.
    return create_default_context(cafile=os.path.expanduser(ca_file) or None)  # noqa: PTH111
