"""Tries a model: does it answer, does it stream, does it call a tool, and how fast is it?

Uses only the provider's contract, so it sees exactly what a turn would see.
"""

from collections.abc import Iterator, Mapping
from contextlib import aclosing
from typing import Literal

from zeroclaw.clock import Clock
from zeroclaw.errors import ZeroclawError
from zeroclaw.host.clock import SystemClock
from zeroclaw.json_fields import is_object, parse, text_at
from zeroclaw.message import FileKind, SystemMessage, ToolCall, ToolDefinition, UserMessage
from zeroclaw.provider import (
    Finished,
    Measuring,
    ModelRequest,
    Preloading,
    Provider,
    ReasoningDelta,
    TextDelta,
    ToolCallReady,
    UsageReported,
)
from zeroclaw.text.escape import shortened
from zeroclaw.value import Struct, replace

# Limits for a model that does not stop; a call may come after long reasoning.
ANSWER_TOKENS = 512
CALL_TOKENS = 2048
# Limit for a greeting, and for a model that is sent no tools.
BRIEF_TOKENS = 64
WORD = "lobster"
TOOL = ToolDefinition(
    name="repeat_word",
    description="Repeat one word. Used to see whether tools work; does nothing else.",
    parameters={
        "type": "object",
        "properties": {"word": {"type": "string", "description": "The word to repeat."}},
        "required": ["word"],
    },
)


def _request(
    prompt: str, tokens: int, instruction: str = "", tools: tuple[ToolDefinition, ...] = ()
) -> ModelRequest:
    system = SystemMessage(content=f"You are a helpful assistant.{instruction}")
    return ModelRequest(
        messages=(system, UserMessage(content=prompt)),
        tools=tools,
        max_output_tokens=tokens,
        correlation="models-test",
    )


ANSWER = _request("Say in one or two sentences what a lobster is.", ANSWER_TOKENS)
BRIEF = _request("Say hello in one word.", BRIEF_TOKENS)
CALL = _request(
    f"Call the tool {TOOL.name} with the word {WORD}.",
    CALL_TOKENS,
    " Use a tool when you are asked to.",
    (TOOL,),
)

Calling = Literal["called", "wrong", "none", "failed"]


class MeasuredAnswer(Struct, kw_only=True):
    """One answer, measured.

    Attributes:
        text: Its text.
        pieces: Pieces of text and reasoning, as sent by the endpoint.
        first_s: Seconds until the first piece or call, None if none came.
        writing_s: Seconds from the first piece to the last.
        tokens: Tokens of the answer; None if the endpoint does not report them.
        calls: Its calls, in order.
        is_cut: It reached its token limit.
        failed: Why it ended early, empty if it did not.
    """

    text: str = ""
    pieces: int = 0
    first_s: float | None = None
    writing_s: float = 0.0
    tokens: int | None = None
    calls: tuple[ToolCall, ...] = ()
    is_cut: bool = False
    failed: str = ""

    @property
    def per_second(self) -> float | None:
        """Tokens per second while it wrote; None if there is nothing to measure."""
        count = (self.tokens if self.tokens is not None else self.pieces) - 1
        return count / self.writing_s if count > 0 and self.writing_s > 0 else None


class Trial(Struct, kw_only=True):
    """The results of trying a model.

    Attributes:
        load_s: Seconds to get ready, None if there is nothing to load.
        call: The answer to the request to call a tool; None if that was not requested.
        takes: Kinds of files that it accepts besides text, as configured or known.
        window: Its window in tokens and the source of that number; empty if unknown.
        counted_by: What counts its tokens, empty if they are estimated.
    """

    model: str
    takes: tuple[FileKind, ...] = ()
    window: str = ""
    counted_by: str = ""
    load_s: float | None = None
    answer: MeasuredAnswer
    call: MeasuredAnswer | None = None

    @property
    def answers(self) -> bool:
        """Whether it sent text and finished."""
        return self.answer.pieces > 0 and not self.answer.failed

    @property
    def calling(self) -> Calling:
        """The result of the request to call a tool."""
        if self.call is None or not (self.call.calls or self.call.failed):
            return "none"
        if not self.call.calls:
            return "failed"
        return "called" if any(map(_is_right, self.call.calls)) else "wrong"


async def try_and_close(
    provider: Provider, clock: Clock | None = None, *, is_brief: bool = False
) -> Trial:
    """Ask a model for an answer and, after one, for a tool call; then close it.

    Args:
        provider: The model; it is loaded first if necessary.
        clock: This machine's clock, unless a test passes another.
        is_brief: One word is enough, and no tool is called.
    """
    clock = clock or SystemClock()
    takes = tuple(sorted(provider.facts.takes))
    trial = Trial(model=provider.facts.model, takes=takes, answer=MeasuredAnswer())
    async with aclosing(provider):
        try:
            if isinstance(provider, Preloading):
                started = clock.monotonic()
                await provider.start()
                trial.load_s = clock.monotonic() - started
        except ZeroclawError as error:
            trial.answer.failed = _line(error)
            return trial
        if isinstance(provider, Measuring):
            await provider.measure()
        facts = provider.facts
        trial.counted_by = facts.counted_by
        if facts.context_tokens is not None:
            source = facts.context_from or "its provider"
            trial.window = f"{facts.context_tokens:,} tokens ({source})"
        trial.answer = await _play(provider, BRIEF if is_brief else ANSWER, clock)
        if is_brief or not trial.answers:
            return trial
        calls_tools = provider.facts.calls_tools
        request = CALL if calls_tools else replace(CALL, max_output_tokens=BRIEF_TOKENS)
        trial.call = await _play(provider, request, clock)
    # A model that is sent no tools did not run out of tokens while reasoning about them.
    trial.call.is_cut &= calls_tools
    return trial


def verdict(trial: Trial) -> str:
    """Return one sentence on what the model is good for."""
    name = f"`{trial.model}`"
    if not trial.answers:
        return f"{name} does not answer: {trial.answer.failed or 'it sent nothing'}"
    manner = "streams" if trial.answer.pieces > 1 else "answers in one piece"
    call = trial.call or MeasuredAnswer()
    end = f" within {CALL_TOKENS} tokens" if call.is_cut else ": it can chat, and nothing else"
    calls = {
        "called": "and calls tools: it can do all that zeroclaw offers",
        "wrong": "but calls tools wrongly: expect calls that fail",
        "failed": f"but makes no tool call: with tools its endpoint says: {call.failed}",
        "none": f"but makes no tool call{end}",
    }
    return f"{name} {manner} {calls[trial.calling]}"


def in_words(trial: Trial) -> Iterator[str]:
    """Yield the results as lines for a person; the verdict comes last."""
    answer = trial.answer
    if trial.load_s is not None:
        yield f"load         {trial.load_s:.2f} s"
    if answer.first_s is not None:
        yield f"first token  {answer.first_s:.2f} s"
        yield f"speed        {_speed(answer)}"
        yield f"answer       {_short(answer.text)}"
    if "</think>" in answer.text:  # an answer about tags looks the same
        yield "reasoning    is in the answer: give its server a parser for its reasoning"
    if trial.answers:
        yield f"tool call    {_call_in_words(trial)}"
        yield f"window       {trial.window or 'unknown until the first refusal'}"
        yield f"tokens       {f'counted by {trial.counted_by}' if trial.counted_by else 'estimated'}"
        yield f"accepts      {', '.join(('text', *trial.takes))}"
    yield verdict(trial)


def as_json(trial: Trial) -> Mapping[str, object]:
    """Return the results as JSON."""
    return {
        "model": trial.model,
        "answers": trial.answers,
        "streams": trial.answers and trial.answer.pieces > 1,
        "tool_call": trial.calling,
        "takes": trial.takes,
        "window": trial.window,
        "counted_by": trial.counted_by,
        "load_s": trial.load_s,
        "first_token_s": trial.answer.first_s,
        "tokens_per_s": trial.answer.per_second,
        "verdict": verdict(trial),
    }


async def _play(provider: Provider, request: ModelRequest, clock: Clock) -> MeasuredAnswer:
    answer, began = MeasuredAnswer(), clock.monotonic()
    try:
        async with aclosing(provider.stream(request)) as events:
            async for event in events:
                passed_s = clock.monotonic() - began
                first_s = passed_s if answer.first_s is None else answer.first_s
                match event:
                    case TextDelta(text=text, joined=pieces):
                        # A fast server's pieces arrive together, but it streams all the same.
                        answer.text += text
                        answer.pieces += pieces
                        answer.first_s, answer.writing_s = first_s, passed_s - first_s
                    case ReasoningDelta(takes_back=takes_back):
                        answer.text = "" if takes_back else answer.text
                        answer.pieces += 1
                        answer.first_s, answer.writing_s = first_s, passed_s - first_s
                    case ToolCallReady(call=call):
                        answer.calls, answer.first_s = (*answer.calls, call), first_s
                    case UsageReported(usage=usage):
                        answer.tokens = usage.output_tokens or None
                    case Finished(reason=reason):
                        answer.is_cut = reason == "length"
    except ZeroclawError as error:
        answer.failed = _line(error)
    return answer


def _is_right(call: ToolCall) -> bool:
    """Whether a call is the requested one."""
    try:
        arguments = parse(call.arguments)
    except ValueError:
        return False
    word = text_at(arguments, "word") if is_object(arguments) else ""
    return call.name == TOOL.name and word.strip().lower() == WORD


def _call_in_words(trial: Trial) -> str:
    if trial.calling == "called":
        return "yes"
    calls = () if trial.call is None else trial.call.calls
    text = _short("; ".join(f"{call.name} {call.arguments}" for call in calls))
    return f"wrong: {text}" if calls else "no tool call"


def _speed(answer: MeasuredAnswer) -> str:
    if answer.per_second is None:
        return "came in one piece" if answer.pieces < 2 else "too fast to measure"  # noqa: PLR2004
    about = "" if answer.tokens is not None else "about "
    return f"{about}{answer.per_second:.0f} tokens a second"


def _short(text: str) -> str:
    printable = "".join(char if char.isprintable() else " " for char in text)
    return shortened(" ".join(printable.split()), 100)


def _line(error: ZeroclawError) -> str:
    return " ".join(str(error).split())
