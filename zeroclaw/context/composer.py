"""Compose the requests of a turn: gather the context, and assemble it with the transcript.

The session keeps the sizes of its messages; all sessions share the calibration of the model.
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
    RequestInputs,
    Transcript,
    answer_tokens,
    assemble,
    lay_out,
    reserve_of,
    shares,
)
from zeroclaw.context.compaction import Breaker, Question, is_heavy, question_messages
from zeroclaw.context.history import files_of, with_file_parts
from zeroclaw.context.model import Model, complete, estimated_input
from zeroclaw.context.offers import Loaded, Offers
from zeroclaw.context.providers import ContextProviders, Count, Gathered
from zeroclaw.context.tokens import Scale, TokenCache
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
    """The record of a conversation's requests, while its session is open.

    Attributes:
        cache: The sizes from the newest request.
        is_cut: The person got a note that a request leaves messages out.
        breaker: Whether older messages are summarised.
        kept: Written by providers, see `ModelRequest.kept`.
    """

    cache: TokenCache = field(default_factory=TokenCache)
    is_cut: bool = False
    breaker: Breaker = field(default_factory=Breaker)
    kept: dict[object, Written] = field(default_factory=dict[object, Written])


class WindowUsage(Value):
    """The use of the window in a conversation, by estimate.

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
    """The conversation, person and chat of a request; they decide which tools it may offer."""

    conversation: ConversationId
    principal: Principal
    address: Address


class RequestSources(Value):
    """The sources of the daemon's requests, apart from the transcripts.

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

    async def run_sized(
        self, conversation: ConversationId, messages: Sequence[Message], work: Callable[[], T]
    ) -> T:
        """Run work on each of some messages; in a thread if they are many, or long (P9)."""
        # No Python loop: a turn checks this about six times over all messages.
        is_large = (
            len(messages) > MANY_MESSAGES or sum(map(len, map(_CONTENT, messages))) > MUCH_CHARS
        )
        return await self.share.run(conversation, work) if is_large else work()


def _uncounted(inputs: RequestInputs) -> tuple[tuple[Message, ...], tuple[str, ...]]:
    parts = (inputs.summary, *(part.text for part in inputs.parts))
    messages = (*lay_out(inputs).messages, *(SystemMessage(content=text) for text in parts if text))
    return messages, tokens.uncounted_texts(inputs.cache, messages, inputs.tools)


class Composer(Struct, eq=False):
    """Composes the requests of one turn.

    Attributes:
        sources: The sources of requests.
        record: The record of the conversation's earlier requests.
        owner: The conversation, person and chat.
        turn: The turn's id; None if no request is sent, and then no failure is reported.
        correlation: The turn's correlation id.
        untrusted: The names of the texts that strangers may have written, of all its requests.
    """

    sources: RequestSources
    record: RequestRecord
    owner: RequestOwner
    turn: TurnId | None = None
    correlation: str = ""
    untrusted: tuple[str, ...] = ()
    _system: tuple[tuple[str, ...], Gathered] | None = None
    _tools: tuple[Loaded, tuple[ToolDefinition, ...]] | None = None
    _sent: Assembled | None = None
    _uncharged: Usage = NO_USAGE

    @property
    def scale(self) -> Scale:
        """The scale of the model."""
        return self.sources.model.record.scale

    async def request(
        self, transcript: Transcript, notes: tuple[int, ...]
    ) -> tuple[ModelRequest, bool]:
        """Return the next request, and whether it leaves messages out to fit.

        Args:
            transcript: The conversation so far.
            notes: The numbers of the notes to include.

        Raises:
            ContextMissing: A required provider failed, so the model is not asked.
        """
        skills = transcript.loaded.skills
        system = await self.system_texts(skills)
        turn = await self._gather("turn", skills, notes)
        for omission in (*system.left_out, *turn.left_out):
            if omission.is_required:
                raise ContextMissing(omission.reason, name=omission.name)
        names = (*self.untrusted, *system.untrusted, *turn.untrusted)
        self.untrusted = tuple(dict.fromkeys(names))
        inputs = await self._inputs(transcript, (*system.parts, *turn.parts))
        assembled = await self._assemble(inputs)
        self._sent = assembled
        self._uncharged = Usage(input_tokens=assembled.tokens)
        request = ModelRequest(
            messages=assembled.messages,
            tools=inputs.tools,
            max_output_tokens=answer_tokens(inputs, assembled),
            correlation=self.correlation,
            kept=self.record.kept,
        )
        return request, assembled.is_cut

    def learn_from_answer(self, usage: Usage) -> None:
        """Learn from the usage of the answered request."""
        if (sent := self._sent) is not None:
            self.record.cache, self.sources.model.record.scale = tokens.report(
                sent.cache, self.scale, usage.input_tokens
            )

    def take_uncharged_usage(self) -> Usage:
        """Return the usage that the turn has not been charged yet, and reset it.

        For a request under way it is an estimate of its input, on the high side.
        """
        usage, self._uncharged = self._uncharged, NO_USAGE
        return usage

    async def expected(self, transcript: Transcript) -> Usage:
        """Return an estimate of the next request's usage, without the parts that only it has."""
        assembled = await self._assemble(await self.inputs(transcript))
        return Usage(input_tokens=assembled.tokens)

    async def run_sized(self, messages: Sequence[Message], work: Callable[[], T]) -> T:
        """Run work on each of some messages; see `RequestSources.run_sized`."""
        return await self.sources.run_sized(self.owner.conversation, messages, work)

    async def _assemble(self, inputs: RequestInputs) -> Assembled:
        inputs = await self._count(inputs)
        assembled = await self.run_sized(inputs.messages, partial(assemble, inputs))
        self.record.cache = assembled.cache
        return assembled

    async def window_usage(self, transcript: Transcript) -> WindowUsage:
        """Return the use of the window by the next request of the conversation."""
        inputs = await self._count(await self.inputs(transcript))
        reserve = reserve_of(inputs.window) if inputs.window else 0

        def measure() -> WindowUsage:
            assembled = assemble(inputs)
            used, window = assembled.tokens, inputs.window
            parts = shares(inputs, assembled)
            return WindowUsage(shares=parts, tokens=used, window=window, reserve=reserve)

        return await self.run_sized(inputs.messages, measure)

    async def _count(self, inputs: RequestInputs) -> RequestInputs:
        """Count the new parts of a request with the model's own tokenizer, if there is one."""
        if (count := self.sources.count) is None:
            return inputs
        messages, texts = await self.run_sized(inputs.messages, partial(_uncounted, inputs))
        sizes = await count(texts) if texts else ()
        if sizes is None:
            return inputs
        counts = dict(zip(texts, sizes, strict=True))
        self.record.cache = await self.run_sized(
            messages, lambda: tokens.with_counts(inputs.cache, messages, inputs.tools, counts)
        )
        return replace(inputs, cache=self.record.cache)

    def learn_from_overflow(self, window: int | None) -> None:
        """Learn that the request was too large; `window` if the endpoint named it."""
        if self._sent is not None:
            record = self.sources.model.record
            record.scale = tokens.report_overflow(record.scale, self._sent.tokens, window)

    def summarises(self) -> bool:
        """Whether older messages are summarised now without a person asking for it."""
        now = self.sources.clock.monotonic()
        return self.sources.settings.config.compaction.enabled and self.record.breaker.allows(now)

    async def is_heavy(self, transcript: Transcript) -> bool:
        """Whether older messages are to be summarised before the next request (K11)."""
        if not self.summarises():
            return False
        inputs = await self._count(await self.inputs(transcript))
        threshold = self.sources.settings.config.compaction.threshold
        check = partial(is_heavy, inputs, threshold=threshold)
        return await self.run_sized(inputs.messages, check)

    async def ask(
        self, question: Question, subject: Sequence[Message], max_tokens: int
    ) -> AssistantMessage | Raised:
        """Ask about messages without showing the answer to people; see `context.model.complete`.

        Args:
            question: The question.
            subject: The messages that it is about.
            max_tokens: The limit of the request, which is cut to fit.
        """
        messages = await self.run_sized(
            subject, lambda: question_messages(question, subject, max_tokens)
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

    async def inputs(self, transcript: Transcript) -> RequestInputs:
        """Return the inputs of each request of the turn, without the parts that only one has."""
        system = await self.system_texts(transcript.loaded.skills)
        return await self._inputs(transcript, system.parts)

    async def system_texts(self, skills: tuple[str, ...]) -> Gathered:
        """Return the texts that providers add to each request; ask them again for a new skill only."""
        if self._system is None or self._system[0] != skills:
            self._system = (skills, await self._gather("system", skills))
        return self._system[1]

    async def _inputs(self, transcript: Transcript, parts: tuple[PromptPart, ...]) -> RequestInputs:
        sources, messages = self.sources, transcript.messages
        facts, files = sources.model.provider.facts, sources.files
        if files_of(messages):  # almost none has
            with_files = partial(
                with_file_parts,
                messages,
                takes=facts.takes,
                max_files=files.shown_files,
                max_bytes=files.shown_bytes,
            )
            messages = await self.run_sized(messages, with_files)
        return RequestInputs(
            parts=parts,
            messages=messages,
            summary=transcript.summary,
            start=transcript.start,
            tools=self._definitions(transcript.loaded),
            window=facts.context_tokens,
            max_output_tokens=sources.model.max_output_tokens,
            reader=sources.reader if facts.calls_tools else "",
            cache=self.record.cache,
            scale=self.scale,
        )

    def _definitions(self, loaded: Loaded) -> tuple[ToolDefinition, ...]:
        """Return the tools to send; the same objects as long as nothing else is loaded."""
        if not self.sources.model.provider.facts.calls_tools:
            return ()
        if self._tools is None or self._tools[0] != loaded:
            owner = self.owner
            definitions = self.sources.offers.definitions(
                owner.principal, owner.address, loaded, owner.conversation
            )
            self._tools = (loaded, definitions)
        return self._tools[1]

    async def _gather(
        self, place: Place, skills: tuple[str, ...], notes: tuple[int, ...] = ()
    ) -> Gathered:
        """Ask the providers of a place, and report each that should have added a text but failed.

        Args:
            place: The providers' place.
            skills: The names of the skills that the conversation has loaded.
            notes: The numbers of the notes to include.
        """
        sources, owner = self.sources, self.owner
        facts = sources.model.provider.facts
        request = ContextRequest(
            conversation=owner.conversation,
            principal=owner.principal,
            address=owner.address,
            now=sources.clock.now(),
            has_tools=facts.calls_tools and sources.offers.has_any,
            notes=notes,
            skills=skills,
            window=facts.context_tokens,
        )
        gathered = await sources.providers.gather(request, place, sources.count)
        if (turn := self.turn) is None:
            return gathered
        conversation, correlation = owner.conversation, self.correlation
        for left in gathered.left_out:
            ids = {"turn": turn, "conversation": conversation}
            sources.log(
                "context_left_out", **ids, name=left.name, reason=left.reason, level="warning"
            )
            what = ContextLeftOut(name=left.name, why=left.reason)
            event = Event(conversation=conversation, turn=turn, correlation=correlation, what=what)
            sources.publish(event)
        return gathered
