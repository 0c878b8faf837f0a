"""Composes the requests of one conversation's turns: what the rooms know, handed to `context/`.

The session remembers what its newest request took; how the model counts is known to all of them.
"""

from collections.abc import Sequence

from zeroclaw.context import tokens
from zeroclaw.context.assembly import Assembled, Part, Scene, assemble
from zeroclaw.context.history import with_files
from zeroclaw.context.prompt import system_prompt
from zeroclaw.context.tokens import Learned
from zeroclaw.envelope import Address, Principal
from zeroclaw.gate.receipt import detach
from zeroclaw.message import Message, ToolDefinition, Usage, UserMessage
from zeroclaw.provider import ModelRequest
from zeroclaw.turn.context import TurnServices
from zeroclaw.turn.journal import History
from zeroclaw.turn.session import ConversationSession


def turn_start(history: History, messages: Sequence[Message]) -> int:
    """Return where the message stands that the newest turn began with."""
    opened = None if history.turn is None else history.turn.opened.user
    for at in range(len(messages) - 1, -1, -1):
        one = messages[at]
        if one == opened or (opened is None and isinstance(one, UserMessage) and not one.note):
            return at
    return 0


class Composer:
    """Composes requests for one principal's turn."""

    def __init__(
        self,
        services: TurnServices,
        session: ConversationSession,
        principal: Principal,
        address: Address,
    ) -> None:
        """Compose from this session's history."""
        self._services, self._session = services, session
        self._principal, self._address = principal, address
        self._sent: Assembled | None = None

    @property
    def learned(self) -> Learned:
        """How the model counts, as far as it is known."""
        return self._services.model.record.learned

    def request(self, correlation: str, notes: str) -> tuple[ModelRequest, bool]:
        """Return the next request, and whether something was left out for lack of room.

        Args:
            correlation: Of the turn.
            notes: That go along with its message, empty for none.
        """
        scene = self.scene(notes)
        made = assemble(scene, self._session.weighed, self.learned, detach)
        self._sent, self._session.weighed = made, made.weighed
        request = ModelRequest(
            messages=made.messages,
            tools=scene.tools,
            max_output_tokens=self._services.model.max_output_tokens,
            correlation=correlation,
        )
        return request, made.is_cut

    def answered(self, usage: Usage) -> None:
        """Learn what the request took that was answered."""
        if (sent := self._sent) is None:
            return
        self._session.weighed, self._services.model.record.learned = tokens.report(
            sent.weighed, self.learned, sent.messages, sent.tools_tokens, usage.input_tokens
        )

    def overflowed(self) -> None:
        """Learn that the request was too large."""
        if self._sent is not None:
            record = self._services.model.record
            record.learned = tokens.overflowed(record.learned, self._sent.tokens)

    def scene(self, notes: str = "", more: tuple[Message, ...] = ()) -> Scene:
        """Return what the next request is made of; `more` joins the history."""
        services, history, model = self._services, self._session.history, self._services.model
        facts = model.provider.facts
        offered = services.tools.values() if facts.calls_tools else ()
        prompt = system_prompt(
            person=self._principal.display,
            channel=self._address.channel,
            today=services.clock.now().date(),
            has_tools=bool(offered),
            group=not self._address.direct,
        )
        messages = (*history.messages, *more)
        bounds = services.arrivals.settings
        return Scene(
            parts=(
                Part(name="prompt", text=prompt),
                Part(name="operator", text=model.prompt()),
                Part(name="notes", text=notes, priority=1, place="turn"),
            ),
            messages=with_files(
                messages,
                takes=facts.takes,
                most_files=bounds.shown_files,
                most_bytes=bounds.shown_bytes,
            ),
            summary=history.summary,
            start=turn_start(history, messages),
            tools=tuple(
                ToolDefinition(
                    name=tool.spec.name,
                    description=tool.spec.description,
                    parameters=dict(tool.spec.parameters),
                )
                for tool in offered
            ),
            window=facts.context_tokens,
            max_output_tokens=model.max_output_tokens,
            reader=services.results.reader if facts.calls_tools else "",
        )
