"""Does what the forms of the page ask for, through the doors that everybody uses.

An answer to an approval is an admitted `Pressed`, as from the web chat, whose operator this page's
reader is; a grant ends as by `zeroclaw grants revoke`, and people are decided about as by `zeroclaw
pair`. What each comes to is one line for the operator who sent the form.
"""

from collections.abc import Mapping
from typing import get_args

from zeroclaw.console.context import ConsoleContext
from zeroclaw.envelope import (
    Answered,
    ApprovalId,
    Choice,
    Envelope,
    Pressed,
    Sender,
)
from zeroclaw.inbound.identity import OPERATOR

Fields = Mapping[str, str]
CHOICES: Mapping[str, Choice] = {one: one for one in get_args(Choice)}
DOINGS = frozenset({"approve", "deny", "revoke"})
MOST_REASON = 2_000
UNREADABLE = "this form is not one of this page's; reload it and try again"


class Actions:
    """What can be done from the page; one for the whole daemon."""

    def __init__(self, context: ConsoleContext) -> None:
        """Hold the doors."""
        self._context = context

    async def answer(self, fields: Fields) -> str:
        """Answer an approval.

        Raises:
            ZeroclawError: It could not be stored.
        """
        choice = CHOICES.get(fields.get("choice", ""))
        approval = fields.get("approval", "")
        if choice is None or not approval:
            return UNREADABLE
        pressed = Pressed(
            approval=ApprovalId(approval),
            choice=choice,
            reason=fields.get("reason", "").strip()[:MOST_REASON],
        )
        envelope = Envelope(
            address=self._context.chat,
            sender=Sender(id=self._context.chat.chat, verified=True, display=OPERATOR),
            dedup=(f"console/{self._context.ids.token()}",),
            body=pressed,
        )
        admission = await self._context.admit(envelope)
        if isinstance(admission, Answered):
            return admission.text
        return "nobody asks this any more"

    async def revoke(self, fields: Fields) -> str:
        """End a grant.

        Raises:
            ZeroclawError: It could not be stored.
        """
        grant = _word(fields.get("revoke", ""))
        if not grant:
            return UNREADABLE
        return (await self._context.grants({"words": f"revoke {grant}"})).text

    async def decide(self, fields: Fields) -> str:
        """Let a person in, refuse them, or revoke them.

        Raises:
            ZeroclawError: It could not be stored.
        """
        do, who = fields.get("do", ""), fields.get("who", "").strip()
        if do not in DOINGS or not who:
            return UNREADABLE
        return (await self._context.pair({"words": f"{do} {who}"})).text


def _word(text: str) -> str:
    """Return a text that is one word, empty for any other."""
    words = text.split()
    return words[0] if len(words) == 1 else ""
