"""Reads the body of a 200, whatever it turns out to be: a stream, one JSON text, or a web page.

Pure: bytes in, stream events out. The first byte that is not white space decides. Content types are
ignored, because endpoints and proxies get them wrong.
"""

from collections.abc import Callable, Iterable, Iterator

from zeroclaw.errors import ProviderRejected, StreamBroken
from zeroclaw.json_fields import is_array, is_object, parse
from zeroclaw.provider import StreamEvent
from zeroclaw.providers.openai.answer import Assembly, error_in
from zeroclaw.providers.openai.refusal import Refusal, read_body, read_error
from zeroclaw.sse import MAX_EVENT_BYTES, SseEvent, SseState, feed, finish
from zeroclaw.value import Struct, field

# Far above any answer; stops an endpoint that never ends its stream.
MAX_ANSWER_BYTES = 64 * 1024 * 1024
# Skipped before the first byte that counts: a byte order mark and white space.
BLANK = b"\xef\xbb\xbf \t\r\n"
LAST = "[DONE]"


class Body(Struct, kw_only=True):
    """The bytes of one answer.

    Attributes:
        endpoint: The endpoint's name in errors.
        error_of: Returns the error for a refusal that came instead of an answer.
        has_progressed: The last `feed` contained data; pings and comments don't count.
        is_done: `[DONE]` was received; anything after it is ignored.
        may_lack_finish: `[DONE]` may end an answer without a finish.
        assembly: Assembles the answer from the chunks.
    """

    endpoint: str
    error_of: Callable[[Refusal], Exception]
    max_bytes: int = MAX_ANSWER_BYTES
    has_progressed: bool = False
    is_done: bool = False
    may_lack_finish: bool = False
    assembly: Assembly = field(default_factory=Assembly)
    _size: int = 0
    _kind: str = ""
    _chunks: list[bytes] = field(default_factory=list[bytes])
    _sse: SseState = SseState()

    @property
    def has_finish(self) -> bool:
        """The answer is complete; only its usage may still come."""
        return self.assembly.has_finish

    @property
    def is_under_way(self) -> bool:
        """The answer has text, but no finish yet."""
        return not (self.assembly.is_blank or self.assembly.has_finish)

    @property
    def unread_bytes(self) -> int:
        """The size of the received bytes that are not turned into events yet."""
        if self._kind != "stream":
            return self._size
        return self._sse.unread_bytes + self.assembly.unsaid_bytes

    def feed(self, chunk: bytes) -> Iterator[StreamEvent]:
        """Take the next bytes; exhaust the iterator before the next call.

        Raises:
            StreamBroken: The bytes can't be parsed, or are too many.
            ContextOverflow, ProviderOverloaded, ProviderRejected, ProviderUnauthorized: An error
                came instead of an answer.
        """
        self.has_progressed = False
        self._size += len(chunk)
        if not self._kind:
            chunk = self._decide(chunk)
        # Everything but a stream is parsed in one step of the event loop.
        limit = self.max_bytes if self._kind == "stream" else min(self.max_bytes, MAX_EVENT_BYTES)
        if self._size > limit:
            message = f"`{self.endpoint}` sent more than {limit} bytes"
            raise StreamBroken(message)
        if self._kind == "stream":
            self._sse, events = feed(self._sse, chunk)
            try:
                yield from self._stream(events)
            finally:  # text that arrived before an error is emitted too
                yield from self.assembly.take_text(is_last=self.is_done)
        else:
            self.has_progressed = self._kind != ""
            self._chunks.append(chunk)

    def end(self) -> Iterator[StreamEvent]:
        """Return the remaining events, `Finished` last; raises the same errors as `feed`."""
        if self._kind == "page":
            message = f"`{self.endpoint}` answered with a web page; check `provider.base_url`"
            raise ProviderRejected(message)
        if self._kind == "json":
            yield from self._parse(b"".join(self._chunks))
            return
        yield from self._stream(finish(self._sse))
        yield from self.assembly.end(is_stream=not (self.is_done and self.may_lack_finish))

    def _decide(self, chunk: bytes) -> bytes:
        """Determine the kind by the first byte; return the bytes so far."""
        head = b"".join((*self._chunks, chunk))
        self._chunks = []
        first = head.lstrip(BLANK)[:1]
        if first:
            self._kind = "json" if first in b"{[" else "page" if first == b"<" else "stream"
        return head

    def _stream(self, events: Iterable[SseEvent]) -> Iterator[StreamEvent]:
        """Process events of the stream; their text is returned separately, by `take_text`."""
        take_piece = self.assembly.take_piece
        for event in events:
            if self.is_done:
                return
            if event.name != "error" and take_piece(event.data):  # nearly always
                self.has_progressed = True
            else:
                yield from self._take(event)

    def _take(self, event: SseEvent) -> Iterable[StreamEvent]:
        """Process an event that is not just a piece of text, or is an error."""
        is_error, data = event.name == "error", event.data.strip()
        if not data:
            return ()
        self.has_progressed = True
        if data == LAST:
            self.is_done = True
            return ()
        try:
            chunk = parse(data)
        except ValueError as error:
            if is_error:
                raise self.error_of(read_error(data, status=0)) from error
            message = f"`{self.endpoint}` sent an event that is not JSON"
            raise StreamBroken(message) from error
        if not is_object(chunk):
            message = f"`{self.endpoint}` sent an event that is not a JSON object"
            raise StreamBroken(message)
        error = error_in(chunk) or (chunk if is_error else None)
        if error is not None:
            raise self.error_of(read_error(error, status=0))
        return self.assembly.take(chunk)

    def _parse(self, body: bytes) -> Iterator[StreamEvent]:
        """Parse a JSON text: an answer that was not streamed, or an error."""
        text = body.strip(BLANK).decode(errors="replace")
        try:
            answer = parse(text)
        except ValueError as error:
            message = f"`{self.endpoint}` sent an answer that is not whole JSON"
            raise StreamBroken(message) from error
        if is_array(answer) and answer:
            answer = answer[0]
        if not is_object(answer) or error_in(answer) or "choices" not in answer:
            raise self.error_of(read_body(text, status=0))
        yield from self.assembly.take(answer)
        yield from self.assembly.end(is_stream=False)
