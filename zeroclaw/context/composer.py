"""Compose the requests of a turn: gather the context, and assemble it with what was said.

The session keeps what its requests have taught; how the model counts is shared by all sessions.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from operator import attrgetter
from typing import TypeVar

from zeroclaw.channel import Log
from zeroclaw.clock import Clock
from zeroclaw.config.model import AttachmentSettings, CurrentConfig
from zeroclaw.context import tokens
from zeroclaw.context.assembly import (
    Assembled,
    PromptPart,
    Scene,
    Spoken,
    answer_tokens,
    assemble,
    laid_out,
    reserve_of,
    shares,
)
from zeroclaw.context.compaction import Breaker, Question, is_heavy, question_messages
from zeroclaw.context.history import files_of, with_file_parts
from zeroclaw.context.model import Model, complete, estimated_input
from zeroclaw.context.offers import Loaded, Offers
from zeroclaw.context.providers import ContextProviders, Count, Gathered
from zeroclaw.context.tokens import Learned, Weighed
from zeroclaw.context_provider import ContextRequest, Place
from zeroclaw.envelope import Address, ConversationId, Principal, TurnId
from zeroclaw.errors import ContextMissing
from zeroclaw.events import ContextLeftOut, Event, Publish
from zeroclaw.foreign import Raised, call
from zeroclaw.host.executors import FairShare
from zeroclaw.message import (
    NO_USAGE,
    AssistantMessage,
    Message,
    SystemMessage,
    ToolDefinition,
    Usage,
)
from zeroclaw.provider import Counting, ModelRequest, Written
from zeroclaw.value import Struct, Value, field, replace

T = TypeVar("T")
_CONTENT = attrgetter("content")
MANY_MESSAGES, MUCH_CHARS = 512, 100_000
"""Above either limit, work on the messages takes milliseconds, and leaves the event loop."""


class RequestRecord(Struct):
    """What is known of a conversation's requests, while its session is open.

    Attributes:
        weighed: The sizes from the newest request.
        is_cut: The person was told that a request leaves something out.
        breaker: Whether older messages are summarised.
        kept: Written by providers, see `ModelRequest.kept`.
    """

    weighed: Weighed = field(default_factory=Weighed)
    is_cut: bool = False
    breaker: Breaker = field(default_factory=Breaker)
    kept: dict[object, Written] = field(default_factory=dict[object, Written])


class Filled(Value):
    """What fills the window in a conversation, by estimate.

    Attributes:
        shares: Tokens by the name of each part of a request.
        tokens: The tokens of the whole request.
        window: The model's window, None where it is not known.
        reserve: The tokens reserved for the answer.
    """

    shares: Mapping[str, int]
    tokens: int
    window: int | None
    reserve: int


class RequestOwner(Value):
    """The conversation, person and chat of a request; they decide what may be offered in it."""

    conversation: ConversationId
    principal: Principal
    address: Address


class RequestSources(Value):
    """What the daemon's requests are made of, apart from what was said.

    Attributes:
        offers: The tools and skills, and to whom they may be offered.
        providers: The Context Providers.
        files: How many files a request shows.
        reader: The tool that reads a result again, empty for none.
        settings: When and how older messages are summarised.
        share: Runs work on long histories.
    """

    model: Model
    offers: Offers
    providers: ContextProviders
    files: AttachmentSettings
    reader: str
    settings: CurrentConfig
    clock: Clock
    publish: Publish
    log: Log
    share: FairShare

    @property
    def count(self) -> Count | None:
        """Counts with the model's own tokenizer, as `Counting.count` does; None if there is none."""
        provider = self.model.provider
        if not provider.facts.counted_by or not isinstance(provider, Counting):
            return None

        async def count(texts: Sequence[str]) -> tuple[int, ...] | None:
            sizes = await call(lambda: provider.count(texts))
            if sizes is None or isinstance(sizes, Raised) or len(sizes) != len(texts):
                return None
            return sizes

        return count

    async def run_off_loop_if_large(
        self, here: ConversationId, messages: Sequence[Message], work: Callable[[], T]
    ) -> T:
        """Run work on each of some messages; in a thread if they are many, or long (P9)."""
        # No Python loop: a turn checks this about six times over all that was said.
        is_much = (
            len(messages) > MANY_MESSAGES or sum(map(len, map(_CONTENT, messages))) > MUCH_CHARS
        )
        return await self.share.run(here, work) if is_much else work()


def _uncounted(scene: Scene) -> tuple[tuple[Message, ...], tuple[str, ...]]:
    parts = (scene.summary, *(one.text for one in scene.parts))
    messages = (*laid_out(scene).messages, *(SystemMessage(content=one) for one in parts if one))
    return messages, tokens.uncounted(scene.known, messages, scene.tools)


class Composer(Struct, eq=False):
    """Composes the requests of one turn.

    Attributes:
        sources: What requests are made of.
        record: What is known of the conversation's earlier requests.
        whose: The conversation, person and chat.
        turn: The turn's id; None if nothing is sent, and then no failure is reported.
        correlation: The turn's correlation id.
        untrusted: The names of the texts that strangers may have written, of all its requests.
    """

    sources: RequestSources
    record: RequestRecord
    whose: RequestOwner
    turn: TurnId | None = None
    correlation: str = ""
    untrusted: tuple[str, ...] = ()
    _standing: tuple[tuple[str, ...], Gathered] | None = None
    _tools: tuple[Loaded, tuple[ToolDefinition, ...]] | None = None
    _sent: Assembled | None = None
    _uncharged: Usage = NO_USAGE

    @property
    def learned(self) -> Learned:
        """How the model counts, as far as it is known."""
        return self.sources.model.record.learned

    async def request(self, spoken: Spoken, notes: tuple[int, ...]) -> tuple[ModelRequest, bool]:
        """Return the next request, and whether something was left out to make it fit.

        Args:
            spoken: What was said in the conversation so far.
            notes: The numbers of the notes to include.

        Raises:
            ContextMissing: A required provider failed, so the model is not asked.
        """
        skills = spoken.loaded.skills
        standing = await self.standing(skills)
        passing = await self._gathered("turn", skills, notes)
        for one in (*standing.left_out, *passing.left_out):
            if one.is_required:
                raise ContextMissing(one.why, name=one.name)
        names = (*self.untrusted, *standing.untrusted, *passing.untrusted)
        self.untrusted = tuple(dict.fromkeys(names))
        scene = await self._scene(spoken, (*standing.parts, *passing.parts))
        made = await self._assembled(scene)
        self._sent = made
        self._uncharged = Usage(input_tokens=made.tokens)
        request = ModelRequest(
            messages=made.messages,
            tools=scene.tools,
            max_output_tokens=answer_tokens(scene, made),
            correlation=self.correlation,
            kept=self.record.kept,
        )
        return request, made.is_cut

    def learn_from_answer(self, usage: Usage) -> None:
        """Learn from the usage of the answered request."""
        if (sent := self._sent) is None:
            return
        self.record.weighed, self.sources.model.record.learned = tokens.report(
            sent.weighed, self.learned, sent.messages, sent.tools_tokens, usage.input_tokens
        )

    def take_uncharged_usage(self) -> Usage:
        """Return the usage that the turn has not been charged yet, and reset it.

        For a request under way it is an estimate of its input, on the high side.
        """
        untold, self._uncharged = self._uncharged, NO_USAGE
        return untold

    async def expected(self, spoken: Spoken) -> Usage:
        """Return an estimate of the next request's usage, without the parts that only it has."""
        made = await self._assembled(await self.scene(spoken))
        return Usage(input_tokens=made.tokens)

    async def run_off_loop_if_large(self, messages: Sequence[Message], work: Callable[[], T]) -> T:
        """Run work on each of some messages; see `RequestSources.run_off_loop_if_large`."""
        return await self.sources.run_off_loop_if_large(self.whose.conversation, messages, work)

    async def _assembled(self, scene: Scene) -> Assembled:
        scene = await self._counted(scene)
        made = await self.run_off_loop_if_large(scene.messages, partial(assemble, scene))
        self.record.weighed = made.weighed
        return made

    async def filled(self, spoken: Spoken) -> Filled:
        """Return what the next request of the conversation would contain."""
        scene = await self._counted(await self.scene(spoken))
        reserve = reserve_of(scene.window) if scene.window else 0

        def look() -> Filled:
            made = assemble(scene)
            return Filled(
                shares=shares(scene, made), tokens=made.tokens, window=scene.window, reserve=reserve
            )

        return await self.run_off_loop_if_large(scene.messages, look)

    async def _counted(self, scene: Scene) -> Scene:
        """Count the new parts of a request with the model's own tokenizer, if there is one."""
        if (count := self.sources.count) is None:
            return scene
        messages, texts = await self.run_off_loop_if_large(
            scene.messages, partial(_uncounted, scene)
        )
        sizes = await count(texts) if texts else ()
        if sizes is None:
            return scene
        found = dict(zip(texts, sizes, strict=True))
        self.record.weighed = await self.run_off_loop_if_large(
            messages, lambda: tokens.counted(scene.known, messages, scene.tools, found)
        )
        return replace(scene, known=self.record.weighed)

    def learn_from_overflow(self, window: int | None) -> None:
        """Learn that the request was too large; `window` if the endpoint named it."""
        if self._sent is not None:
            record = self.sources.model.record
            record.learned = tokens.overflowed(record.learned, self._sent.tokens, window)

    def summarises(self) -> bool:
        """Whether older messages are summarised now without a person asking for it."""
        now = self.sources.clock.monotonic()
        return self.sources.settings.config.compaction.enabled and self.record.breaker.lets(now)

    async def is_heavy(self, spoken: Spoken) -> bool:
        """Whether older messages are to be summarised before the next request (K11)."""
        if not self.summarises():
            return False
        scene = await self._counted(await self.scene(spoken))
        threshold = self.sources.settings.config.compaction.threshold
        heavy = partial(is_heavy, scene, threshold=threshold)
        return await self.run_off_loop_if_large(scene.messages, heavy)

    async def ask(
        self, question: Question, gone: Sequence[Message], most_tokens: int
    ) -> AssistantMessage | Raised:
        """Ask about messages without showing the answer to people; see `context.model.complete`.

        Args:
            question: The question.
            gone: The messages.
            most_tokens: The limit of the request, which is cut to fit.
        """
        messages = await self.run_off_loop_if_large(
            gone, lambda: question_messages(question, gone, most_tokens)
        )
        request = ModelRequest(
            messages=messages,
            correlation=self.correlation,
            model=self.sources.settings.config.compaction.model,
        )
        before = self._uncharged
        self._uncharged += estimated_input(request)
        answer, usage = await complete(self.sources.model, request)
        self._uncharged = before + usage
        return answer

    async def scene(self, spoken: Spoken) -> Scene:
        """Return what each request of the turn is made of, without the parts that only one has."""
        return await self._scene(spoken, (await self.standing(spoken.loaded.skills)).parts)

    async def standing(self, skills: tuple[str, ...]) -> Gathered:
        """Return what providers add to each request; they are asked once, and again for a new skill."""
        if self._standing is None or self._standing[0] != skills:
            self._standing = (skills, await self._gathered("system", skills))
        return self._standing[1]

    async def _scene(self, spoken: Spoken, parts: tuple[PromptPart, ...]) -> Scene:
        sources, messages = self.sources, spoken.messages
        facts, files = sources.model.provider.facts, sources.files
        if files_of(messages):  # almost none has
            shown = partial(
                with_file_parts,
                messages,
                takes=facts.takes,
                most_files=files.shown_files,
                most_bytes=files.shown_bytes,
            )
            messages = await self.run_off_loop_if_large(messages, shown)
        return Scene(
            parts=parts,
            messages=messages,
            summary=spoken.summary,
            start=spoken.start,
            tools=self._definitions(spoken.loaded),
            window=facts.context_tokens,
            max_output_tokens=sources.model.max_output_tokens,
            reader=sources.reader if facts.calls_tools else "",
            known=self.record.weighed,
            learned=self.learned,
        )

    def _definitions(self, loaded: Loaded) -> tuple[ToolDefinition, ...]:
        """Return the tools to send; the same objects as long as nothing else is loaded."""
        if not self.sources.model.provider.facts.calls_tools:
            return ()
        if self._tools is None or self._tools[0] != loaded:
            whose = self.whose
            made = self.sources.offers.definitions(
                whose.principal, whose.address, loaded, whose.conversation
            )
            self._tools = (loaded, made)
        return self._tools[1]

    async def _gathered(
        self, place: Place, skills: tuple[str, ...], notes: tuple[int, ...] = ()
    ) -> Gathered:
        """Ask the providers of a place, and report each that should have added a text but failed.

        Args:
            place: The providers' place.
            skills: The names of the skills that the conversation has loaded.
            notes: The numbers of the notes to include.
        """
        sources, whose = self.sources, self.whose
        facts = sources.model.provider.facts
        asked = ContextRequest(
            conversation=whose.conversation,
            principal=whose.principal,
            address=whose.address,
            now=sources.clock.now(),
            has_tools=facts.calls_tools and sources.offers.has_any,
            notes=notes,
            skills=skills,
            window=facts.context_tokens,
        )
        gathered = await sources.providers.gather(asked, place, facts.context_tokens, sources.count)
        if (turn := self.turn) is None:
            return gathered
        here, correlation = whose.conversation, self.correlation
        for one in gathered.left_out:
            fields = {"turn": turn, "conversation": here, "name": one.name, "why": one.why}
            sources.log("context_left_out", **fields, level="warning")
            what = ContextLeftOut(name=one.name, why=one.why)
            sources.publish(Event(conversation=here, turn=turn, correlation=correlation, what=what))
        return gathered
