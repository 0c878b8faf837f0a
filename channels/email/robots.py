"""Prevents mail loops: recognises automatic mails, and caps the answers in an hour.

RFC 3834, section 2, lists the mails that an automatic responder must not answer; the other signs are
those of lists, bounces, and Microsoft's and Google's mail, read 2026-11. None of them is reliable, so
there is also a cap for each sender, and one for the account that stops the channel.
"""

import re
from collections import deque
from collections.abc import Mapping
from typing import Literal

from channels.email.identity import digest
from zeroclaw import Mail, Recent, Sentence

HOUR_S = 3600.0
SENDER_CAPPED = Sentence(
    en="`{channel}`: {sender} wrote {count} mails within an hour, as many as I answer (`sender_per_hour`). "
    "Further ones stay unread, for you to see.",
    de="`{channel}`: {sender} hat in einer Stunde {count} Mails geschrieben; mehr beantworte ich nicht "
    "(`sender_per_hour`). Weitere bleiben ungelesen liegen.",
)
MAIL_NOT_GIVEN = Sentence(
    en="`{channel}`: the server does not hand over a mail. I go on with the others and ask for it again.",
    de="`{channel}`: Eine Mail gibt der Server nicht heraus. Ich lese die anderen und frage weiter nach ihr.",
)
MAIL_RETURNED = Sentence(
    en="`{channel}`: a mail of mine to {sender} came back undelivered; the mailbox says why.",
    de="`{channel}`: Eine Mail von mir an {sender} kam unzustellbar zurück; warum, steht im Postfach.",
)

_ROBOT = re.compile(
    r"mailer-daemon|postmaster|bounces?|(?:do[-_]?not|no)[-_]?reply|auto-?reply|listserv|majordomo"
)
_BULK = frozenset({"bulk", "junk", "list", "auto_reply"})
_AUTO = re.compile(r"x-loop|x-auto(?:reply|respond|-reply-from)|x-mail-autoreply|x-mailer-daemon")
_SUPPRESSES = re.compile(r"(?<![^\s,])(?:all|autoreply)(?![^\s,])")

NOTICES: Mapping[str, Sentence] = {"capped": SENDER_CAPPED, "returned": MAIL_RETURNED}
"""Notices to operators about a person, each given once until the bot answers that person again."""
_COUNT_LINE = re.compile(r"^(\S+) (\d+\.?\d*|[a-z]+)$", re.ASCII | re.MULTILINE)


def reason_to_ignore(mail: Mail, *, sender: str, own: str) -> str:
    """Return the reason to ignore a mail, empty if a person may have written it.

    Args:
        mail: The parsed mail.
        sender: The sender's address, normalised.
        own: The account's own address, normalised.
    """

    def first(name: str) -> str:
        return mail.header(name).strip().lower()

    headers, kinds = {name for name, _ in mail.headers}, {part.kind for part in mail.parts}
    path = first("return-path").strip("<> ")
    checks = (
        ("it is our own", own in {sender, path}),
        ("auto-submitted", first("auto-submitted").partition(";")[0].strip() not in {"", "no"}),
        ("precedence", first("precedence") in _BULK),
        ("a list", any(header.startswith("list-") for header in headers)),
        ("no return path", "return-path" in headers and not path),
        ("a report", mail.kind == "multipart/report"),
        ("from a robot", any(_ROBOT.fullmatch(spec.partition("@")[0]) for spec in (sender, path))),
        # developers.google.com/workspace/gmail/reactions/format; Outlook's look like any other mail.
        ("a reaction", "text/vnd.google.email-reaction+json" in kinds),
        ("wants no automatic answer", _SUPPRESSES.search(first("x-auto-response-suppress"))),
        ("marked as automatic", any(map(_AUTO.fullmatch, headers))),
    )
    return next((reason for reason, applies in checks if applies), "")


class Caps:
    """Counts the mails answered within an hour, for each sender and in all.

    Times are POSIX times; those more than an hour ahead are of a clock that was wrong, and don't count,
    or count as now after a restart. The counts outlive a restart, as lines of text, so that restarting
    the daemon again and again gives a loop no new hour. Senders are stored only as digests.

    Attributes:
        notified: The notices to operators since the bot last answered a person: the person's digest,
            and the notice's name.
    """

    def __init__(self, *, of_sender: int, of_all: int) -> None:
        """Start with all counts at zero."""
        self._of_sender = of_sender
        self._answered: deque[tuple[float, str]] = deque(maxlen=of_all)
        self.notified: Recent[tuple[str, str], bool] = Recent(of_all)

    def load(self, text: str, at: float) -> None:
        """Add the counts of an earlier process; a time in the future counts as now."""
        rows = _COUNT_LINE.findall(text)
        self._answered += sorted((min(float(n), at), key) for key, n in rows if n[0].isdigit())
        self.notified.update((row, True) for row in rows if row[1] in NOTICES)

    def dump(self, at: float) -> str:
        """Return the counts as lines: a person's digest, and the time of an answer or a notice's name."""
        answers = ((key, time) for time, key in self._answered if abs(at - time) < HOUR_S)
        return "".join(f"{key} {value}\n" for key, value in (*answers, *self.notified))

    def state(self, sender: str, at: float) -> Literal["free", "capped", "stopped"]:
        """Return whether one more mail of a sender may be answered now."""
        recent = [key for time, key in self._answered if abs(at - time) < HOUR_S]
        if len(recent) == self._answered.maxlen:
            return "stopped"
        return "free" if recent.count(digest(sender)) < self._of_sender else "capped"

    def count(self, sender: str, at: float) -> None:
        """Count a mail that will be answered."""
        for notice in NOTICES:
            self.notified.pop((digest(sender), notice), None)
        self._answered.append((at, digest(sender)))
