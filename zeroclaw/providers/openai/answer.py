"""Assembles an answer from the chunks of a chat-completions stream.

Pure: `take` gets parsed chunks in order and returns the events that are ready, `end` the rest.

    text and flat reasoning are emitted as they arrive · calls, structured reasoning, usage and the
    finish are emitted at the end, when they are complete (S0-23, S1-13)

Dialects (S1-24, S1-27; fields observed with 32 served models, 2026-06): `reasoning` (vLLM,
OpenRouter), `reasoning_content` (DeepSeek, llama.cpp), `reasoning_details` (OpenRouter: signed,
summarized or encrypted blocks), content as an array of parts (Mistral), a whole `message` instead
of deltas (endpoints that don't stream), tags around the beginning of the text (vLLM, llama.cpp and
mlx without a parser for the model, LM Studio, MiniMax, Groq's `raw`).
"""

import json
from collections.abc import Iterator
from typing import Literal

from msgspec.json import Decoder

from zeroclaw.errors import ProviderRejected, StreamBroken
from zeroclaw.json_fields import (
    int_at,
    is_array,
    is_object,
    is_object_text,
    object_at,
    objects_at,
    parse,
    text_at,
    whole,
)
from zeroclaw.message import FinishReason, ToolCall, Usage
from zeroclaw.provider import (
    Finished,
    ReasoningDelta,
    StreamEvent,
    TextDelta,
    ToolCallReady,
    UsageReported,
)
from zeroclaw.providers.openai.refusal import SHOWN_CHARS, one_line
from zeroclaw.providers.openai.windows import MAX_TOKENS
from zeroclaw.value import Struct, field

# Endpoints' names for the reasons; anything else counts as `stop`, or as `tool_calls` if there are
# calls. Gemini's compatible endpoint adds its own name to some, as in `content_filter: SPII`.
# None: the server gave up (OpenRouter; vLLM and SGLang; DeepSeek; Gemini, whose model wrote an
# unreadable call), by documents and reports read 2026-11.
REASONS: dict[str, FinishReason | None] = {
    "length": "length",
    "max_tokens": "length",
    "model_length": "length",
    "content_filter": "content_filter",
    "safety": "content_filter",
    "error": None,
    "abort": None,
    "insufficient_system_resource": None,
    "function_call_filter": None,
}
# Fields of a reasoning block that arrive in pieces; of any other, the last value counts.
GROWING_FIELDS = frozenset({"text", "summary", "data"})
# The tags that an answer may begin with, and each one's closing tag. A closing tag comes first where
# the prompt holds the opening one (DeepSeek-R1) or has the model not think (Qwen). Magistral has
# brackets, gpt-oss channels. Model cards and issues of vLLM, llama.cpp and mlx, read 2026-11.
THOUGHT_TAGS = {
    "<think>": "</think>",
    "</think>": "",
    "[THINK]": "[/THINK]",
    "[/THINK]": "",
    "<|channel|>analysis<|message|>": "<|end|><|start|>assistant<|channel|>final<|message|>",
    "<|channel|>commentary": "<|end|><|start|>assistant<|channel|>final<|message|>",
    "<|channel|>final<|message|>": "",
}
LONE_TAG = "</think>"
_LONE_LINE = f"\n{LONE_TAG}"
HIGH_SURROGATES = range(0xD800, 0xDC00)
MAX_CALLS = 256
"""Most tool calls in one answer; the gate accepts far fewer, and models send a handful."""
MAX_BLOCK_CHARS = 4 * 1024 * 1024
"""Most characters of reasoning in blocks in one answer. The text of such blocks arrives with a name
for each few letters of it, and is sent as plain text, too."""
_EMPTY_BLOCK_CHARS = 64  # what it counts for: it takes a hundred times the memory of its `{}`
MAX_SAID_CHARS = 1024 * 1024
"""Most characters of text, reasoning as text, and calls in one answer, about twice what models can write.
A text of this length becomes hundreds of messages, which no `/stop` takes back; a call goes back to the
endpoint with every later request."""
MAX_READ_CHARS = 32 * 1024 * 1024
"""Most characters of incomplete arguments that are parsed for one answer, counting every attempt."""

# ASCII escapes preserve whatever the endpoint sent, unpaired surrogates included. Shared: `json.dumps`
# with an option builds a new encoder for every value.
_json = json.JSONEncoder(separators=(",", ":")).encode


class _CallDraft(Struct, kw_only=True):
    """A call that may still grow."""

    index: int
    id: str = ""
    name: str = ""
    extra: str = ""
    pieces: list[str] = field(default_factory=list[str])

    @property
    def arguments(self) -> str:
        """The raw text so far."""
        return "".join(self.pieces)

    def is_whole(self) -> bool:
        """Return whether the arguments are one complete JSON object; joins their pieces."""
        self.pieces = [self.arguments]  # read again after each further piece
        return is_object_text(self.pieces[0])


class _Block(Struct, kw_only=True):
    """A block of structured reasoning that may still grow.

    Attributes:
        fields: The values that were sent last, as JSON, which takes a fraction of the memory.
        pieces: The texts of the fields that are sent in pieces.
    """

    fields: dict[str, str] = field(default_factory=dict[str, str])
    pieces: dict[str, list[str]] = field(default_factory=dict[str, list[str]])

    def take(self, fragment: dict[str, object]) -> int:
        """Add the next fragment; return how many characters the block grows by, or a few more."""
        added = 0
        for name, value in fragment.items():
            if name in GROWING_FIELDS and isinstance(value, str):
                self.pieces.setdefault(name, []).append(value)
                self.fields[name] = ""
                added += len(value)
            elif value is not None or name not in self.fields:
                text = _json(value)
                added += len(name) + len(text) - len(self.fields.get(name, ""))
                self.fields[name] = text
        return added

    @property
    def joined(self) -> str:
        """The block as JSON, with its pieces joined."""
        texts = self.fields | {name: _json("".join(texts)) for name, texts in self.pieces.items()}
        return f"{{{','.join(f'{_json(name)}:{text}' for name, text in texts.items())}}}"


class _SurrogateJoiner(Struct):
    """Joins texts that were split inside a surrogate pair, as JSON escapes allow."""

    _pending: str = ""

    def join(self, text: str) -> str:
        """Return the text that is complete."""
        text = self._pending + text
        self._pending = ""
        if text and ord(text[-1]) in HIGH_SURROGATES:
            text, self._pending = text[:-1], text[-1]
        return text if text.isascii() else whole(text)

    def end(self) -> str:
        """Return the pending rest; an unpaired surrogate becomes a replacement character."""
        return whole(self._pending)


class ThoughtSplitter(Struct):
    """Splits off the thoughts in tags that an answer begins with; later tags are part of its text.

    White space may precede the opening tag, and is dropped behind the closing one.

    The opening tag may be in the prompt (DeepSeek-R1, Qwen's thinking models). If the server has no
    parser for it, only a closing tag tells. It counts if it is the first tag, has a line of its own
    outside of code, and the server sends no reasoning apart.

    Attributes:
        is_opened: The model is known to begin with thoughts. Learned from its answers, because the
            thoughts of the first one are shown until they end.
        is_watched: Whether a lone closing tag counts.
        takes_back: All text returned so far began the thoughts returned last.
    """

    is_opened: bool = False
    is_watched: bool = True
    takes_back: bool = False
    _place: Literal["start", "watched", "thoughts", "gap", "answer"] = "start"
    _tag: str = ""
    _pending: str = ""
    _passed: list[str] = field(default_factory=list[str])

    def split(self, text: str) -> tuple[str, str]:
        """Return the thoughts and the answer that are complete; a part of a tag is held back."""
        if self._place == "answer":
            return "", text
        text, self._pending, thoughts = self._pending + text, "", ""
        if self._place == "start":
            stripped = text.lstrip()
            self._tag = next(filter(stripped.startswith, THOUGHT_TAGS), "")
            if self._tag:
                self._place = "thoughts" if THOUGHT_TAGS[self._tag] else "gap"
                text = stripped.removeprefix(self._tag)
            elif any(tag.startswith(stripped) for tag in THOUGHT_TAGS):
                self._pending = stripped
                return "", text.removesuffix(stripped)
            else:
                self._place = "thoughts" if self.is_opened else "watched"
        if self._place == "watched":
            thoughts, text = self._watch(text)
        if self._place == "thoughts":
            closing = THOUGHT_TAGS.get(self._tag, LONE_TAG)
            thoughts, is_closed, text = text.partition(closing)
            if is_closed:
                self._place = "gap"
                self._passed.clear()
            else:
                lengths = range(len(closing) - 1, 0, -1)
                self._pending = next(
                    (closing[:n] for n in lengths if thoughts.endswith(closing[:n])), ""
                )
                thoughts = thoughts.removesuffix(self._pending)
                self._passed.append(thoughts)
        if self._place == "gap":
            text = text.lstrip()
            self._place = "answer" if text else "gap"
        return thoughts, text

    def _watch(self, text: str) -> tuple[str, str]:
        """Return the text, or all text so far as thoughts if a lone tag ends it."""
        before, _, after = text.partition(_LONE_LINE)
        if not after:
            # A possible beginning of a tag stays pending until the next character decides.
            tail = text[max(0, text.rfind("\n", -len(_LONE_LINE))) :]
            self._pending = tail if _LONE_LINE.startswith(tail) else ""
            text = text.removesuffix(self._pending)
            self._passed.append(text)
            return "", text
        thoughts = "".join((*self._passed, before, "\n"))
        self._passed.clear()
        is_lone = after[0] == "\n" and "<think>" not in thoughts and thoughts.count("```") % 2 == 0
        if not (is_lone and self.is_watched):
            self._place = "answer"
            return "", text
        self._place, self.is_opened, self.takes_back = "gap", True, True
        return thoughts, after

    def end(self, text: str, *, is_whole: bool) -> tuple[str, str]:
        """Return the rest, up to the last text.

        Unclosed thoughts remain thoughts. They are also the text of an answer that is whole, which
        has no other: a person asked for such a tag, or the model forgot to close it.
        """
        thoughts, text = self.split(text)
        if self._place != "thoughts":
            return thoughts, text + self._pending
        thoughts += self._pending
        unclosed = "".join((*self._passed, self._pending))
        self.is_opened = False
        return thoughts, self._tag + unclosed if is_whole and unclosed.strip() else ""


class _Delta(Struct, forbid_unknown_fields=True):
    content: str


class _Choice(Struct, forbid_unknown_fields=True):
    delta: _Delta
    index: Literal[0] = 0
    finish_reason: None = None
    logprobs: None = None


class _Piece(Struct):
    """A chunk with a piece of text and nothing else, as nearly all are."""

    choices: tuple[_Choice]
    object: Literal["chat.completion.chunk"] = "chat.completion.chunk"
    error: None = None
    usage: None = None
    x_groq: None = None


_PIECE = Decoder(_Piece)


class Assembly(Struct, eq=False):
    """One answer while it arrives.

    Attributes:
        is_blank: The answer has no text so far, not even reasoning.
        thoughts: Splits them off the text.
    """

    is_blank: bool = True
    thoughts: ThoughtSplitter = field(default_factory=ThoughtSplitter)
    _finish: str = ""
    _usage: Usage | None = None
    _calls: list[_CallDraft] = field(default_factory=list[_CallDraft])
    _newest: dict[int, _CallDraft] = field(default_factory=dict[int, _CallDraft])
    _read_chars: int = 0
    _argument_chars: int = 0
    _said_chars: int = 0
    _blocks: list[_Block] = field(default_factory=list[_Block])
    _block_chars: int = 0
    _growing: dict[tuple[int, str], _Block] = field(default_factory=dict[tuple[int, str], _Block])
    _pieces: list[str] = field(default_factory=list[str])
    _text: _SurrogateJoiner = field(default_factory=_SurrogateJoiner)
    _reasoning: _SurrogateJoiner = field(default_factory=_SurrogateJoiner)

    @property
    def has_finish(self) -> bool:
        """The model has finished; only the usage may still come."""
        return self._finish != ""

    @property
    def unsaid_bytes(self) -> int:
        """About how much is parsed or written at the end; the rest needs only to be joined."""
        return self._block_chars + self._argument_chars

    def take_piece(self, data: str) -> bool:
        """Take a raw chunk if it is a piece of text and nothing else; return whether it was."""
        try:
            self._pieces.append(_PIECE.decode(data).choices[0].delta.content)
        except (ValueError, RecursionError):
            return False
        return True

    def take_text(self, *, is_last: bool = False) -> tuple[StreamEvent, ...]:
        """Return the text taken so far as one delta; chunks that arrive together stay together.

        Thoughts in the text become reasoning, in a delta before it.

        Args:
            is_last: The end of the answer arrived together with it.
        """
        if not self._pieces:
            return ()
        text, count = self._text.join("".join(self._pieces)), len(self._pieces)
        self._pieces.clear()
        thoughts, text = self.thoughts.split(self._counted(text))
        if text.strip() or thoughts.strip():
            self.is_blank = False
        deltas = (TextDelta(text=text, joined=count, is_last=is_last),) if text else ()
        takes_back, self.thoughts.takes_back = self.thoughts.takes_back, False
        return (*_reasoning(thoughts, takes_back=takes_back), *deltas)

    def take(self, chunk: dict[str, object]) -> tuple[StreamEvent, ...]:
        """Take one chunk, or a whole answer; return the events that are ready.

        Text is returned by `take_text`. Chunks of other choices than the first, and of kinds that were
        not requested, are ignored.
        """
        choices = (choice for choice in objects_at(chunk, "choices") if not int_at(choice, "index"))
        choice = next(choices, dict[str, object]())
        if "usage" in chunk or "x_groq" in chunk or "usage" in choice:  # the last one is Moonshot's
            places = (chunk, object_at(chunk, "x_groq"), choice)
            reported = [_usage(usage) for place in places if (usage := object_at(place, "usage"))]
            self._usage = reported[0] if reported else self._usage
        message = object_at(choice, "message")
        fields = object_at(choice, "delta") or message
        reasoned = self._take_reasoning(fields)
        events = (*self.take_text(), *reasoned) if reasoned else ()
        self._take_calls(fields, is_stream=not message)
        self._say(fields)
        # Older builds of KoboldCpp write the text `null` until the end.
        self._finish = text_at(choice, "finish_reason").removeprefix("null") or self._finish
        return events

    def end(self, *, is_stream: bool = True) -> Iterator[StreamEvent]:
        """Yield the remaining events, `Finished` last; first the text and the usage, even of an error.

        Args:
            is_stream: False for an answer that was not streamed, whose finish reason may be
                missing.

        Raises:
            StreamBroken: There was no finish, it was an error, or the answer was empty.
            ProviderRejected: A limit or a filter left nothing of the answer.
        """
        yield from self.take_text()
        if self._usage is not None:
            yield UsageReported(usage=self._usage)
        if is_stream and not self._finish:
            message = "the stream ended without a finish"
            raise StreamBroken(message)
        reason = REASONS.get(self._finish.lower().partition(":")[0], "stop")
        if reason is None:
            message = "the endpoint ended the stream with an error"
            raise StreamBroken(message)
        calls = self._whole_calls(reason)
        is_whole = reason == "stop" and not calls
        thoughts, text = self.thoughts.end(self._text.end(), is_whole=is_whole)
        if self.is_blank and not (thoughts or text or calls):
            finish = one_line(self._finish[:SHOWN_CHARS]).replace("`", "'") or "none"
            message = f"the model answered with nothing (finish reason `{finish}`)"
            # Without a limit or filter behind it, it is an accident that does not repeat itself.
            raise StreamBroken(message) if reason == "stop" else ProviderRejected(message)
        # Several servers send `stop` after calls, and some send `tool_calls` without any.
        if reason == "stop" and calls:
            reason = "tool_calls"
        yield from _reasoning(self._reasoning.end() + thoughts)
        if text:
            yield TextDelta(text=text)
        if self._blocks:
            yield ReasoningDelta(details=tuple(block.joined for block in self._blocks))
        yield from (ToolCallReady(call=call) for call in calls)
        yield Finished(reason=reason)

    def _say(self, delta: dict[str, object]) -> None:
        """Take text; a refusal in its own field counts as text, since people should read it too."""
        text = text_at(delta, "content") or text_at(delta, "refusal")
        text += "".join(text_at(part, "text") for part in objects_at(delta, "content"))
        if text:
            self._pieces.append(text)

    def _take_reasoning(self, delta: dict[str, object]) -> list[StreamEvent]:
        """Take reasoning; flat text that accompanies blocks repeats them, for display."""
        text = text_at(delta, "reasoning") or text_at(delta, "reasoning_content")
        from_blocks = ""
        for fragment in objects_at(delta, "reasoning_details"):
            self.is_blank = False
            self._merge(fragment)
            from_blocks += text_at(fragment, "text") or text_at(fragment, "summary")
        text += "".join(map(_thinking, objects_at(delta, "content")))
        text = self._counted(self._reasoning.join(text or from_blocks))
        if text.strip():
            self.is_blank = self.thoughts.is_opened = self.thoughts.is_watched = False
        return _reasoning(text)

    def _merge(self, fragment: dict[str, object]) -> None:
        """Add a fragment to the block with its index and type (S1-28).

        A fragment without an index is a block of its own. One index may have both a summary and an
        encrypted block (seen with OpenAI models behind OpenRouter), hence the type.

        Raises:
            StreamBroken: The answer has too much in blocks.
        """
        index, kind = int_at(fragment, "index"), text_at(fragment, "type")
        block = None if index is None else self._growing.get((index, kind))
        if block is None:
            block = _Block()
            self._blocks.append(block)
            self._block_chars += _EMPTY_BLOCK_CHARS
        self._block_chars += block.take(fragment)
        if self._block_chars > MAX_BLOCK_CHARS:
            message = f"the endpoint sent more than {MAX_BLOCK_CHARS:,} characters of reasoning"
            raise StreamBroken(message)
        if index is not None:
            # A fragment that names no type goes on with the newest block of its index.
            self._growing[index, ""] = self._growing[index, kind] = block

    def _take_calls(self, delta: dict[str, object], *, is_stream: bool) -> None:
        for fragment in objects_at(delta, "tool_calls"):
            function, id_ = object_at(fragment, "function"), text_at(fragment, "id")
            name, arguments = text_at(function, "name"), function.get("arguments")
            draft = self._draft(int_at(fragment, "index"), id_, name, is_stream=is_stream)
            draft.id = draft.id or self._counted(id_)
            draft.name = draft.name or self._counted(name)
            if extra := object_at(fragment, "extra_content"):  # Gemini's signature of the call
                draft.extra = self._counted(_json(extra))
            if is_object(arguments) or is_array(arguments):  # some servers send parsed arguments
                arguments = json.dumps(arguments, ensure_ascii=False)
            if isinstance(arguments, str):
                draft.pieces.append(self._counted(arguments))
                self._argument_chars += len(arguments)

    def _counted(self, text: str) -> str:
        """Return a part of the answer, and count it; raises StreamBroken if it is too long."""
        self._said_chars += len(text)
        if self._said_chars > MAX_SAID_CHARS:
            message = f"the endpoint sent more than {MAX_SAID_CHARS:,} characters in one answer"
            raise StreamBroken(message)
        return text

    def _draft(self, index: int | None, id_: str, name: str, *, is_stream: bool) -> _CallDraft:
        """Return the call that a fragment belongs to, or begin a new one.

        Raises:
            StreamBroken: The answer has too many calls.
        """
        draft = self._continued(index, id_, name) if is_stream else None
        if draft is not None:
            return draft
        if len(self._calls) >= MAX_CALLS:
            message = f"the endpoint sent more than {MAX_CALLS} calls in one answer"
            raise StreamBroken(message)
        highest = max(self._newest, default=-1)
        draft = _CallDraft(index=highest + 1 if index is None else index)
        self._calls.append(draft)
        self._newest[draft.index] = draft
        return draft

    def _continued(self, index: int | None, id_: str, name: str) -> _CallDraft | None:
        """Return the call that a fragment continues, None if it begins a new one.

        Gemini's compatible endpoint sends every call under index 0, each complete and with an id of its
        own; servers without an index name each new call. A fragment without a name always continues.
        """
        if index is not None:
            newest = self._newest.get(index)
        else:
            newest = self._calls[-1] if self._calls else None
        same_id = (one for one in self._calls if one.id == id_ and index in (None, one.index))
        if newest is None or not name or not newest.name:
            is_same = newest is None or id_ in (newest.id, "")
            return newest if is_same else next(same_id, newest)
        if index is None and newest.id == id_:
            return None if self._is_whole(newest) else newest
        if id_ in (newest.id, ""):
            return newest
        return None if index is None else next(same_id, None)

    def _is_whole(self, draft: _CallDraft) -> bool:
        """Return whether a call is complete, where only its arguments can tell."""
        self._read_chars += sum(map(len, draft.pieces))
        if self._read_chars > MAX_READ_CHARS:
            message = "the endpoint repeats the name of a call with each piece of it"
            raise StreamBroken(message)
        return draft.is_whole()

    def _whole_calls(self, reason: FinishReason) -> list[ToolCall]:
        """Return the calls in order of index; a call that a limit cut off is dropped (S0-23).

        Two calls with the same index keep the order in which they arrived.
        """
        cut = reason in ("length", "content_filter")
        drafts = [draft for draft in self._calls if not cut or draft.is_whole()]
        drafts.sort(key=lambda draft: draft.index)
        return [
            ToolCall(
                # An id is only a label (S1-18), but some endpoints reject an empty one later.
                id=draft.id or f"call_{number}",
                name=draft.name,
                arguments=_encoded_once(whole(draft.arguments)),
                extra=draft.extra,
            )
            for number, draft in enumerate(drafts)
        ]


def error_in(chunk: dict[str, object]) -> object:
    """Return the error in a chunk that has one in place of an answer, None for none."""
    for place in (chunk, *objects_at(chunk, "choices")):
        if place.get("error"):
            return place["error"]
    return chunk if chunk.get("object") == "error" else None  # vLLM


def _encoded_once(arguments: str) -> str:
    """Return arguments that were encoded twice as they were encoded first."""
    if not arguments.startswith('"'):
        return arguments
    try:
        inner = parse(arguments)
    except ValueError:
        return arguments
    return inner if isinstance(inner, str) and is_object_text(inner) else arguments


def _thinking(part: dict[str, object]) -> str:
    """Return the text of a Mistral `thinking` part."""
    inner = (text_at(piece, "text") for piece in objects_at(part, "thinking"))
    return "".join(inner) or text_at(part, "thinking")


def _reasoning(text: str, *, takes_back: bool = False) -> list[StreamEvent]:
    return [ReasoningDelta(text=text, takes_back=takes_back)] if text else []


def _usage(usage: dict[str, object]) -> Usage:
    """Read token counts; the field for cached ones varies (OpenAI, DeepSeek, Moonshot).

    xAI and Gemini count reasoning in the total only, though they charge for it (documents and
    reports read 2026-11).
    """
    counts = ("prompt_tokens", "completion_tokens", "total_tokens")
    sent, answered, total = (_tokens(usage, name) for name in counts)
    cached = (
        _tokens(object_at(usage, "prompt_tokens_details"), "cached_tokens")
        or _tokens(usage, "prompt_cache_hit_tokens")
        or _tokens(usage, "cached_tokens")
    )
    return Usage(
        input_tokens=sent,
        output_tokens=max(answered, total - sent if sent else 0),
        cached_tokens=cached,
    )


def _tokens(usage: dict[str, object], name: str) -> int:
    """Return a token count, 0 if it is missing or implausible.

    One absurd number would use up everyone's budgets for the day.
    """
    count = int_at(usage, name) or 0
    return count if 0 < count <= MAX_TOKENS else 0
