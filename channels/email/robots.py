"""Prevents mail loops: recognises automatic mails, and caps the answers in an hour.

RFC 3834, section 2, says which mails an automatic responder does not answer; the other signs are
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
_MASS = frozenset({"bulk", "junk", "list", "auto_reply"})
_MARK = re.compile(r"x-loop|x-auto(?:reply|respond|-reply-from)|x-mail-autoreply|x-mailer-daemon")
_SUPPRESSES = re.compile(r"(?<![^\s,])(?:all|autoreply)(?![^\s,])")

NOTICES: Mapping[str, Sentence] = {"capped": SENDER_CAPPED, "returned": MAIL_RETURNED}
"""What operators are told of a person, once until the person is answered again."""
_KEPT = re.compile(r"^(\S+) (\d+\.?\d*|[a-z]+)$", re.ASCII | re.MULTILINE)


def why_none(mail: Mail, *, sender: str, own: str) -> str:
    """Return why a mail is not answered, empty if a person may have written it.

    Args:
        mail: The parsed mail.
        sender: The sender's address, normalised.
        own: The account's own address, normalised.
    """

    def first(name: str) -> str:
        return mail.header(name).strip().lower()

    headers, kinds = mail.headers, {one.kind for one in mail.parts}
    path = first("return-path").strip("<> ")
    checks = (
        ("it is our own", own in {sender, path}),
        ("auto-submitted", first("auto-submitted").partition(";")[0].strip() not in {"", "no"}),
        ("precedence", first("precedence") in _MASS),
        ("a list", any(name.startswith("list-") for name in headers)),
        ("no return path", "return-path" in headers and not path),
        ("a report", mail.kind == "multipart/report"),
        ("from a robot", any(_ROBOT.fullmatch(one.partition("@")[0]) for one in (sender, path))),
        # developers.google.com/workspace/gmail/reactions/format; Outlook's look like any other mail.
        ("a reaction", "text/vnd.google.email-reaction+json" in kinds),
        ("wants no automatic answer", _SUPPRESSES.search(first("x-auto-response-suppress"))),
        ("marked as automatic", any(map(_MARK.fullmatch, headers))),
    )
    return next((why for why, holds in checks if holds), "")


class Caps:
    """Counts the mails answered within an hour, for each sender and in all.

    Times are POSIX times. The counts are kept as lines over a restart, so that restarting the daemon
    again and again gives a loop no new hour. Senders are stored only as digests.
    """

    def __init__(self, *, of_sender: int, of_all: int) -> None:
        """Start with nothing counted."""
        self._of_sender = of_sender
        self._answered: deque[tuple[float, str]] = deque(maxlen=of_all)
        self._told: Recent[tuple[str, str], bool] = Recent(of_all)

    def remember(self, kept: str, at: float) -> None:
        """Add the counts of an earlier process; a time in the future counts as now."""
        found = _KEPT.findall(kept)
        self._answered += sorted((min(float(n), at), who) for who, n in found if n[0].isdigit())
        self._told.update((one, True) for one in found if one[1] in NOTICES)

    def kept(self, at: float) -> str:
        """Return the current counts, a line per answer and notice: a person's digest, and which."""
        answers = ((who, time) for time, who in self._answered if at - time < HOUR_S)
        return "".join(f"{who} {what}\n" for who, what in (*answers, *self._told))

    def state(self, sender: str, at: float) -> Literal["free", "capped", "stopped"]:
        """Return whether one more mail of a sender may be answered now."""
        within = [who for time, who in self._answered if at - time < HOUR_S]
        if len(within) == self._answered.maxlen:
            return "stopped"
        return "free" if within.count(digest(sender)) < self._of_sender else "capped"

    def count(self, sender: str, at: float) -> None:
        """Count a mail that will be answered."""
        for notice in NOTICES:
            self._told.pop((digest(sender), notice), None)
        self._answered.append((at, digest(sender)))

    def is_told(self, notice: str, person: str) -> bool:
        """Return whether operators have had a notice of a person since the person's last answer."""
        return (digest(person), notice) in self._told

    def note_told(self, notice: str, person: str) -> None:
        """Note that operators have had a notice."""
        self._told[digest(person), notice] = True
