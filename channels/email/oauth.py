"""Access tokens for a login by OAuth 2: asked for when one is needed, kept until shortly before its end.

Two ways of RFC 6749 lead to one without a person: by a refresh token that somebody got for this
account (section 6; Google, Microsoft), or as the application itself, where an administrator has let
it in (section 4.4; Exchange Online). Microsoft gives a new refresh token with each answer and takes
the one before for 90 days (read 2026-11), others take each once; so the newest is kept in the
channel's directory, for its owner alone, beside a digest of the one that was configured.
"""

import asyncio
import re
from collections.abc import Mapping
from hashlib import sha256
from ssl import SSLContext

import aiohttp

from channels._remote.fields import Json, as_object, number, parsed, text
from channels.email import EmailSettings
from channels.email.kept import Kept
from zeroclaw import ChannelUnauthorized, ChannelUnavailable, Clock, Value

CALL_S = 30.0
EARLY_S = 120.0
"""So long before its end a token is given up, that none ends within a login."""
UNSTATED_S = 1_200.0
MOST_BYTES = 65_536
_TOKEN = re.compile(r"[!-~]{1,20000}")
_CODE = re.compile(r"[a-z_]{1,40}")
_DONE, _TOO_MANY, _ITS_FAULT = 200, 429, 500


class Login(Value):
    """What one login takes.

    Attributes:
        secret: A password, or an access token.
        tls: What the server is verified with.
    """

    username: str
    secret: str
    tls: SSLContext
    is_token: bool = False

    @property
    def called(self) -> str:
        """What a server does not accept that refuses it."""
        return "access token" if self.is_token else "user name and password"


class AccessTokens:
    """Those of one account."""

    def __init__(
        self,
        channel: str,
        settings: EmailSettings,
        secrets: Mapping[str, str],
        *,
        kept: Kept,
        clock: Clock | None,
    ) -> None:
        """Ask for nothing yet.

        Args:
            channel: The name in the configuration.
            settings: Where they are given, and to whom.
            secrets: The refresh token, and what proves the application.
            kept: The newest refresh token; see above.
            clock: By which a token ends; None where each is used once.
        """
        self._channel = channel
        self._settings = settings
        self._secrets = secrets
        self._kept = kept
        self._clock = clock
        self._asking = asyncio.Lock()
        self._token = ""
        self._ends_at = 0.0
        self._is_proven = False

    async def current(self, tls: SSLContext) -> str:
        """Return one that can be used now.

        Raises:
            ChannelUnauthorized: None is given for what is configured.
            ChannelUnavailable: It can't be asked for now.
        """
        async with self._asking:
            now = self._clock.monotonic() if self._clock else self._ends_at
            if not self._token or now >= self._ends_at:
                answer = await self._asked(await self._grant(), tls)
                await self._keep(text(answer, "refresh_token"))
                self._token, self._is_proven = text(answer, "access_token"), False
                self._ends_at = now + (number(answer, "expires_in") or UNSTATED_S) - EARLY_S
            return self._token

    def was_accepted(self) -> None:
        """Hear that a server has taken the token."""
        self._is_proven = True

    def was_refused(self) -> bool:
        """Hear that a server has not taken it; returns whether one did before, so that a new one may do."""
        self._token = ""
        return self._is_proven

    async def _grant(self) -> Mapping[str, str]:
        settings = self._settings
        configured = self._secrets.get("refresh_token", "")
        digest, _, newest = (await self._kept.read()).partition(" ")
        refresh = newest if configured and digest == _digest(configured) else configured
        form = {
            "grant_type": "refresh_token" if refresh else "client_credentials",
            "client_id": settings.client_id,
            "client_secret": self._secrets.get("client_secret", ""),
            "refresh_token": refresh,
            "scope": settings.token_scope,
        }
        return {key: value for key, value in form.items() if value}

    async def _keep(self, newest: str) -> None:
        configured = self._secrets.get("refresh_token", "")
        if configured and newest not in {"", configured}:
            await self._kept.keep(f"{_digest(configured)} {newest}")

    async def _asked(self, form: Mapping[str, str], tls: SSLContext) -> Json:
        """Ask for a token; what is told of a refusal is its status and its code, never its words."""
        try:
            async with (
                aiohttp.ClientSession(
                    connector=aiohttp.TCPConnector(ssl=tls, force_close=True),
                    timeout=aiohttp.ClientTimeout(total=CALL_S),
                    trust_env=True,
                ) as session,
                session.post(
                    self._settings.token_url, data=dict(form), allow_redirects=False
                ) as answer,
            ):
                status, body = answer.status, await answer.content.read(MOST_BYTES)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            kind = type(error).__name__
            message = f"`{self._channel}`: `token_url` can't be reached ({kind})"
            raise ChannelUnavailable(message) from None
        found = as_object(parsed(body))
        if status == _DONE and _TOKEN.fullmatch(text(found, "access_token")):
            return found
        code = text(found, "error")
        why = f"{status} {code}" if _CODE.fullmatch(code) else f"{status}"
        message = f"`{self._channel}`: `token_url` gives no access token ({why})"
        if status in {_DONE, _TOO_MANY} or status >= _ITS_FAULT:
            raise ChannelUnavailable(message)
        raise ChannelUnauthorized(message)


def _digest(secret: str) -> str:
    return sha256(secret.encode()).hexdigest()[:20]
