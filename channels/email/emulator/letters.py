"""Mails as people's programs write and show them."""

import re
from collections.abc import Sequence
from email.message import EmailMessage
from email.policy import default
from email.utils import make_msgid
from urllib.parse import parse_qs, urlsplit

from channels.email.emulator.servers import DOMAIN, VERDICT

LONG_LINES = default.clone(max_line_length=990)  # mail programs leave long ids as they are
_LINK = re.compile(r"mailto:\S+")
_LABELLED = re.compile(r"(?m)^(.{1,80}): (mailto:\S+)(?:\n|\Z)")
_CODE = re.compile(r" \[zc:\S*")  # ends a subject that a card's link writes
_RECEIPTS = "\n-- \n"


def mail_from(
    sender: str,
    to: str,
    text: str = "",
    *,
    subject: str = "Re: hello",
    in_reply_to: str = f"<zc..start@{DOMAIN}>",
    verdict: str = VERDICT,
    name: str = "Ann",
) -> EmailMessage:
    """Write a mail; by default it answers a mail that the bot began."""
    mail = EmailMessage(policy=LONG_LINES)
    if verdict:
        mail["Authentication-Results"] = verdict
    mail["From"] = f"{name} <{sender}>"
    mail["To"] = to
    mail["Subject"] = subject
    mail["Message-ID"] = make_msgid(domain=DOMAIN)
    if in_reply_to:
        mail["In-Reply-To"] = in_reply_to
        mail["References"] = in_reply_to
    mail.set_content(text)
    return mail


def body(mail: EmailMessage) -> str:
    """Return the plain text of a mail."""
    part = mail.get_body(("plain",))
    text = "" if part is None else str(part.get_content())
    return text.replace("\r\n", "\n").removesuffix("\n")


def links(mail: EmailMessage) -> Sequence[str]:
    """Return the subjects of the mails that a card's links write."""
    return [_subject(link) for link in _LINK.findall(body(mail))]


def buttons(mail: EmailMessage) -> Sequence[tuple[str, str]]:
    """Return the links of a card: the label, and the subject of the mail that it writes."""
    return [(label, _subject(link)) for label, link in _LABELLED.findall(body(mail))]


def visible_subject(mail: EmailMessage) -> str:
    """Return a subject without the approval's code, which only the bot reads."""
    return _CODE.sub("", str(mail["subject"]))


def visible_text(mail: EmailMessage) -> str:
    """Return a text without the links that the page shows as buttons; a press has only a subject."""
    return _LABELLED.sub("", body(mail)) or visible_subject(mail)


def markdown(mail: EmailMessage) -> str:
    """Return an answer's text, with a rule above the receipts."""
    return body(mail).replace(_RECEIPTS, "\n\n---\n\n")


def _subject(link: str) -> str:
    return parse_qs(urlsplit(link).query)["subject"][0]
