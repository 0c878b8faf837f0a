"""The model that all turns ask, the outcome of its newest requests, and answers outside of turns."""

import asyncio
from contextlib import aclosing
from datetime import datetime

from zeroclaw.channel import Log
from zeroclaw.clock import Clock
from zeroclaw.context import tokens
from zeroclaw.context.assembly import reserve_of
from zeroclaw.context.compaction import MAX_SUMMARY, UNKNOWN_WINDOW
from zeroclaw.context.tokens import Scale
from zeroclaw.errors import ContextOverflow, StreamBroken
from zeroclaw.foreign import Raised, call
from zeroclaw.message import AssistantMessage, Usage
from zeroclaw.provider import (
    Finished,
    ModelRequest,
    Provider,
    ReasoningDelta,
    TextDelta,
    UsageReported,
)
from zeroclaw.redact import Redactor
from zeroclaw.value import Struct, Value, field, replace

MAX_ANSWER_CHARS = 5 * MAX_SUMMARY
"""The part of an answer that is returned, more than is kept of any. What follows takes milliseconds on
the event loop for each thousand characters, and a model may repeat itself a million times."""


class ModelRecord(Struct, eq=False):
    """The outcome of the newest requests to the model, since the daemon was started.

    Attributes:
        clock: Dates failures.
        failures: Failures in a row, including the newest.
        at: When the newest failure was; None for none.
        reason: Its reason, in one line for operators.
        scale: The scale of the model.
    """

    clock: Clock
    failures: int = 0
    at: datetime | None = None
    reason: str = ""
    scale: Scale = field(default_factory=Scale)

    def answered(self) -> None:
        """Reset the failures."""
        self.failures, self.at, self.reason = 0, None, ""

    def failed(self, raised: Raised, log: Log) -> None:
        """Count and log a failure; an oversized request or a broken stream does not count."""
        if isinstance(raised.error, ContextOverflow):
            return
        if isinstance(raised.error, StreamBroken):
            log("answer_interrupted", reason=raised.line, level="warning")
            return
        self.failures += 1
        self.at, self.reason = self.clock.now(), raised.line
        log("model_failed", reason=self.reason, level="warning")


class Model(Value):
    """The model that all turns ask.

    Attributes:
        summariser: Writes summaries, facts and titles; usually the same provider.
        redactor: Redacts every text before anything else sees it.
        record: Records the outcome of each request.
        slots: Limits how many requests run at once; first come, first served.
        max_output_tokens: The limit of one answer, None to leave it to the provider.
    """

    provider: Provider
    summariser: Provider
    redactor: Redactor
    record: ModelRecord
    slots: asyncio.Semaphore
    max_output_tokens: int | None


def broken_off(raised: Raised, reported: Usage, answer: AssistantMessage) -> Usage:
    """Return the usage of a broken answer: as reported, with an estimate of an unreported output.

    Zero for a request that was refused or never arrived.
    """
    has_begun = isinstance(raised.error, StreamBroken) or answer != AssistantMessage()
    if reported.output_tokens or not has_begun:
        return reported
    return reported + Usage(output_tokens=tokens.of_message(answer))


def estimated_input(request: ModelRequest) -> Usage:
    """Return an estimate of the tokens of a request without tools, on the high side."""
    return Usage(input_tokens=sum(map(tokens.of_message, request.messages)))


async def complete(model: Model, request: ModelRequest) -> tuple[AssistantMessage | Raised, Usage]:
    """Return an answer that is not shown, redacted, or the failure; and the usage in either case.

    Usage that the endpoint does not report is estimated, on the high side. The answer may be as long
    as a window reserves, since models may reason first.
    """
    texts: list[str] = []
    usage, reason = Usage(), None
    window = model.summariser.facts.context_tokens or UNKNOWN_WINDOW
    request = replace(request, max_output_tokens=reserve_of(window))

    async def read() -> None:
        nonlocal usage, reason
        async with aclosing(model.summariser.stream(request)) as stream:
            async for event in stream:
                if isinstance(event, TextDelta):
                    texts.append(event.text)
                elif isinstance(event, ReasoningDelta) and event.takes_back:
                    texts.clear()
                elif isinstance(event, UsageReported):
                    usage = event.usage
                elif isinstance(event, Finished):
                    reason = event.reason

    async with model.slots:
        outcome = await call(read)
    text = await asyncio.to_thread(model.redactor.redact, "".join(texts))
    answer = AssistantMessage(content=text, finish_reason=reason)
    if isinstance(outcome, Raised):
        usage = broken_off(outcome, usage, answer)
    elif not usage.output_tokens:
        usage += Usage(output_tokens=tokens.of_text(answer.content))
    if usage.total_tokens and not usage.input_tokens:
        usage += estimated_input(request)
    answer = replace(answer, content=text[:MAX_ANSWER_CHARS])
    return (outcome if isinstance(outcome, Raised) else answer), usage
