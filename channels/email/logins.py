"""Credentials: a password, or an OAuth 2 access token that is reused until shortly before it expires.

Two flows of RFC 6749 yield a token without a person: a refresh token that somebody got for this
account (section 6; Google, Microsoft), or the application's own credentials, if an administrator has
permitted it (section 4.4; Exchange Online). Microsoft returns a new refresh token with each answer
and accepts the previous one for 90 days (read 2026-11); others accept each only once. So the newest
is kept in the channel's directory, readable only by its owner, with a digest of the configured one.
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
from channels._remote.limits import FAILED, FIRST_FAILURE, TOO_MANY
from channels.email import EmailSettings
from channels.email.identity import digest
from channels.email.kept import KeptText
from zeroclaw import ChannelUnauthorized, ChannelUnavailable, Value

EARLY_S = 120.0
"""Seconds before its expiry that a token is dropped, so that none expires during a login."""
UNSTATED_S = 1_200.0
MOST_BYTES = 65_536
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
    def called(self) -> str:
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
            directory: Where the newest refresh token is kept.
            now: Returns the time, to expire tokens; a constant if none is used for long.

        Raises:
            ChannelUnauthorized: The password is not set, or can't be sent.
        """
        self.channel, self.settings, self._secrets = channel, settings, secrets
        if settings.password and not _PASSWORD.fullmatch(secrets.get("password", "")):
            message = f"`{channel}`: the password is not set, or has a line break"
            raise ChannelUnauthorized(message)
        self._kept, self._now = KeptText(directory, "refresh-token"), now
        self._asking = asyncio.Lock()
        self._tls: SSLContext | None = None
        self._token, self._ends_at, self._newest = "", 0.0, ""

    @asynccontextmanager
    async def lend(self) -> AsyncGenerator[Login]:
        """Lend credentials; a token that a server refuses is not lent again.

        Raises:
            ChannelUnauthorized: No token is issued, or a new one is refused.
            ChannelUnavailable: None can be requested now, or one is refused that was accepted before.
        """
        username = self.settings.username or self.settings.address
        if password := self._secrets.get("password"):
            yield Login(username=username, secret=password)
            return
        async with self._asking:
            now = self._now()
            is_new = not self._token or now >= self._ends_at
            if is_new:
                await self._renew(now)
            token = self._token
            if self._newest:
                with suppress(ChannelUnavailable):  # a full disk, which the next login tries again
                    await self._kept.keep(self._newest)
        try:
            yield Login(username=username, secret=token, is_token=True)
        except ChannelUnauthorized as error:
            self._token = ""
            if is_new:
                raise
            message = f"{error}; it did before, so the next attempt asks for another"
            raise ChannelUnavailable(message) from error

    async def _renew(self, now: float) -> None:
        """Request a token; an error names only the status and the code of a refusal, not its text."""
        settings, configured = self.settings, self._secrets.get("refresh_token", "")
        known, _, newest = (self._newest or await self._kept.read()).partition(" ")
        refresh = newest if configured and known == digest(configured) else configured
        form = {
            "grant_type": "refresh_token" if refresh else "client_credentials",
            "client_id": settings.client_id,
            "client_secret": self._secrets.get("client_secret", ""),
            "refresh_token": refresh,
            "scope": settings.token_scope,
        }
        data = Form({key: value for key, value in form.items() if value})
        tls = await self.trusted()
        async with aclosing(Http(self.channel, "`token_url`", tls=tls)) as http:
            with repeatable():
                answer = await http.call("POST", settings.token_url, data=data, most=MOST_BYTES)
        found, status = as_object(parse_json(answer.content)), answer.status
        token, newest = text(found, "access_token"), text(found, "refresh_token")
        if status >= FIRST_FAILURE or not _TOKEN.fullmatch(token):
            code = text(found, "error")
            why = f"{status} {code}" if _CODE.fullmatch(code) else f"{status}"
            message = f"`{self.channel}`: `token_url` gives no access token ({why})"
            is_final = FIRST_FAILURE <= status < FAILED and status != TOO_MANY
            raise ChannelUnauthorized(message) if is_final else ChannelUnavailable(message)
        if configured and newest not in {"", configured}:
            self._newest = f"{digest(configured)} {newest}"
        self._token = token
        self._ends_at = now + (number(found, "expires_in") or UNSTATED_S) - EARLY_S

    async def trusted(self) -> SSLContext:
        """Return the context that verifies servers; reading certificates takes a while.

        Raises:
            ChannelUnauthorized: They can't be read.
        """
        if self._tls is None:
            try:
                self._tls = await asyncio.to_thread(_trusting, self.settings.ca_file)
            except OSError as error:
                message = f"`{self.channel}`: `ca_file` can't be read as certificates"
                raise ChannelUnauthorized(message) from error
        return self._tls


def _trusting(ca_file: str) -> SSLContext:
    # The one of `pathlib` raises if somebody has no home.
    return create_default_context(cafile=os.path.expanduser(ca_file) or None)  # noqa: PTH111
