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
from zeroclaw.message import Usage
from zeroclaw.provider import ModelRequest, Provider, TextDelta, UsageReported
from zeroclaw.redact import Redactor
from zeroclaw.value import Value


class ModelRecord:
    """What the newest requests to the model came to, since the daemon was started.

    Attributes:
        failures: In a row, the newest included.
        at: When the newest of them failed; None before the first.
        why: Why, in one line for operators.
        learned: How it counts tokens.
    """

    def __init__(self, clock: Clock, log: ChannelLog) -> None:
        """Begin without one; each failure is written to the log as well."""
        self.failures = 0
        self.at: datetime | None = None
        self.why = ""
        self.learned = Learned()
        self._clock = clock
        self._log = log

    def answered(self) -> None:
        """Forget what failed before."""
        self.failures, self.at, self.why = 0, None, ""

    def files_refused(self, raised: Raised) -> None:
        """Write down why a request was sent again without its files."""
        self._log("files_refused", why=str(raised.error), level="warning")

    def failed(self, raised: Raised) -> None:
        """Count a failure; a request that is too large, or a stream that was cut, says nothing."""
        if isinstance(raised.error, ContextOverflow | StreamBroken):
            return
        self.failures += 1
        self.at = self._clock.now()
        is_ours = isinstance(raised.error, ZeroclawError)
        self.why = str(raised.error) if is_ours else raised.line
        self._log("model_failed", why=self.why, level="warning")


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


async def complete(model: Model, request: ModelRequest) -> tuple[str, Usage] | Raised:
    """Return a whole answer that no person watches being written, redacted; or why there is none.

    Of what the endpoint does not report the tokens are an estimate, rather too many.
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
    if isinstance(ended, Raised):
        return ended
    said = model.redactor.redact("".join(texts))
    if not usage.total_tokens:
        input_tokens = sum(map(tokens.of_message, request.messages))
        usage = Usage(input_tokens=input_tokens, output_tokens=tokens.of_text(said))
    return said, usage
