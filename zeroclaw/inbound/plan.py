"""What one admitted event will do, decided before anything is written.

Ingress commits a plan's writes together with the event's claim, and only then announces it:
commit, then announce.
"""

from zeroclaw.envelope import (
    Accepted,
    Admission,
    Answered,
    Command,
    ConversationId,
)
from zeroclaw.inbound.commands.halt import Halt
from zeroclaw.store import Write
from zeroclaw.turn.inbox import Item
from zeroclaw.value import Value


class Plan(Value):
    """The effects of one event.

    Attributes:
        conversation: The scope of the writes; None for the daemon's own.
        writes: Committed together with the claim.
        here: The conversation that a command was said in, where that is not the scope.
        piece: What waits now of a message whose rest may still come, or of its rest.
        toast: May be shown to the sender alone; it may be lost.
        reply_wanted: The toast asks for a reason.
        wake: Conversations with something new in their inbox.
        idle: All that it does is reply, so it counts against how fast its sender may write.
        claimed: Its event is remembered, so that it is known when it is delivered again. One that
            is turned away without a word is turned away again.
        switched: The halt switch was moved.
        halt: Its new position, None for off.
        rest: What is left of a command once this is committed: a commit has one scope, and the
            rest belongs to another. A kill between the two leaves it undone, which runs nothing.
    """

    conversation: ConversationId | None
    writes: tuple[Write, ...] = ()
    here: ConversationId | None = None
    piece: Item | None = None
    toast: str = ""
    reply_wanted: bool = False
    wake: tuple[ConversationId, ...] = ()
    idle: bool = False
    claimed: bool = True
    switched: bool = False
    halt: Halt | None = None
    rest: Command | None = None

    @property
    def admission(self) -> Admission:
        """What the adapter is told once it is committed."""
        if not self.toast:
            return Accepted()
        return Answered(text=self.toast, reply_wanted=self.reply_wanted)
