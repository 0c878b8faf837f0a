"""One request to the model: streamed, redacted, screened, and passed to the turn as it arrives.

    provider ─► redactor ─► the journal, and later requests
                    └─────► receipt screen ─► people

Nothing behind the redactor contains raw text (K16). Errors become events: each request is
answered by exactly one of `ResponseReceived`, `StreamCut`, `RequestFailed`, `ContextOverflowed`.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from typing import TypeGuard

from zeroclaw.context.model import Model, broken_off
from zeroclaw.envelope import is_off_the_record
from zeroclaw.errors import (
    ContextMissing,
    ContextOverflow,
    NeedsOperator,
    ProviderOverloaded,
    ProviderRejected,
    ProviderUnauthorized,
    ProviderUnreachable,
    StreamBroken,
)
from zeroclaw.foreign import Raised, call
from zeroclaw.gate import receipt_screen
from zeroclaw.gate.receipt_screen import Lookup, Screening
from zeroclaw.message import AssistantMessage, FinishReason, ToolCall, Usage
from zeroclaw.provider import (
    Finished,
    ModelRequest,
    ReasoningDelta,
    StreamEvent,
    TextDelta,
    ToolCallReady,
    UsageReported,
)
from zeroclaw.redact import Redaction
from zeroclaw.text import catalogue
from zeroclaw.text.language import ENGLISH
from zeroclaw.turn import signals
from zeroclaw.turn.context import TurnContext
from zeroclaw.value import Struct, Value, field, replace

Tell = Callable[[signals.RequestEvent], Awaitable[None]]


class _Answer(Struct):
    """The parts of one answer so far; lives as long as its stream.

    Attributes:
        number: The number of its request.
    """

    number: int
    redaction: Redaction = field(default_factory=Redaction)
    screening: Screening = field(default_factory=Screening)
    texts: list[str] = field(default_factory=list[str])
    shown: list[str] = field(default_factory=list[str])
    reasoning: list[str] = field(default_factory=list[str])
    details: list[str] = field(default_factory=list[str])
    calls: list[ToolCall] = field(default_factory=list[ToolCall])
    usage: Usage = field(default_factory=Usage)
    finish: FinishReason | None = None


AT_ONCE_CHARS = 2_048
"""Characters that are redacted in one step on the event loop, in about 2 ms."""
OFF_THE_RECORD = catalogue.MODEL_FAILED_OFF_THE_RECORD.to(ENGLISH)
"""Logged instead of a failure's reason, which may quote a conversation off the record."""


class ModelCall(Value):
    """Asks the model on behalf of one turn.

    Attributes:
        lookup: Returns what a receipt of this conversation proves; None for a false one.
        tell: Passes an event to the turn; may wait while the turn is busy.
    """

    turn: TurnContext
    lookup: Lookup
    tell: Tell

    @property
    def _model(self) -> Model:
        return self.turn.services.sources.model

    async def ask(self, number: int, request: Callable[[], Awaitable[ModelRequest]]) -> None:
        """Wait for a slot, compose the request, and stream its answer into the turn."""
        async with self._model.slots:
            try:
                model_request = await request()
            except ContextMissing as error:
                language = self.turn.language
                detail = catalogue.CONTEXT_FAILED.to(language, name=error.name, why=str(error))
                text = catalogue.CONTEXT_IS_MISSING.to(language)
                await self.tell(signals.RequestFailed(request=number, text=text, detail=detail))
                return
            await self._ask(number, model_request)

    async def _ask(self, number: int, request: ModelRequest) -> None:
        await self.tell(signals.RequestSent(request=number))
        answer = _Answer(number)
        outcome = await call(lambda: self._stream(request, answer))
        if request.files and not answer.texts and _is_rejected(outcome):
            # The model does not accept these files, whatever its facts say. An answer without them
            # is better than none until they are too old to be sent.
            reason = str(self._for_record(outcome).error)
            self.turn.log("files_refused", reason=reason, level="warning")
            paid, answer = answer.usage, _Answer(number)
            outcome = await call(lambda: self._stream(replace(request, files={}), answer))
            answer.usage = paid + answer.usage
        message = AssistantMessage(
            content="".join(answer.texts),
            tool_calls=tuple(answer.calls),
            reasoning="".join(answer.reasoning),
            reasoning_details=tuple(answer.details),
            finish_reason=answer.finish,
        )
        if isinstance(outcome, Raised):
            self._model.record.failed(self._for_record(outcome), self.turn.log)
            event, language = _failure(number, outcome, self.turn), self.turn.language
            is_private = is_off_the_record(self.turn.conversation)
            if is_private and isinstance(event, signals.RequestFailed):
                may_quote = not isinstance(outcome.error, ProviderOverloaded | ProviderUnauthorized)
                detail = catalogue.MODEL_FAILED_OFF_THE_RECORD.to(language) if may_quote else ""
                event = replace(event, detail=detail)
            if isinstance(event, signals.StreamCut | signals.RequestFailed):
                event = replace(event, usage=broken_off(outcome, answer.usage, message))
            await self.tell(event)
            return
        self._model.record.answered()
        await self.tell(
            signals.ResponseReceived(
                request=number, message=message, shown="".join(answer.shown), usage=answer.usage
            )
        )

    def _for_record(self, failure: Raised) -> Raised:
        """Return the failure as the log and operators read it.

        An endpoint's error may repeat the conversation, so off the record only the person reads it.
        """
        conversation = self.turn.conversation
        if not is_off_the_record(conversation) or isinstance(failure.error, ContextOverflow):
            return failure
        is_broken = isinstance(failure.error, StreamBroken)
        return Raised(error=(StreamBroken if is_broken else ProviderRejected)(OFF_THE_RECORD))

    async def _stream(self, request: ModelRequest, answer: _Answer) -> None:
        # Closed at once, so that stopping a turn ends its request to the model.
        async with aclosing(self._model.provider.stream(request)) as stream:
            async for event in stream:
                await self._take(answer, event)
        remainder = self._model.redactor.flush(answer.redaction)
        answer.redaction = Redaction()
        answer.texts.append(remainder)
        answer.screening, marked = receipt_screen.feed(answer.screening, remainder, self.lookup)
        marked += receipt_screen.flush(answer.screening, self.lookup)
        await self._show(answer, marked, is_last=True)

    async def _take(self, answer: _Answer, event: StreamEvent) -> None:
        match event:
            case TextDelta(text=text, is_last=is_last):
                await self._add(answer, text, is_last=is_last)
            case ReasoningDelta(text=text, details=details, takes_back=takes_back):
                if takes_back:
                    answer.redaction, answer.screening = Redaction(), Screening()
                    answer.texts.clear()
                    answer.shown.clear()
                    await self.tell(signals.RequestSent(request=answer.number))
                answer.reasoning.append(text)
                answer.details.extend(details)
            case ToolCallReady(call=tool_call):
                answer.calls.append(tool_call)
            case UsageReported(usage=usage):
                answer.usage = usage
            case Finished(reason=reason):
                answer.finish = reason

    async def _add(self, answer: _Answer, text: str, *, is_last: bool) -> None:
        """Redact and show a text; a long one in steps, to keep the event loop free."""
        for start in range(0, len(text), AT_ONCE_CHARS):
            if start:
                await asyncio.sleep(0)
            end = start + AT_ONCE_CHARS
            answer.redaction, safe = self._model.redactor.feed(answer.redaction, text[start:end])
            if safe:
                answer.texts.append(safe)
                answer.screening, marked = receipt_screen.feed(answer.screening, safe, self.lookup)
                is_end = is_last and end >= len(text)
                await self._show(answer, marked, is_last=is_end)

    async def _show(self, answer: _Answer, text: str, *, is_last: bool) -> None:
        if text:
            answer.shown.append(text)
            await self.tell(signals.TextArrived(request=answer.number, text=text, is_last=is_last))


def _is_rejected(outcome: Raised | None) -> TypeGuard[Raised]:
    return isinstance(outcome, Raised) and isinstance(outcome.error, ProviderRejected)


def _failure(number: int, raised: Raised, turn: TurnContext) -> signals.RequestEvent:
    """Return the event of a failed request, with a sentence for the person.

    Only operators read what this machine lacks, paths included.
    """
    language, is_operator = turn.language, "operator" in turn.opened.principal.roles
    match raised.error:
        case ContextOverflow(context_tokens=window):
            return signals.ContextOverflowed(request=number, window=window)
        case StreamBroken():
            return signals.StreamCut(request=number)
        case ProviderOverloaded():
            text = catalogue.MODEL_IS_BUSY.to(language)
        case ProviderUnauthorized():
            text = catalogue.MODEL_REFUSED_THE_KEY.to(language)
        case ProviderUnreachable() | NeedsOperator() as error if not is_operator:
            is_away = isinstance(error, ProviderUnreachable)
            text = catalogue.MODEL_UNREACHABLE if is_away else catalogue.MODEL_FAILED_HERE
            detail = catalogue.MODEL_CANNOT_ANSWER.to(language, why=str(error))
            return signals.RequestFailed(request=number, text=text.to(language), detail=detail)
        case ProviderRejected() | ProviderUnreachable() | NeedsOperator() as error:
            text = catalogue.MODEL_CANNOT_ANSWER.to(language, why=str(error))
        case _:
            text = catalogue.MODEL_HAS_A_FAULT.to(language, why=raised.line)
    return signals.RequestFailed(request=number, text=text)
