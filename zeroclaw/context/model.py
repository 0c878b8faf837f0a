"""The model that all turns ask, what came of the newest requests, and answers that stand alone."""

import asyncio
from contextlib import aclosing
from datetime import datetime

from zeroclaw.channel import ChannelLog
from zeroclaw.clock import Clock
from zeroclaw.context import tokens
from zeroclaw.context.tokens import Learned
from zeroclaw.errors import ContextOverflow, StreamBroken, ZeroclawError
from zeroclaw.foreign import Raised, call
from zeroclaw.message import NO_USAGE, AssistantMessage, Usage
from zeroclaw.provider import ModelRequest, Provider, TextDelta, UsageReported
from zeroclaw.redact import Redactor
from zeroclaw.value import Struct, Value, field


class ModelRecord(Struct, eq=False):
    """What the newest requests to the model came to, since the daemon was started.

    Attributes:
        clock: Says when one failed.
        log: Each failure is written to it as well.
        failures: In a row, the newest included.
        at: When the newest of them failed; None before the first.
        why: Why, in one line for operators.
        learned: How it counts tokens.
    """

    clock: Clock
    log: ChannelLog
    failures: int = 0
    at: datetime | None = None
    why: str = ""
    learned: Learned = field(default_factory=Learned)

    def answered(self) -> None:
        """Forget what failed before."""
        self.failures, self.at, self.why = 0, None, ""

    def files_refused(self, raised: Raised) -> None:
        """Write down why a request was sent again without its files."""
        self.log("files_refused", why=str(raised.error), level="warning")

    def failed(self, raised: Raised) -> None:
        """Count a failure; a request that is too large, or a stream that was cut, says nothing."""
        if isinstance(raised.error, ContextOverflow | StreamBroken):
            return
        self.failures += 1
        self.at = self.clock.now()
        is_ours = isinstance(raised.error, ZeroclawError)
        self.why = str(raised.error) if is_ours else raised.line
        self.log("model_failed", why=self.why, level="warning")


class Model(Value):
    """The model that all turns ask.

    Attributes:
        summariser: What summaries, facts and titles are asked of; usually the same.
        redactor: Stands before everything that sees text.
        record: Told what each request came to.
        slots: How many requests are served at once; first come, first served.
        max_output_tokens: Of one answer, None where the provider says.
    """

    provider: Provider
    summariser: Provider
    redactor: Redactor
    record: ModelRecord
    slots: asyncio.Semaphore
    max_output_tokens: int | None


def broken_off(raised: Raised, reported: Usage, answer: AssistantMessage) -> Usage:
    """Return what the beginning of an answer took: as reported, else an estimate of the output alone.

    Nothing for a request that was refused or never arrived.
    """
    if reported.total_tokens:
        return reported
    has_begun = isinstance(raised.error, StreamBroken) or answer != AssistantMessage()
    return Usage(output_tokens=tokens.of_message(answer)) if has_begun else NO_USAGE


def estimated_input(request: ModelRequest) -> Usage:
    """Return what the messages of a request take, rather too much; for one without tools."""
    return Usage(input_tokens=sum(map(tokens.of_message, request.messages)))


async def complete(model: Model, request: ModelRequest) -> tuple[str | Raised, Usage]:
    """Return a whole answer that no person watches being written, redacted; or why there is none.

    What it took is told in either case. Of what the endpoint does not report the tokens are an
    estimate, rather too many.
    """
    texts: list[str] = []
    usage = Usage()

    async def read() -> None:
        nonlocal usage
        async with aclosing(model.summariser.stream(request)) as stream:
            async for event in stream:
                if isinstance(event, TextDelta):
                    texts.append(event.text)
                elif isinstance(event, UsageReported):
                    usage = event.usage

    async with model.slots:
        ended = await call(read)
    said = model.redactor.redact("".join(texts))
    if isinstance(ended, Raised):
        usage = broken_off(ended, usage, AssistantMessage(content=said))
    elif not usage.total_tokens:
        usage = Usage(output_tokens=tokens.of_text(said))
    if usage.total_tokens and not usage.input_tokens:
        usage += estimated_input(request)
    return (ended if isinstance(ended, Raised) else said), usage
