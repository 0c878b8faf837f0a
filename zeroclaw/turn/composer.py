"""Composes the requests of one conversation's turns: what the rooms know, handed to `context/`.

The session remembers what its newest request took; how the model counts is known to all of them.
"""

from collections.abc import Mapping, Sequence

from zeroclaw.context import tokens
from zeroclaw.context.assembly import Assembled, Part, Scene, assemble, reserve_of, shares
from zeroclaw.context.compaction import is_heavy
from zeroclaw.context.history import with_files
from zeroclaw.context.providers import Gathered
from zeroclaw.context.tokens import Learned, Weighed
from zeroclaw.context_provider import ContextRequest, Place
from zeroclaw.envelope import Address, ConversationId, Principal
from zeroclaw.errors import ContextMissing
from zeroclaw.events import ContextLeftOut
from zeroclaw.gate.receipt import detach
from zeroclaw.message import AssistantMessage, Message, ToolDefinition, Usage, UserMessage
from zeroclaw.provider import ModelRequest
from zeroclaw.turn.context import TurnServices
from zeroclaw.turn.entries import TurnOpened
from zeroclaw.turn.journal import History
from zeroclaw.turn.session import ConversationSession, read_history
from zeroclaw.value import Value


def turn_start(history: History, messages: Sequence[Message]) -> int:
    """Return where the message stands that the newest turn began with."""
    opened = None if history.turn is None else history.turn.opened.user
    for at in range(len(messages) - 1, -1, -1):
        one = messages[at]
        if one == opened or (opened is None and isinstance(one, UserMessage) and not one.note):
            return at
    return 0


class Composer:
    """Composes the requests of one turn."""

    def __init__(
        self,
        services: TurnServices,
        session: ConversationSession,
        opened: TurnOpened,
        address: Address,
    ) -> None:
        """Compose from this session's history."""
        self._services, self._session = services, session
        self._opened, self._address = opened, address
        self._sent: Assembled | None = None

    @property
    def learned(self) -> Learned:
        """How the model counts, as far as it is known."""
        return self._services.model.record.learned

    async def request(self) -> tuple[ModelRequest, bool]:
        """Return the next request, and whether something was left out for lack of room.

        Raises:
            ContextMissing: A provider failed without which the model is not asked.
        """
        standing, passing = await self.standing(), await self._gathered("turn")
        for one in (*standing.left_out, *passing.left_out):
            if one.is_required:
                raise ContextMissing(one.why, name=one.name)
        scene = self._scene((*standing.parts, *passing.parts))
        made = assemble(scene, self._session.weighed, self.learned, detach)
        self._sent, self._session.weighed = made, made.weighed
        request = ModelRequest(
            messages=made.messages,
            tools=scene.tools,
            max_output_tokens=self._services.model.max_output_tokens,
            correlation=self._opened.correlation,
        )
        return request, made.is_cut

    def answered(self, usage: Usage) -> None:
        """Learn what the request took that was answered."""
        if (sent := self._sent) is None:
            return
        self._session.weighed, self._services.model.record.learned = tokens.report(
            sent.weighed, self.learned, sent.messages, sent.tools_tokens, usage.input_tokens
        )

    def estimated(self, answer: AssistantMessage) -> Usage:
        """Return what an answer took of which the endpoint reported nothing; rather too much."""
        sent = 0 if self._sent is None else self._sent.tokens
        return Usage(input_tokens=sent, output_tokens=tokens.of_message(answer))

    def overflowed(self, window: int | None) -> None:
        """Learn that the request was too large, for a window that the endpoint may have named."""
        if self._sent is not None:
            record = self._services.model.record
            record.learned = tokens.overflowed(record.learned, self._sent.tokens, window)

    async def is_heavy(self, *more: Message) -> bool:
        """Tell whether older messages are to be summarised before the next request (K11).

        Args:
            more: Messages that are about to join the history.
        """
        compaction = self._services.compaction()
        if not compaction.enabled or not self._session.breaker.lets(
            self._services.clock.monotonic()
        ):
            return False
        scene = await self.scene(*more)
        known, threshold = self._session.weighed, compaction.threshold
        return is_heavy(scene, known, self.learned, detach, threshold=threshold)

    async def scene(self, *more: Message) -> Scene:
        """Return what each request of the turn is made of, but for what goes with it alone.

        Args:
            more: Messages that are about to join the history.
        """
        return self._scene((await self.standing()).parts, more)

    async def standing(self) -> Gathered:
        """Return what providers add to each request; they are asked once, and for a new skill."""
        whose = (self._opened.correlation, *self._session.history.loaded.skills)
        if (known := self._session.standing) is None or known[0] != whose:
            known = (whose, await self._gathered("system"))
            self._session.standing = known
        return known[1]

    def _scene(self, parts: tuple[Part, ...], more: tuple[Message, ...] = ()) -> Scene:
        whose, history = self._opened.principal, self._session.history
        here = self._session.conversation
        return scene_of(self._services, here, history, whose, self._address, parts=parts, more=more)

    async def _gathered(self, place: Place) -> Gathered:
        """Ask the providers of a place, and tell which of them added nothing though they should."""
        services, opened = self._services, self._opened
        gathered = await gathered_for(
            services,
            self._session.conversation,
            opened.principal,
            self._address,
            place,
            notes=opened.notes,
            skills=self._session.history.loaded.skills,
        )
        for one in gathered.left_out:
            services.log("context_left_out", name=one.name, why=one.why, level="warning")
            services.publish(
                ContextLeftOut(
                    turn=opened.turn, correlation=opened.correlation, name=one.name, why=one.why
                )
            )
        return gathered


async def gathered_for(
    services: TurnServices,
    conversation: ConversationId,
    principal: Principal,
    address: Address,
    place: Place,
    *,
    notes: tuple[int, ...] = (),
    skills: tuple[str, ...] = (),
) -> Gathered:
    """Ask the Context Providers of one place about a request."""
    facts = services.model.provider.facts
    request = ContextRequest(
        conversation=conversation,
        principal=principal,
        address=address,
        now=services.clock.now(),
        has_tools=facts.calls_tools and services.offers.has_any,
        notes=notes,
        skills=skills,
        window=facts.context_tokens,
    )
    return await services.context.gather(request, place, facts.context_tokens)


def scene_of(
    services: TurnServices,
    conversation: ConversationId,
    history: History,
    principal: Principal,
    address: Address,
    *,
    parts: tuple[Part, ...],
    more: tuple[Message, ...] = (),
) -> Scene:
    """Return what the next request of a conversation is made of.

    Args:
        services: The daemon's.
        conversation: Which.
        history: Its own.
        principal: Whose turn it is.
        address: Where.
        parts: What the providers add.
        more: Messages that are about to join the history.
    """
    model = services.model
    facts = model.provider.facts
    tools: tuple[ToolDefinition, ...] = ()
    if facts.calls_tools:
        tools = services.offers.definitions(principal, address, history.loaded, conversation)
    messages = (*history.messages, *more)
    bounds = services.arrivals.settings
    return Scene(
        parts=parts,
        messages=with_files(
            messages,
            takes=facts.takes,
            most_files=bounds.shown_files,
            most_bytes=bounds.shown_bytes,
        ),
        summary=history.summary,
        start=turn_start(history, messages),
        tools=tools,
        window=facts.context_tokens,
        max_output_tokens=model.max_output_tokens,
        reader=services.results.reader if facts.calls_tools else "",
    )


class Filled(Value):
    """What fills the window in a conversation, by estimate.

    Attributes:
        shares: Tokens by the name of each part of a request.
        tokens: Of the whole request.
        window: Of the model, None where nobody knows.
        reserve: What is kept free for the answer.
    """

    shares: Mapping[str, int]
    tokens: int
    window: int | None
    reserve: int


async def filled(
    services: TurnServices, conversation: ConversationId, principal: Principal, address: Address
) -> Filled:
    """Look at what the next request of a conversation would hold."""
    history = await read_history(services.store, conversation)
    gathered = await gathered_for(
        services, conversation, principal, address, "system", skills=history.loaded.skills
    )
    scene = scene_of(services, conversation, history, principal, address, parts=gathered.parts)
    made = assemble(scene, Weighed(), services.model.record.learned, detach)
    reserve = reserve_of(scene.window, scene.max_output_tokens) if scene.window else 0
    return Filled(
        shares=shares(scene, made), tokens=made.tokens, window=scene.window, reserve=reserve
    )
