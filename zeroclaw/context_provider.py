"""The contract of a Context Provider: the only way in to what the model is sent beside the history.

The runtime asks each provider, looks through what it returns for secrets, cuts it to its budget, and
frames it as data unless it is a rule.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Literal, Protocol

from zeroclaw.envelope import Address, ConversationId, Principal
from zeroclaw.value import Hidden, Value

Place = Literal["system", "turn"]


class ContextSpec(Value):
    """What a provider declares about itself.

    Attributes:
        name: `[a-z][a-z0-9_]*`, unique; what `/context` and the log call it.
        most_tokens: Of each of its texts, cut off beyond; a small window leaves less.
        priority: Where a request does not fit, the texts with the highest number go first; 0 stays,
            and whole.
        place: `system` for what is the same from turn to turn: it is asked for once a turn,
            once more when a skill was loaded, and stands first, where endpoints reuse the work that they did for an equal beginning. `turn` for
            what changes: it is asked for before each request, and stands with the newest message.
        is_required: Without it the model is not asked; else a failure leaves it out, and is logged.
        trusted: Strangers can't have written any of its texts. Else a turn that may hold one is
            treated as one that has read a page.
    """

    name: str
    most_tokens: int = 1_000
    priority: int = 1
    place: Place = "system"
    is_required: bool = False
    trusted: bool = False


class ContextRequest(Value):
    """What a provider is told of the request that is being made.

    Attributes:
        conversation: Whose history goes along.
        principal: Whose turn it is.
        address: Where it is answered. Unless it is `direct`, more people than the principal read
            what the model says.
        now: The time; aware.
        has_tools: Tools are sent along.
        notes: The numbers of the notes that were chosen for the turn.
        skills: The names of those that the conversation has loaded, in order.
        window: Of the model in tokens, None where nobody knows.
    """

    conversation: ConversationId
    principal: Principal
    address: Address
    now: datetime
    has_tools: bool = False
    notes: tuple[int, ...] = ()
    skills: tuple[str, ...] = ()
    window: int | None = None


class ContextText(Value):
    """One text for the model.

    Attributes:
        text: As it is; empty for nothing.
        name: Another name than the provider's, such as a file's; empty for none.
        title: What the model is told that it is, on a line above it; empty for nothing.
        is_data: It is shown as data that gives the model no instructions. False for rules, which no
            stranger may have written.
        untrusted: Strangers may have written it, though the provider is trusted.
    """

    text: Hidden[str]
    name: str = ""
    title: str = ""
    is_data: bool = True
    untrusted: bool = False


class ContextProvider(Protocol):
    """Adds texts to requests. Safe for concurrent calls."""

    @property
    def spec(self) -> ContextSpec:
        """The declaration; constant."""
        ...

    async def texts(self, request: ContextRequest) -> Sequence[ContextText]:
        """Return what goes along, in its order; empty for nothing.

        Called under a time-out that the caller sets. Whatever is raised counts as a failure.
        """
        ...
