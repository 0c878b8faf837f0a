"""One connection to a mailbox: the few commands of IMAP by which new mail is read (RFC 3501, 2177).

No library stands below this. aioimaplib waits for ever once a connection is lost, starts tasks that
nobody owns, drops what a server tells within the answer to another command, sends no user name that
has to be quoted, and is under the GPL (2.0.3, read 2026-11); what was left of it was its parser. Here
one user says a command and reads until the answer to it has come, so the end of a connection ends
the reading, and what the server tells meanwhile is heard.
"""

import asyncio
import re
import ssl
from base64 import b64encode
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import datetime

from channels.email.decode import Fetched
from channels.email.oauth import Login
from zeroclaw import ChannelUnauthorized, ChannelUnavailable, Value

CALL_S = 60.0
"""Within which some of an answer has to come."""
ANSWER_S = 3_600.0
"""For all of it: with less, a large mail on a slow line would be begun again and again."""
CONNECT_S = 30.0
CLOSE_S = 2.0
MOST_LINE_BYTES = 2**21
"""A search that finds a quarter of a million mails is told in one line."""
_LITERAL = re.compile(rb"\{(\d{1,10})\}\r\n\Z")
_NEWS = re.compile(rb"\* \d+ EXISTS", re.IGNORECASE)
_FOUND = re.compile(rb"\* SEARCH((?: \d+)*)", re.IGNORECASE)
_UID = re.compile(rb"[( ]UID (\d+)")
_SIZE = re.compile(rb"RFC822\.SIZE (\d+)")
_DATE = re.compile(rb'INTERNALDATE "([^"]{10,40})"')
_OPENED = re.compile(rb"\[(UIDVALIDITY|UIDNEXT) (\d+)\]")
_SAYABLE = re.compile(r"[ -~]*")
# RFC 5530: what says that the operator must act; without a code it is a refusal as well.
_REFUSED = re.compile(
    r"(?!\[)|\[(?:AUTHENTICATIONFAILED|AUTHORIZATIONFAILED|EXPIRED|PRIVACYREQUIRED|CONTACTADMIN)\]"
)


class Opened(Value):
    """A mailbox as it was opened."""

    validity: int
    next_uid: int


class Answer(Value):
    """What came of a command.

    Attributes:
        is_ok: It was done.
        words: What the server says of that.
        said: What it said before: lines, each with the bytes within it whose number it told.
    """

    is_ok: bool
    words: str
    said: Sequence[tuple[bytes, bytes]]


class Mailbox:
    """One connection, for one user at a time.

    Attributes:
        has_news: The server has told of new mail; its user takes it back before a search.
    """

    def __init__(
        self, channel: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """Hold a connection that `connected` has made."""
        self._channel = channel
        self._reader = reader
        self._writer = writer
        self._commands = 0
        self._can = b""
        self.has_news = False

    async def login(self, login: Login) -> None:
        """Log in, once the server is ready for it.

        Raises:
            ChannelUnauthorized: The server does not accept it.
        """
        if not _SAYABLE.fullmatch(login.username + login.secret):
            message = (
                f"`{self._channel}`: the {login.called} can't be sent, for a line break or another "
                "sign in it"
            )
            raise ChannelUnauthorized(message)
        command = f"LOGIN {_quoted(login.username)} {_quoted(login.secret)}"
        if login.is_token:
            proof = f"user={login.username}\x01auth=Bearer {login.secret}\x01\x01"
            command = f"AUTHENTICATE XOAUTH2 {b64encode(proof.encode()).decode()}"
        await self._next(CONNECT_S)
        answer = await self._answer(self._say(command), CONNECT_S)
        if answer.is_ok:
            self._can = b"".join(line for line, _ in await self._asked("CAPABILITY"))
            return
        message = f"`{self._channel}`: the mailbox does not accept the {login.called}"
        if _REFUSED.match(answer.words):
            raise ChannelUnauthorized(message)
        message = f"`{self._channel}`: the mailbox lets nobody in now ({_short(answer.words)})"
        raise ChannelUnavailable(message)

    async def open(self, mailbox: str) -> Opened:
        """Open a mailbox.

        Raises:
            ChannelUnauthorized: There is none of this name.
        """
        answer = await self._answer(self._say(f'SELECT "{mailbox}"'), CALL_S)
        if not answer.is_ok:
            why = _short(answer.words)
            message = f"`{self._channel}`: there is no mailbox `{mailbox}` ({why})"
            raise ChannelUnauthorized(message)
        told = b"".join(line for line, _ in answer.said)
        found = {key: int(value) for key, value in _OPENED.findall(told)}
        return Opened(validity=found.get(b"UIDVALIDITY", 0), next_uid=found.get(b"UIDNEXT", 1))

    async def search(self, criteria: str) -> list[int]:
        """Return the UIDs that a search finds, in order."""
        said = await self._asked(f"UID SEARCH {criteria}")
        found = b" ".join(one[1] for line, _ in said if (one := _FOUND.match(line)))
        return sorted(set(map(int, found.split())))

    async def fetch(self, validity: int, uid: int, *, most: int) -> Fetched | None:
        """Return a mail, or as much of it as may be read; None where it is gone.

        `BODY.PEEK` sets no flag.
        """
        parts = f"(UID RFC822.SIZE INTERNALDATE BODY.PEEK[]<0.{most}>)"
        for line, raw in await self._asked(f"UID FETCH {uid} {parts}"):
            # Another client's changes come in between; only the answer about this mail has its bytes.
            named, size, date = (one.search(line) for one in (_UID, _SIZE, _DATE))
            if raw and named and int(named[1]) == uid:
                return Fetched(
                    validity=validity,
                    uid=uid,
                    raw=raw,
                    size_bytes=int(size[1]) if size else len(raw),
                    at=_instant(date[1].decode("ascii", "replace")) if date else None,
                )
        return None

    async def flag(self, uid: int) -> None:
        """Mark a mail as seen."""
        await self._asked(rf"UID STORE {uid} +FLAGS.SILENT (\Seen)")

    @property
    def can_idle(self) -> bool:
        """Whether the server tells of new mail by itself."""
        return b" IDLE" in self._can.upper()

    async def idle(self, limit_s: float) -> None:
        """Wait until there is news, at most for a while."""
        if self.has_news:
            return
        tag = self._say("IDLE")
        while not (await self._next(CONNECT_S))[0].startswith(b"+"):
            pass
        with suppress(TimeoutError):
            async with asyncio.timeout(limit_s):
                while not self.has_news:
                    await self._next(limit_s + 1)
        self._writer.write(b"DONE\r\n")
        await self._answer(tag, CONNECT_S)

    async def aclose(self) -> None:
        """Cut the connection, and see it gone; safe twice."""
        self._writer.transport.abort()
        with suppress(OSError):  # of which that it takes too long is one
            async with asyncio.timeout(CLOSE_S):
                await self._writer.wait_closed()

    # --- what is said ----------------------------------------------------------------------------

    async def _asked(self, command: str) -> Sequence[tuple[bytes, bytes]]:
        """Say a command that no server refuses, and return what is said before its answer."""
        answer = await self._answer(self._say(command), CALL_S)
        if answer.is_ok:
            return answer.said
        why = _short(answer.words)
        message = f"`{self._channel}`: the mailbox refused a command ({why})"
        raise ChannelUnavailable(message)

    def _say(self, command: str) -> bytes:
        """Say a command; returns how its answer begins."""
        self._commands += 1
        self._writer.write(f"z{self._commands} {command}\r\n".encode())
        return b"z%d " % self._commands

    async def _answer(self, tag: bytes, limit_s: float) -> Answer:
        """Read until a command is answered, some of it within each limit."""
        said: list[tuple[bytes, bytes]] = []
        async with self._within(ANSWER_S):
            while not (one := await self._next(limit_s))[0].startswith(tag):
                said.append(one)
                if one[0].startswith(b"+"):
                    # Google asks for one line more before it refuses an access token ("XOAUTH2
                    # Mechanism", read 2026-11); nothing else that is said here has more to come.
                    self._writer.write(b"\r\n")
        how, _, words = one[0].removeprefix(tag).decode("utf-8", "replace").partition(" ")
        return Answer(is_ok=how.upper() == "OK", words=words, said=said)

    async def _next(self, limit_s: float) -> tuple[bytes, bytes]:
        """Read what is said next, some of it within each limit."""
        line, literal = b"", b""
        while True:
            async with self._within(limit_s):
                line += await self._reader.readuntil(b"\r\n")
            if (size := _LITERAL.search(line)) is None:
                self.has_news = self.has_news or _NEWS.match(line) is not None
                return line, literal
            read = bytearray()
            while left := int(size[1]) - len(read):
                async with self._within(limit_s):
                    read += await self._reader.read(left) or await self._reader.readexactly(1)
            literal = bytes(read)

    @asynccontextmanager
    async def _within(self, limit_s: float) -> AsyncGenerator[None]:
        """Wait while the connection holds, and no longer than a limit.

        Raises:
            ChannelUnavailable: It is lost, or says nothing; it is of no use then.
        """
        try:
            async with asyncio.timeout(limit_s):
                yield
        except (EOFError, OSError, asyncio.LimitOverrunError) as error:
            self._writer.transport.abort()
            is_late = isinstance(error, TimeoutError)
            why = f"gave no answer within {limit_s:g} s" if is_late else "was lost"
            message = f"`{self._channel}`: the connection to the mailbox {why}"
            raise ChannelUnavailable(message) from error


async def connected(channel: str, host: str, port: int, *, tls: ssl.SSLContext) -> Mailbox:
    """Connect by TLS from the first byte; the server's certificate is verified.

    Raises:
        ChannelUnavailable: Nothing answers there, or it can't prove its name.
    """
    try:
        async with asyncio.timeout(CONNECT_S):
            streams = await asyncio.open_connection(host, port, ssl=tls, limit=MOST_LINE_BYTES)
    except ssl.SSLCertVerificationError as error:
        message = f"`{channel}`: `{host}` can't prove its name ({error.verify_message.lower()})"
        raise ChannelUnavailable(message) from error
    except OSError as error:
        message = f"`{channel}`: no mailbox answers at `{host}` port {port}"
        raise ChannelUnavailable(message) from error
    return Mailbox(channel, *streams)


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _short(words: str) -> str:
    return " ".join(words.split())[:120].lower()


def _instant(text: str) -> datetime | None:
    try:
        return datetime.strptime(text.strip(), "%d-%b-%Y %H:%M:%S %z")
    except ValueError:
        return None
