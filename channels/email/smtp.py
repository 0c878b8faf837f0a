"""Passes mails to the sending server, over a few connections that stay open a while for the next.

Connecting costs more than sending: two handshakes, a login, eight responses; and servers limit
connections. A server may have ended an idle connection. If the connection does not accept the next
mail, the server has not seen that mail, so a new connection is made, and its answer counts.

Until the final dot of DATA the mail is not sent, and the outbox may retry after a failure. From there
until the server's answer the mail may be on its way, so a loss then is `DeliveryUnknown`. A retry has
the same Message-ID, so mail programs and servers that compare ids show the mail once.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from ssl import SSLContext

from aiosmtplib import SMTP, SMTPAuthenticationError, SMTPException, SMTPResponseException
from aiosmtplib.errors import SMTPDataError, SMTPSenderRefused

from channels.email.logins import Login, Logins
from zeroclaw import (
    ChannelRejected,
    ChannelUnauthorized,
    ChannelUnavailable,
    DeliveryUnknown,
    ZeroclawError,
)

MAX_CONCURRENT = 4
CALL_S = 60.0
BEGIN_S = 15.0
"""Seconds to begin a mail. The runtime ends a send after half a minute, and must then assume that the
mail may be on its way; of such sends it makes few."""
IDLE_S = 30.0
"""Seconds to wait for the next mail; servers wait for five minutes (RFC 5321, 4.5.3.2.7), using a
process for each connection."""
_PERMANENT, _NO_MECHANISM = 500, 504
_CLOSING_ROUNDS = 3  # of the event loop: TLS and its socket are notified in turn


class _Client(SMTP):
    """The library's client, but it cuts its connection, since accepted mails are already confirmed.

    The library closes by a handshake that no task awaits, and does not report when it is over; it also
    does so by itself when a login is refused.
    """

    def close(self) -> None:
        if isinstance(self.transport, asyncio.Transport):
            self.transport.abort()
        super().close()

    async def aclose(self) -> None:
        """Cut the connection, and wait until it is closed."""
        self.close()
        for _ in range(_CLOSING_ROUNDS):
            await asyncio.sleep(0)


class Sender:
    """Sends for one account.

    Attributes:
        closed: Set by `aclose`; no connection is kept after that.
    """

    def __init__(self, logins: Logins) -> None:
        """Connect to nothing yet."""
        self._channel, self._settings, self._logins = logins.channel, logins.settings, logins
        self._slots, self.closed = asyncio.Semaphore(MAX_CONCURRENT), asyncio.Event()
        # Each with the timer that closes it.
        self._idle: dict[_Client, asyncio.TimerHandle] = {}

    async def send(self, mail: bytes, to: str) -> None:
        """Send one mail to one person.

        Raises:
            ChannelUnavailable: It was not sent, and may be sent again.
            ChannelRejected: The server does not accept this mail.
            ChannelUnauthorized: The server does not accept the login.
            DeliveryUnknown: It may be on its way.
        """
        async with self._logins.lend() as login, self._slots, self._begin(login) as client:
            await client.rcpt(to)
            try:
                await client.data(mail)
            except (SMTPException, OSError) as error:
                if isinstance(error, SMTPDataError):  # no other says what became of the mail
                    raise
                message = f"`{self._channel}`: the server's answer to a mail was lost"
                raise DeliveryUnknown(message) from error
            if not self.closed.is_set():
                self._idle[client] = asyncio.get_running_loop().call_later(IDLE_S, client.close)

    async def try_login(self) -> None:
        """Log in and begin a mail, but send none."""
        async with self._logins.lend() as login, self._begin(login):
            pass

    async def aclose(self) -> None:
        """Close idle connections, and keep none from now on; safe twice."""
        self.closed.set()
        while self._idle:
            client, timer = self._idle.popitem()
            timer.cancel()
            await client.aclose()

    @asynccontextmanager
    async def _begin(self, login: Login) -> AsyncGenerator[_Client]:
        """Lend a connection on which a mail has begun; cut it afterwards, unless it waits for the next.

        Raises:
            ChannelUnavailable: The mail was not sent, and may be sent again.
            ChannelRejected: The server does not accept it.
            ChannelUnauthorized: The server does not accept the login.
        """
        # Our own address, not the empty one that RFC 3834 prefers: servers with a login accept mail
        # only from the login's address. Bounces are recognised by their own features.
        sender, tls = self._settings.address, await self._logins.tls_context()
        client = self._client(login, tls)
        try:
            async with asyncio.timeout(BEGIN_S):
                while client.is_connected:
                    with suppress(SMTPException, OSError):  # it may have ended while it was idle
                        await client.mail(sender)
                        break
                    client.close()
                    client = self._client(login, tls)
                else:
                    await client.connect()
                    await client.mail(sender)
            yield client
        except (SMTPException, OSError) as error:
            raise self._error_of(error, login) from error
        finally:
            if client not in self._idle:
                await client.aclose()

    def _client(self, login: Login, tls: SSLContext) -> _Client:
        """Return the most recently used idle client, else a new one."""
        while self._idle:
            client, timer = self._idle.popitem()
            timer.cancel()
            if client.is_connected:
                return client

        async def token(*_: object) -> str:
            return login.secret

        is_direct = self._settings.smtp_security == "tls"
        return _Client(
            hostname=self._settings.smtp_host,
            port=self._settings.smtp_port,
            username=login.username,
            password=None if login.is_token else login.secret,
            oauth_token_generator=token if login.is_token else None,
            use_tls=is_direct,
            start_tls=None if is_direct else True,  # never without TLS
            tls_context=tls,
            timeout=CALL_S,
            # Otherwise the library looks up its own name, which blocks.
            local_hostname=self._settings.address.rpartition("@")[2],
        )

    def _error_of(self, error: Exception, login: Login) -> ZeroclawError:
        """Return the error to raise for a failure before the mail was sent."""
        server = f"`{self._channel}`: `{self._settings.smtp_host}`"
        match error:
            case SMTPAuthenticationError(code=code) if code < _PERMANENT or code == _NO_MECHANISM:
                return ChannelUnavailable(f"{server} can't check the login now ({_reply(error)})")
            case SMTPAuthenticationError() | SMTPResponseException(code=530 | 534 | 535 | 538):
                return ChannelUnauthorized(f"{server} refuses the {login.kind} ({_reply(error)})")
            # "Congestion" should pass (RFC 3463, 3.5), but is also Gmail's code for its daily limit.
            # Not for a refused recipient: that may be its own server's refusal, and other mail still goes.
            case SMTPDataError() | SMTPSenderRefused() if error.message.startswith("5.4.5 "):
                return ChannelUnauthorized(f"{server} takes no more ({_reply(error)})")
            case SMTPResponseException(code=code) if code >= _PERMANENT:
                return ChannelRejected(f"{server} refused a mail ({_reply(error)})")
            case SMTPResponseException():
                return ChannelUnavailable(f"{server} takes no mail now ({_reply(error)})")
            case OSError():  # includes the library's errors for lost and silent connections
                return ChannelUnavailable(f"{server} can't be reached to send a mail")
            case _:
                return ChannelUnauthorized(f"{server} offers no STARTTLS or no login")


def _reply(error: SMTPResponseException) -> str:
    return f"{error.code} {' '.join(error.message.split())[:120].lower()}"
