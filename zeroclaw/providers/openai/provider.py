"""Calls an OpenAI-compatible endpoint and streams its answer.

    encode → POST ── refused, busy ── wait ── POST again      (only while nothing was yielded)
                └─ 200 ── bytes → events → chunks → StreamEvents ── Finished

All waiting happens here; `zeroclaw/sse.py` and the pure files in this folder interpret bytes,
chunks and refusals.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Iterator, Sequence
from contextlib import aclosing
from functools import partial
from urllib.parse import urlsplit

from msgspec import Raw

from zeroclaw.backoff import BackOff
from zeroclaw.config.model import ProviderSettings
from zeroclaw.errors import (
    ConfigError,
    ProviderOverloaded,
    ProviderRejected,
    ProviderUnreachable,
    StreamBroken,
    TryAgain,
    ZeroclawError,
)
from zeroclaw.host.http import (
    HttpAnswer,
    HttpClient,
    HttpConnectFailed,
    HttpCut,
    HttpFailed,
    HttpLimits,
    HttpPoolExhausted,
    HttpRequest,
    HttpTimedOut,
    http_client,
    read_answer,
)
from zeroclaw.message import FileKind, ToolDefinition
from zeroclaw.provider import (
    Endpoint,
    ModelRequest,
    ProviderContext,
    ProviderFacts,
    StreamEvent,
    bounded_window,
)
from zeroclaw.providers.openai.answer import LONE_TAG, Assembly, ThoughtSplitter
from zeroclaw.providers.openai.body import Body
from zeroclaw.providers.openai.refusal import Refusal, adapted, error_for, read_body, retry_after
from zeroclaw.providers.openai.request import USUAL, Dialect, encode_request, encode_tools
from zeroclaw.providers.openai.tokenize import sizes_in, tokenize_body
from zeroclaw.providers.openai.windows import AS_OF, is_llama_cpp, known_window, window_in
from zeroclaw.redact import without_credentials
from zeroclaw.value import Struct, field

OK = 200
AT_ONCE_BYTES = 8 * 1024
"""Bytes of an answer that are parsed on the event loop; the worst of this size take about 40 ms."""
READ_EVERY_S = 0.05
"""How often an answer is read whose pieces come fast.

Reading each piece by itself runs 1.5 times as many opcodes a turn at 50 pieces a second, and 2.1
times at 100. Platforms let a draft be edited about once a second; our own screens show it 20 times.
"""
FAST_S = READ_EVERY_S / 2
"""The next piece comes fast if this one was waited for less long; else it is read by itself."""
BACK_OFF = BackOff(first_s=0.5, longest_s=8.0)
# A longer `retry-after` is raised at once, so that the person learns why nothing happens.
LONGEST_RETRY_AFTER_S = 30.0
# How long pings before an answer keep a request alive. DeepSeek sends them so long while a request
# is in its queue (its API documentation, read 2026-11).
LONGEST_QUEUED_S = 600.0
# Usage and `[DONE]` follow the finish within milliseconds; some servers never close the stream.
GRACE_S = 2.0
# After `[DONE]` only the end of the body is left, mostly received already; the answer waits for it.
DRAIN_S = 0.2
# The kinds of files that models accept, by vendor endpoint and model name prefix, according to the
# vendors' documentation of their OpenAI-compatible APIs, read 2026-11. All others get text only.
TAKES: tuple[tuple[str, tuple[str, ...], frozenset[FileKind]], ...] = (
    ("api.openai.com", ("gpt-4.1", "gpt-5", "o3", "o4"), frozenset({"images", "files"})),
    ("api.anthropic.com", ("claude-",), frozenset({"images"})),
    ("generativelanguage.googleapis.com", ("gemini-",), frozenset({"images", "audio"})),
    ("api.mistral.ai", ("mistral-small", "mistral-medium", "pixtral"), frozenset({"images"})),
)
REFUSAL_BYTES = 64 * 1024
REFUSAL_S = 5.0
# OpenRouter lists a few hundred models in a megabyte.
LIST_BYTES = 8 * 1024 * 1024
LIST_S = 10.0
TOKENS_BYTES = 8 * 1024 * 1024
COUNT_S = 2.0  # counting takes milliseconds; the estimate is the fallback


class _Silent(ProviderUnreachable):
    """Raised when an endpoint was silent for too long; retrying would double the wait."""


class _Misunderstood(ProviderRejected):
    """Raised when an endpoint needs another dialect, which the provider has just learned."""


class OpenAIProvider(Struct, eq=False, kw_only=True):
    """A `Provider` for one endpoint; see `Provider` for what `stream` guarantees.

    Attributes:
        facts: The current facts; stored, because a turn reads them several times.
    """

    endpoint: Endpoint
    http: HttpClient
    context: ProviderContext
    settings: ProviderSettings
    facts: ProviderFacts = ProviderFacts(model="")
    _asked_window: int | None = None
    _tokenize_url: str = ""
    _tools: tuple[Sequence[ToolDefinition], Raw] = ((), Raw(b"[]"))
    _name: str = ""
    _dialect: Dialect = USUAL
    _thinking: set[str] = field(default_factory=set[str])
    _lacks_finish: bool = False

    def __post_init__(self) -> None:
        """Check the endpoint."""
        _check(self.endpoint)
        self._tokenize_url = self.endpoint.tokenize_url
        self._name = urlsplit(without_credentials(self.endpoint.base_url)).netloc.removeprefix("…@")
        self.facts = self._known_facts()

    def _known_facts(self) -> ProviderFacts:
        endpoint, configured = self.endpoint, self.settings.takes
        tokens, source = self._asked_window, "the endpoint"
        if tokens is None:
            tokens, source = known_window(endpoint.model), f"the table of {AS_OF}"
        window, source = bounded_window(tokens, source, endpoint.context_tokens)
        counted_by = "llama.cpp" if self._tokenize_url else ""
        return ProviderFacts(
            model=endpoint.model,
            context_tokens=window,
            context_from=source,
            calls_tools=self._dialect.takes_tools,
            takes=_known_to_take(endpoint) if configured is None else frozenset(configured),
            counted_by=self.settings.tokenizer or counted_by,
        )

    async def measure(self) -> None:
        """Read the window from the endpoint's list of models; see `Measuring.measure`."""
        base, headers = self.endpoint.base_url.rstrip("/"), self._headers("application/json")
        request = HttpRequest(url=f"{base}/models", method="GET", headers=headers)
        body = await self._fetch(request, within_s=LIST_S, max_bytes=LIST_BYTES)
        if body is None:
            self.context.log("window_not_reported", endpoint=self._name)
            return
        self._asked_window = window_in(body, self.endpoint.model) or self._asked_window
        if is_llama_cpp(body):
            self._tokenize_url = f"{base.removesuffix('/v1')}/tokenize"
        self.facts = self._known_facts()

    async def count(self, texts: Sequence[str]) -> tuple[int, ...] | None:
        """Count with the operator's tokenizer file, else with llama.cpp; see `Counting.count`."""
        if (tokenizer := self.context.tokenizer) is not None:
            return await tokenizer.count(texts)
        if not self._tokenize_url:
            return None
        headers = {"Content-Type": "application/json", **self._headers("application/json")}
        request = HttpRequest(url=self._tokenize_url, headers=headers, body=tokenize_body(texts))
        body = await self._fetch(request, within_s=COUNT_S, max_bytes=TOKENS_BYTES)
        return None if body is None else sizes_in(body, len(texts))

    async def _fetch(
        self, request: HttpRequest, *, within_s: float, max_bytes: int
    ) -> bytes | None:
        """Return a whole response, None if there is none in time."""
        try:
            async with asyncio.timeout(within_s):
                _, body = await read_answer(self.http, request, max_bytes=max_bytes)
        except (TimeoutError, HttpFailed):
            return None
        return body

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamEvent, None]:
        """Call the endpoint, with retries until something is yielded; see `Provider.stream`."""
        has_yielded, attempt = False, 1
        while True:
            try:
                async with aclosing(self._ask(request)) as events:
                    async for event in events:
                        has_yielded = True
                        yield event
            except (HttpFailed, ProviderOverloaded, _Misunderstood) as error:
                if has_yielded:
                    raise StreamBroken(str(error)) from error
                if isinstance(error, _Misunderstood):
                    self.context.log("dialect_learned", endpoint=self._name)
                    continue
                await self._wait(attempt, error)
                attempt += 1
            else:
                return

    async def aclose(self) -> None:
        """Close the connections; safe to call twice."""
        await self.http.aclose()

    def _post(self, request: ModelRequest) -> HttpRequest:
        if request.tools != self._tools[0]:  # fast if it is the same object
            self._tools = (request.tools, encode_tools(request.tools))
        return HttpRequest(
            url=f"{self.endpoint.base_url.rstrip('/')}/chat/completions",
            headers={"Content-Type": "application/json", **self._headers("text/event-stream")},
            body=encode_request(
                request,
                model=request.model or self.endpoint.model,
                options=self.settings.options,
                dialect=self._dialect,
                max_output_tokens=self.settings.max_output_tokens,
                tools=self._tools[1],
            ),
        )

    def _headers(self, accept: str) -> dict[str, str]:
        # A compressing proxy would delay tokens.
        headers = {"Accept": accept, "Accept-Encoding": "identity"}
        if self.endpoint.api_key:
            headers["Authorization"] = f"Bearer {self.endpoint.api_key}"
        return headers

    async def _wait(self, attempt: int, error: HttpFailed | ProviderOverloaded) -> None:
        """Wait before the next attempt: as the endpoint asked, else with back-off and jitter.

        Raises:
            ZeroclawError: There is no next attempt; the error tells why the last one failed.
        """
        wait_s = error.retry_after_s if isinstance(error, ProviderOverloaded) else None
        if wait_s is None:
            wait_s = BACK_OFF.wait_s(attempt, self.context.jitter())
        reason = self._connection_error(error) if isinstance(error, HttpFailed) else error
        is_final = attempt >= self.settings.attempts or wait_s > LONGEST_RETRY_AFTER_S
        if is_final or not isinstance(reason, TryAgain) or isinstance(reason, _Silent):
            raise reason
        # The rest is the endpoint's own text, which may quote people.
        fields = {"endpoint": self._name, "reason": str(reason).partition(": ")[0]}
        self.context.log("provider_retried", **fields, attempt=attempt, wait_s=round(wait_s, 1))
        await self.context.clock.sleep(wait_s)

    def _connection_error(self, error: HttpFailed) -> ZeroclawError:
        """Return the contract's error for a response that never began."""
        match error:
            case HttpCut():
                return ProviderUnreachable(f"`{self._name}` closed the connection unanswered")
            case HttpConnectFailed():
                return ProviderUnreachable(
                    f"`{self._name}` can't be reached: {error}; see that it runs, and that "
                    "`provider.base_url` is its address"
                )
            case HttpPoolExhausted():
                return ProviderOverloaded(f"`{self._name}` is busy: {error}")
            case HttpTimedOut():
                return _Silent(self._silence_message())
            case _:
                return ProviderRejected(f"`{self._name}` can't be asked: {error}")

    async def _ask(self, request: ModelRequest) -> AsyncGenerator[StreamEvent, None]:
        """Post once and turn the body of a 200 into events, watching for stalls.

        Raises:
            HttpFailed: The response did not begin.
            ZeroclawError: As `Provider.stream` says.
        """
        error_of = partial(self._error, self._dialect)
        posted, model = self._post(request), request.model or self.endpoint.model
        # A tag that the conversation is about may be quoted in the answer.
        is_watched = LONE_TAG.encode() not in posted.body
        thoughts = ThoughtSplitter(is_opened=model in self._thinking, is_watched=is_watched)
        body = Body(
            endpoint=self._name,
            error_of=error_of,
            may_lack_finish=self._lacks_finish,
            assembly=Assembly(thoughts=thoughts),
        )
        remaining_s, queued_s, is_fast = self.settings.stall_s, 0.0, False
        async with self.http.open(posted) as answer:
            if answer.status != OK:
                raise error_of(*await self._refusal(answer))
            while not body.is_done:
                held_s = READ_EVERY_S if is_fast and body.is_under_way else 0.0
                try:
                    chunk, took_s = await self._next(answer, remaining_s, held_s)
                except StreamBroken:
                    if not body.has_finish:
                        raise
                    break  # the answer is complete; only its usage may be lost
                if chunk is None:
                    break
                for event in await self._read(body, chunk):
                    yield event
                remaining_s, is_fast = max(0.0, remaining_s - took_s), took_s - held_s < FAST_S
                queued_s = LONGEST_QUEUED_S if body.has_progressed else queued_s + took_s
                if body.has_progressed or queued_s < LONGEST_QUEUED_S:
                    remaining_s = GRACE_S if body.has_finish else self.settings.stall_s
            self._lacks_finish = body.is_done and not body.has_finish
            for event in await self._read(body, None):
                yield event
            (self._thinking.add if thoughts.is_opened else self._thinking.discard)(model)
            if body.is_done and not answer.is_received():
                await self._drain(answer.chunks)

    async def _read(self, body: Body, chunk: bytes | None) -> Iterable[StreamEvent]:
        """Return the events of the next bytes, or of their end; of many bytes off the event loop."""
        events = body.end() if chunk is None else body.feed(chunk)
        if body.unread_bytes + len(chunk or b"") <= AT_ONCE_BYTES:
            return events
        return await asyncio.to_thread(_read_ahead, events)

    async def _refusal(self, answer: HttpAnswer) -> tuple[Refusal, float | None]:
        """Return the refusal in a response that is not 200, and the seconds until the next attempt."""
        body = b""
        try:
            async with asyncio.timeout(REFUSAL_S):
                async for chunk in answer.chunks:
                    body += chunk
                    if len(body) > REFUSAL_BYTES:
                        break
        except (TimeoutError, HttpFailed):
            self.context.log("refusal_incomplete", endpoint=self._name, status=answer.status)
        refusal = read_body(body.decode(errors="replace"), status=answer.status)
        return refusal, retry_after(answer.headers, self.context.clock.now())

    def _error(
        self, dialect: Dialect, refusal: Refusal, retry_after_s: float | None = None
    ) -> ZeroclawError:
        """Return the error for the refusal of a request in a dialect, and learn from it.

        A dialect that is refused for another reason is forgotten, and learned again if need be: an
        earlier server at this address may have needed it, or a quotation may have suggested it.
        """
        error = error_for(
            refusal, endpoint=self._name, redact=self._redact, retry_after_s=retry_after_s
        )
        if adapted(dialect, refusal) != dialect:
            self._dialect = adapted(self._dialect, refusal)  # another request may have learned more
            error = _Misunderstood(str(error))
        elif isinstance(error, ProviderRejected):
            self._dialect = USUAL
        self.facts = self._known_facts()
        return error

    def _redact(self, text: str) -> str:
        """Remove our key and every other known secret from a foreign text."""
        key = self.endpoint.api_key
        return self.context.redact(text.replace(key, "***") if key else text)

    async def _next(
        self, answer: HttpAnswer, within_s: float, held_s: float
    ) -> tuple[bytes | None, float]:
        """Wait for more bytes; None at the end. Also return how long that took.

        What arrives within `held_s` is read together.

        Raises:
            StreamBroken: Time ran out, or the connection broke.
        """
        started = self.context.clock.monotonic()
        try:
            async with asyncio.timeout(within_s):
                if held_s:
                    with answer.unread():
                        await self.context.clock.sleep(held_s)
                chunk = await anext(answer.chunks, None)
        except (TimeoutError, HttpTimedOut) as error:
            raise StreamBroken(self._silence_message()) from error
        except HttpFailed as error:
            message = f"the stream of `{self._name}` was cut: {error}"
            raise StreamBroken(message) from error
        return chunk, self.context.clock.monotonic() - started

    def _silence_message(self) -> str:
        """Return the text for silence; the same before and during an answer, to report it once."""
        return f"`{self._name}` sent nothing for {self.settings.stall_s:g} s"

    async def _drain(self, chunks: AsyncIterator[bytes]) -> None:
        """Read what follows `[DONE]`, so that the connection can be reused."""
        try:
            async with asyncio.timeout(DRAIN_S):
                async for _ in chunks:
                    pass
        except (TimeoutError, HttpFailed):
            self.context.log("connection_dropped", endpoint=self._name)


def open_endpoint(
    endpoint: Endpoint, context: ProviderContext, settings: ProviderSettings
) -> OpenAIProvider:
    """Open a provider for an endpoint that another provider runs, with the same settings."""
    return OpenAIProvider(
        endpoint=endpoint,
        http=http_client(HttpLimits(connect_s=settings.connect_s, read_s=settings.stall_s)),
        context=context,
        settings=settings,
    )


def open_provider(settings: ProviderSettings, context: ProviderContext) -> OpenAIProvider:
    """Open the endpoint of `[provider]`; connects on the first call.

    Raises:
        ConfigError: The URL or the key is unusable.
    """
    endpoint = Endpoint(
        base_url=settings.base_url,
        model=settings.model,
        api_key=context.secrets.get("api_key", "").strip(),
        context_tokens=settings.context_tokens,
    )
    return open_endpoint(endpoint, context, settings)


def _read_ahead(events: Iterable[StreamEvent]) -> Iterable[StreamEvent]:
    """Read all events now; an error that ends them is raised behind them, as it would be otherwise."""
    ahead: list[StreamEvent] = []
    try:
        for event in events:
            ahead.append(event)  # noqa: PERF402  the events before an error stay
    except ZeroclawError as error:
        return _with_error(ahead, error)
    return ahead


def _with_error(events: Iterable[StreamEvent], error: ZeroclawError) -> Iterator[StreamEvent]:
    yield from events
    raise error


def _known_to_take(endpoint: Endpoint) -> frozenset[FileKind]:
    host = urlsplit(endpoint.base_url).hostname
    for vendor_host, names, takes in TAKES:
        if host == vendor_host and endpoint.model.startswith(names):
            return takes
    return frozenset()


def _check(endpoint: Endpoint) -> None:
    """Reject a key that no header can carry, and credentials given twice."""
    faults: list[str] = []
    if not (endpoint.api_key.isascii() and (endpoint.api_key + "x").isprintable()):
        faults.append("provider.api_key: holds characters that no HTTP header can carry")
    if endpoint.api_key and "@" in urlsplit(endpoint.base_url).netloc:
        faults.append("provider.base_url: names a user, and `provider.api_key` a key; keep one")
    if faults:
        raise ConfigError(tuple(faults))
