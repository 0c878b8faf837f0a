"""The contract of a context provider, which adds text besides the history to model requests.

The runtime asks each provider for its texts, drops those that contain secrets, cuts them to their
budget, and frames them as data unless they are rules.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Literal, Protocol

from zeroclaw.envelope import Address, ConversationId, Principal
from zeroclaw.value import Hidden, Value

Place = Literal["system", "turn"]


class ContextSpec(Value):
    """The declaration of a provider.

    Attributes:
        name: `[a-z][a-z0-9_]*`, unique; used by `/context` and in the log.
        max_tokens: Limit for each of its texts; the rest is cut off. A small window lowers the
            limit.
        priority: When a request is too large, texts with the highest number are dropped first.
            Texts with 0 are never dropped and never cut.
        place: `system` for text that stays the same from turn to turn. The runtime asks for it once
            a turn (and again after a skill was loaded) and puts it first, where endpoints can reuse
            a cached prefix. `turn` for text that changes: the runtime asks for it before each
            request and puts it next to the newest message.
        is_required: If this provider fails, the model is not called. Otherwise its text is left out
            and the failure logged.
        trusted: No stranger can have written any of its texts. Otherwise a turn that may contain
            one is treated like a turn that has read a web page.
    """

    name: str
    max_tokens: int = 1_000
    priority: int = 1
    place: Place = "system"
    is_required: bool = False
    trusted: bool = False


class ContextRequest(Value):
    """The facts about a model request in preparation.

    Attributes:
        conversation: The conversation whose history is sent.
        principal: The turn's principal.
        address: The chat of the answer. Unless it is `direct`, people other than the principal
            read the answer.
        now: The current time; aware.
        has_tools: The request includes tools.
        notes: The numbers of the notes chosen for this turn.
        skills: The names of the skills that the conversation has loaded, in order.
        window: The model's context window in tokens, None if unknown.
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
        text: The text itself; empty for none.
        name: A name other than the provider's, such as a file's; empty to use the provider's.
        title: A heading for the model; empty for none.
        is_data: Framed as data that gives the model no instructions. False for rules, which no
            stranger may have written.
        untrusted: Strangers may have written this text, although the provider is trusted.
    """

    text: Hidden[str]
    name: str = ""
    title: str = ""
    is_data: bool = True
    untrusted: bool = False


class ContextProvider(Protocol):
    """Adds texts to model requests. Must be safe for concurrent calls."""

    @property
    def spec(self) -> ContextSpec:
        """The declaration; constant."""
        ...

    async def texts(self, request: ContextRequest) -> Sequence[ContextText]:
        """Return the texts to add, in order; empty for none.

        The caller sets a time-out. Any exception counts as a failure.
        """
        ...
