"""Hand mails to the server that sends them: one connection for each, of which a few at a time.

Up to the final dot of DATA nothing has been sent, and a failure can be repeated. From there until
the server's answer the mail may be on its way, so a loss then is `DeliveryUnknown`; the repeat bears
the same Message-ID, by which mail programs and servers that compare them show it once.
"""

import asyncio

from aiosmtplib import (
    SMTP,
    SMTPAuthenticationError,
    SMTPException,
    SMTPResponseException,
)

from channels.email import EmailSettings
from channels.email.oauth import Login
from zeroclaw import (
    ChannelRejected,
    ChannelUnauthorized,
    ChannelUnavailable,
    DeliveryUnknown,
    ZeroclawError,
)

MOST_AT_ONCE = 4
CALL_S = 60.0
_UNAVAILABLE = 421
_NO_MECHANISM = 504
_NEEDS_LOGIN = frozenset({530, 534, 535, 538})
_PERMANENT = 500
_CLOSING_ROUNDS = 3  # of the loop: TLS, then the socket below it, are told one after the other


class _Client(SMTP):
    """The library's, whose connection is cut: what was taken was answered for.

    It closes by handshake, for which nobody waits, and says nowhere when it is over; also by itself,
    when a login is refused.
    """

    def close(self) -> None:
        if isinstance(self.transport, asyncio.Transport):
            self.transport.abort()
        super().close()

    async def aclose(self) -> None:
        """Cut the connection, and see it gone."""
        self.close()
        for _ in range(_CLOSING_ROUNDS):
            await asyncio.sleep(0)


class Sender:
    """Sends for one account."""

    def __init__(self, channel: str, settings: EmailSettings) -> None:
        """Open nothing yet."""
        self._channel = channel
        self._settings = settings
        self._domain = settings.address.rpartition("@")[2]
        self._sending = asyncio.Semaphore(MOST_AT_ONCE)

    async def send(self, mail: bytes, login: Login, *, sender: str, to: str) -> None:
        """Send one mail to one person.

        Raises:
            ChannelUnavailable: It was not sent, and may be sent again.
            ChannelRejected: The server takes no such mail.
            ChannelUnauthorized: The server does not accept the login.
            DeliveryUnknown: It may be on its way.
        """
        async with self._sending:
            client = self._client(login)
            try:
                await self._handed_over(client, login, mail, sender, to)
            finally:
                await client.aclose()

    async def try_login(self, login: Login) -> None:
        """Log in, and send nothing."""
        client = self._client(login)
        try:
            await client.connect()
        except (SMTPException, OSError) as error:
            raise self._not_sent(error, login) from error
        finally:
            await client.aclose()

    def _client(self, login: Login) -> _Client:
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
            start_tls=None if is_direct else True,  # and never without
            tls_context=login.tls,
            timeout=CALL_S,
            local_hostname=self._domain,  # without it the library looks its own name up, blocking
        )

    async def _handed_over(
        self, client: _Client, login: Login, mail: bytes, sender: str, to: str
    ) -> None:
        try:
            await client.connect()
            # Own address, not the empty one that RFC 3834 prefers: servers that take mail with a
            # login take it from the login's address alone. Bounces are known by their own looks.
            await client.mail(sender)
            await client.rcpt(to)
        except (SMTPException, OSError, ValueError) as error:
            raise self._not_sent(error, login) from error
        try:
            await client.data(mail)
        except SMTPResponseException as error:
            raise self._not_sent(error, login) from error
        except (SMTPException, OSError) as error:
            message = f"`{self._channel}`: the server's answer to a mail was lost"
            raise DeliveryUnknown(message) from error

    def _not_sent(self, error: Exception, login: Login) -> ZeroclawError:
        """Return what to raise of a failure before anything was sent."""
        name, host = self._channel, self._settings.smtp_host
        match error:
            case SMTPAuthenticationError():
                if error.code >= _PERMANENT and error.code != _NO_MECHANISM:
                    return ChannelUnauthorized(
                        f"`{name}`: `{host}` does not accept the {login.called}"
                    )
                return ChannelUnavailable(f"`{name}`: `{host}` can't check the login now")
            case SMTPResponseException(code=code) if code in _NEEDS_LOGIN:
                return ChannelUnauthorized(f"`{name}`: `{host}` wants another login ({code})")
            case SMTPResponseException(code=code) if code >= _PERMANENT:
                return ChannelRejected(f"`{name}`: `{host}` refused a mail ({_said(error)})")
            case SMTPResponseException():
                return ChannelUnavailable(f"`{name}`: `{host}` takes no mail now ({_said(error)})")
            case ValueError():
                return ChannelRejected(f"`{name}`: an address that can't be sent to")
            case OSError():  # what the library raises of lost and silent connections is one too
                return ChannelUnavailable(f"`{name}`: `{host}` can't be reached to send a mail")
            case _:
                return ChannelUnauthorized(f"`{name}`: `{host}` offers no STARTTLS or no login")


def _said(error: SMTPResponseException) -> str:
    return f"{error.code} {' '.join(error.message.split())[:120].lower()}"
