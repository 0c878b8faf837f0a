"""Mails as tests write them, and what the adapter decodes from them."""

from datetime import UTC, datetime

from channels._remote.incoming import Skipped
from channels.email import EmailSettings
from channels.email.decode import Bot, Decoded, Fetched, decode, own_id
from zeroclaw import Address, Envelope, Said, replace

AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def me_with(**settings: object) -> Bot:
    defaults: dict[str, object] = {
        "address": "bot@zero.test",
        "authserv_id": "mx.zero.test",
        "password": {"env": "MAIL_PASSWORD"},
        "imap_host": "imap.zero.test",
        "smtp_host": "smtp.zero.test",
    }
    return Bot(
        channel="email", settings=EmailSettings.model_validate(defaults | settings), key=b"key"
    )


ME = me_with()
ANNS = Address(channel="email", account="bot@zero.test", chat="ann@a.example", direct=True)
VERDICT = "Authentication-Results: mx.zero.test; dmarc=pass header.from=a.example"
HEAD = f"{VERDICT}\nFrom: Ann <ann@a.example>\nSubject: the sums\nMessage-ID: <one@a.example>"


def bot_mail_id(thread: str | None, key: str = "k", *, to: str = ANNS.chat, me: Bot = ME) -> str:
    """The id of a mail from the bot."""
    return own_id(replace(ANNS, chat=to, thread=thread), key, me)


def fetched(text: str | bytes) -> Fetched:
    raw = text.replace("\n", "\r\n").encode() if isinstance(text, str) else text
    return Fetched(validity=7, uid=42, raw=raw, at=AT)


def letter(body: str = "What is 2+2?", *, head: str = HEAD, more: str = "") -> str:
    return "\n".join(filter(None, (head, more))) + f"\n\n{body}\n"


def reply(body: str, *, more: str = "", subject: str = "Re: the sums") -> str:
    head = HEAD.replace("Subject: the sums", f"Subject: {subject}")
    return letter(body, head=head, more=f"References: <root@a.example>\n{more}".strip())


def decoded(text: str | bytes, me: Bot = ME) -> Envelope:
    event = decode(fetched(text), me)
    assert isinstance(event, Decoded), event
    return event.envelope


def skip_reason(text: str | bytes, me: Bot = ME) -> str:
    event = decode(fetched(text), me)
    assert isinstance(event, Skipped), event
    return event.reason


def said_body(text: str | bytes) -> Said:
    body = decoded(text).body
    assert isinstance(body, Said)
    return body
