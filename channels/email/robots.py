"""Never a loop: which mails a machine wrote, and how many are answered in an hour.

RFC 3834, section 2, says whom an automatic responder does not answer; the rest is what lists,
bounces and Microsoft's and Google's mail say of themselves, read 2026-11. None of it can be trusted
to be there, so there is a cap for each sender as well, and one for the account that stops it.
"""

import re
from collections import deque
from hashlib import blake2b
from typing import Literal

from channels.email.mime import Mail
from zeroclaw import Sentence

HOUR_S = 3600.0
SENDER_CAPPED = Sentence(
    en="`{channel}`: {sender} wrote {count} mails within an hour, as a machine does that answers mine. What "
    "they write now stays unread, for you to see; `sender_per_hour` says how many are answered.",
    de="`{channel}`: {sender} hat in einer Stunde {count} Mails geschrieben, wie ein Automat, der auf meine "
    "antwortet. Was jetzt noch kommt, bleibt ungelesen liegen; `sender_per_hour` sagt, wie viele beantwortet "
    "werden.",
)

_ROBOT = re.compile(
    r"mailer-daemon|postmaster|bounces?|(?:do[-_]?not|no)[-_]?reply|auto-?reply|listserv|majordomo"
)
_MASS = frozenset({"bulk", "junk", "list", "auto_reply"})
_MARK = re.compile(
    r"feedback-id|x-loop|x-auto(?:reply|respond|-reply-from)|x-mail-autoreply|x-mailer-daemon"
)
_SUPPRESSES = frozenset({"all", "autoreply"})

_TOLD = "told"
_TIME = re.compile(r"\d+\.?\d*", re.ASCII)


def why_none(mail: Mail, *, sender: str, own: str) -> str:
    """Return why a mail is not answered, empty for one that a person may have written.

    Args:
        mail: It, taken apart.
        sender: Who wrote it, normalised.
        own: The account's own address, normalised.
    """

    def first(name: str) -> str:
        return mail.header(name).strip().lower()

    headers, local = mail.headers, sender.partition("@")[0]
    path = first("return-path").strip("<> ")
    suppressed = map(str.strip, first("x-auto-response-suppress").split(","))
    checks = (
        ("it is our own", own in {sender, path}),
        ("auto-submitted", first("auto-submitted").partition(";")[0].strip() not in {"", "no"}),
        ("precedence", first("precedence") in _MASS),
        ("a list", any(name.startswith("list-") for name in headers)),
        ("no return path", "return-path" in headers and not path),
        ("a report", mail.kind == "multipart/report"),
        ("from a robot", _ROBOT.fullmatch(local) or _ROBOT.fullmatch(path.partition("@")[0])),
        ("wants no automatic answer", not _SUPPRESSES.isdisjoint(suppressed)),
        ("marked as automatic", any(map(_MARK.fullmatch, headers))),
    )
    return next((why for why, holds in checks if holds), "")


class Caps:
    """Counts the mails that are answered, of each sender and of all, within an hour.

    Times are POSIX ones. What was counted is kept over a restart as lines, so that a daemon that is
    started again and again gives a loop no new hour; senders are known by a digest alone.
    """

    def __init__(self, *, of_sender: int, of_all: int) -> None:
        """Count nothing yet."""
        self._of_sender = of_sender
        self._answered: deque[tuple[float, str]] = deque(maxlen=of_all)
        self._told: set[str] = set()

    def remember(self, kept: str, at: float) -> None:
        """Count what an earlier process counted; a time that is yet to come counts as now."""
        found: list[tuple[float, str]] = []
        for who, *words in filter(None, map(str.split, kept.splitlines())):
            found += [(min(float(one), at), who) for one in words if _TIME.fullmatch(one)]
            if _TOLD in words:
                self._told.add(who)
        self._answered.extend(sorted(found))

    def kept(self, at: float) -> str:
        """Return what still counts, a line an answer: the sender's digest, when, whether it is told."""
        return "".join(
            f"{who} {time}{f' {_TOLD}' * (who in self._told)}\n"
            for time, who in self._answered
            if at - time < HOUR_S
        )

    def state(self, sender: str, at: float) -> Literal["free", "capped", "stopped"]:
        """Return whether one more of a sender may be answered now."""
        within = [who for time, who in self._answered if at - time < HOUR_S]
        if len(within) == self._answered.maxlen:
            return "stopped"
        return "free" if within.count(_digest(sender)) < self._of_sender else "capped"

    def count(self, sender: str, at: float) -> None:
        """Take note of one that will be answered."""
        self._told.discard(_digest(sender))
        self._answered.append((at, _digest(sender)))

    def is_told(self, sender: str) -> bool:
        """Return whether operators know that a sender is capped, since they were last answered."""
        return _digest(sender) in self._told

    def note_told(self, sender: str) -> None:
        """Take note that they know."""
        self._told &= {who for _, who in self._answered}
        self._told.add(_digest(sender))


def _digest(sender: str) -> str:
    return blake2b(sender.encode("utf-8", "replace"), digest_size=8).hexdigest()
