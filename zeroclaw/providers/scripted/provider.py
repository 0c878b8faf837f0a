"""Plays a script as a model would: in deltas, with pauses and with errors."""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator
from typing import assert_never

from zeroclaw.clock import Clock
from zeroclaw.config.model import ProviderSettings
from zeroclaw.errors import (
    ConfigError,
    ContextOverflow,
    ProviderOverloaded,
    ProviderRejected,
    ProviderUnauthorized,
    StreamBroken,
    ZeroclawError,
    system_words,
)
from zeroclaw.host.places import expand
from zeroclaw.message import FinishReason, Message, ToolCall, Usage
from zeroclaw.provider import (
    Finished,
    ModelRequest,
    ProviderContext,
    ProviderFacts,
    ReasoningDelta,
    StreamEvent,
    TextDelta,
    ToolCallReady,
    UsageReported,
)
from zeroclaw.providers.scripted.script import (
    Call,
    Fail,
    Finish,
    Pause,
    Reason,
    Report,
    Say,
    Script,
    arguments_text,
    fill_in,
    next_answer,
    parse_script,
)
from zeroclaw.value import Struct, field, replace

FACTS = ProviderFacts(model="scripted", note="answers come from a script, not from a model")


class ScriptedProvider(Struct, eq=False, kw_only=True):
    """A `Provider` that plays a script; has no connection and no conversation state."""

    script: Script
    clock: Clock
    facts: ProviderFacts = FACTS
    _failed: Counter[int] = field(default_factory=Counter[int])

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamEvent, None]:
        """Play the next answer; see `Provider.stream`."""
        await asyncio.sleep(0)  # like a real model, yield to other tasks before answering
        answer = next_answer(self.script, request.messages)
        calls: list[ToolCall] = []
        reason: FinishReason | None = None
        usage: Usage | None = None
        word_count, has_spoken = 0, False
        for step in answer.steps:
            match step:
                case Say(say=template) | Reason(reason=template):
                    text = fill_in(template, request.messages)
                    word_count += len(text.split())
                    has_spoken = has_spoken or bool(text.strip())
                    delta = TextDelta if isinstance(step, Say) else ReasoningDelta
                    for at in range(0, len(text), step.chunk_chars):
                        await self.clock.sleep(step.delay_s)
                        yield delta(text=text[at : at + step.chunk_chars])
                case Call():
                    calls.append(_call(step, len(calls), request.messages))
                case Report():
                    usage = Usage(**step.usage.model_dump())
                case Pause():
                    await self.clock.sleep(step.wait_s)
                case Fail():
                    self._fail(step, has_spoken=has_spoken)
                case Finish():
                    reason = step.finish
                case _:
                    assert_never(step)
        input_words = sum(len(message.content.split()) for message in request.messages)
        counted = usage or Usage(input_tokens=input_words, output_tokens=word_count)
        for event in _end(calls, counted, reason, has_spoken=has_spoken):
            yield event

    async def aclose(self) -> None:
        """Do nothing; there is nothing to free."""

    def _fail(self, step: Fail, *, has_spoken: bool) -> None:
        """Raise the step's error, unless this process has raised it `times` times already."""
        self._failed[id(step)] += 1
        if step.times == 0 or self._failed[id(step)] <= step.times:
            raise _error(step, has_spoken=has_spoken)


def open_provider(settings: ProviderSettings, context: ProviderContext) -> ScriptedProvider:
    """Open the script at the path in `[provider] script`.

    Raises:
        ConfigError: The file can't be read, or has faults.
    """
    path = expand(settings.script)
    try:
        text = path.read_text(encoding="utf-8-sig")  # some editors write a byte order mark
    except (OSError, UnicodeDecodeError) as error:
        reason = system_words(error) if isinstance(error, OSError) else "no text"
        fault = f"provider.script: `{path}` can't be read: {reason}"
        raise ConfigError((fault,)) from error
    facts = replace(
        FACTS,
        context_tokens=settings.context_tokens,
        context_from="the configuration" if settings.context_tokens else "",
        takes=frozenset(settings.takes or ()),
    )
    return ScriptedProvider(script=parse_script(text), clock=context.clock, facts=facts)


def _end(
    calls: list[ToolCall], usage: Usage, reason: FinishReason | None, *, has_spoken: bool
) -> tuple[StreamEvent, ...]:
    """Return the events at the end of an answer; reject an empty answer."""
    if not has_spoken and not calls:
        message = f"the model answered with nothing (finish reason `{reason or 'stop'}`)"
        raise ProviderRejected(message)
    return (
        *(ToolCallReady(call=call) for call in calls),
        UsageReported(usage=usage),
        Finished(reason=reason or ("tool_calls" if calls else "stop")),
    )


def _call(step: Call, place: int, messages: tuple[Message, ...]) -> ToolCall:
    """Return the tool call of a step; without an id, it is numbered as real servers do."""
    return ToolCall(
        id=step.id or f"call_{place}", name=step.call, arguments=arguments_text(step, messages)
    )


def _error(step: Fail, *, has_spoken: bool) -> ZeroclawError:
    """Return the error of a step; once text was sent, `overloaded` becomes a broken stream."""
    match step.fail:
        case "overloaded" if not has_spoken:
            return ProviderOverloaded(step.message, retry_after_s=step.retry_after_s)
        case "overloaded" | "cut":
            return StreamBroken(step.message)
        case "rejected":
            return ProviderRejected(step.message)
        case "unauthorized":
            return ProviderUnauthorized(step.message)
        case "overflow":
            return ContextOverflow(step.message)
        case _:
            assert_never(step.fail)
