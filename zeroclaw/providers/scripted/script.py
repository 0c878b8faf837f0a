"""Parses a script and finds its next answer in a conversation.

Pure. A script is TOML:

    otherwise = "I have no line for that."      # if no turn matches; without it, an error

    [[turn]]                                    # what happens after one user message
    when = "weather"                            # only after messages that contain this, in any case

    [[turn.answer]]                             # one answer of the model
    steps = [{ say = "Let me look." }, { call = "shell", arguments = { command = "date" } }]

    [[turn.answer]]                             # the next one, after the tool's result
    steps = [{ say = "Done: {{result}}", chunk_chars = 4, delay_s = 0.05 }]

Turns without `when` are taken in order. The position in the script is derived from a conversation's
messages and never stored, so a script continues after a restart and serves many conversations at
once. In texts, `{{user}}` is the newest user message, `{{result}}` the newest tool result, and
`{{receipt}}` the last receipt in that result.
"""

import json
import re
import tomllib
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag, ValidationError

from zeroclaw.errors import ConfigError, ProviderRejected
from zeroclaw.message import AssistantMessage, Message, ToolMessage, UserMessage

FailKind = Literal["overloaded", "rejected", "unauthorized", "overflow", "cut"]
# The shape only: the reader of a receipt verifies it.
RECEIPT = re.compile(r"zc-receipt-\d+-[A-Za-z0-9_-]+")
PLACEHOLDER = re.compile(r"\{\{(user|result|receipt)\}\}")

Seconds = Annotated[float, Field(ge=0)]


class _Table(BaseModel):
    """A table of a script: frozen; unknown keys are faults."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Say(_Table):
    """Text, in deltas of `chunk_chars` characters with `delay_s` before each."""

    say: str
    chunk_chars: Annotated[int, Field(ge=1)] = 12
    delay_s: Seconds = 0.0


class Reason(_Table):
    """Flat reasoning, in deltas like `Say`."""

    reason: str
    chunk_chars: Annotated[int, Field(ge=1)] = 12
    delay_s: Seconds = 0.0


class Call(_Table):
    """A tool call; `arguments` given as a string are sent as they are."""

    call: str
    arguments: dict[str, object] | str = Field(default_factory=dict[str, object])
    id: str = ""


class Tokens(_Table):
    """The token counts to report."""

    input_tokens: Annotated[int, Field(ge=0)] = 0
    output_tokens: Annotated[int, Field(ge=0)] = 0
    cached_tokens: Annotated[int, Field(ge=0)] = 0


class Report(_Table):
    """A usage report; without one, words are counted as tokens."""

    usage: Tokens


class Pause(_Table):
    """A pause of `wait_s` seconds."""

    wait_s: Seconds


class Fail(_Table):
    """An error of the provider contract, raised the first `times` times (0: always)."""

    fail: FailKind
    message: str = "the script says so"
    retry_after_s: Seconds | None = None
    times: Annotated[int, Field(ge=0)] = 0


class Finish(_Table):
    """Overrides the finish reason that the steps imply."""

    finish: Literal["stop", "length", "content_filter", "tool_calls"]


_KINDS = ("say", "reason", "call", "usage", "wait_s", "fail", "finish")
_KIND_AT = 6
"""In pydantic's path of a fault in a step, this part, after `turn, 0, answer, 0, steps, 0`, is the
step's kind and not a key."""
_NO_STEP = f"exactly one of {', '.join(_KINDS)} is needed"


def _kind(step: object) -> str | None:
    """Return the kind of a step, raw or parsed, by its identifying key; None if unclear."""
    keys = step.__class__.model_fields if isinstance(step, _Table) else step
    kinds = [kind for kind in _KINDS if isinstance(keys, dict) and kind in keys]
    return kinds[0] if len(kinds) == 1 else None


_AnyStep = Annotated[
    Annotated[Say, Tag("say")]
    | Annotated[Reason, Tag("reason")]
    | Annotated[Call, Tag("call")]
    | Annotated[Report, Tag("usage")]
    | Annotated[Pause, Tag("wait_s")]
    | Annotated[Fail, Tag("fail")]
    | Annotated[Finish, Tag("finish")],
    Discriminator(_kind, custom_error_type="no_step", custom_error_message=_NO_STEP),
]


class ScriptedAnswer(_Table):
    """One answer of the model: its steps in order."""

    steps: list[_AnyStep] = Field(min_length=1)


class Turn(_Table):
    """The answers to one user message, in order; each tool result leads to the next."""

    when: str = ""
    answer: list[ScriptedAnswer] = Field(min_length=1)


class Script(_Table):
    """A whole script."""

    turn: list[Turn] = Field(default_factory=list[Turn])
    otherwise: str | None = None


def parse_script(text: str) -> Script:
    """Parse a script.

    Raises:
        ConfigError: Lists every fault with its place.
    """
    try:
        return Script.model_validate(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise ConfigError((f"script: not valid TOML: {str(error).lower()}",)) from error
    except ValidationError as error:
        faults = ((_path(fault["loc"]), fault["msg"]) for fault in error.errors())
        raise ConfigError(tuple(f"{path}: {line.lower()}" for path, line in faults)) from error


def next_answer(script: Script, messages: tuple[Message, ...]) -> ScriptedAnswer:
    """Return the model's next answer in a conversation.

    Raises:
        ProviderRejected: The script has no answer for it.
    """
    user_messages = [
        (index, message)
        for index, message in enumerate(messages)
        if isinstance(message, UserMessage) and not message.note
    ]
    if not user_messages:
        message = "the script answers people, and there is no message of a person"
        raise ProviderRejected(message)
    last, newest = user_messages[-1]
    answered = sum(isinstance(message, AssistantMessage) for message in messages[last:])
    turn = _turn(script, [message.content for _, message in user_messages])
    if turn is not None and answered < len(turn.answer):
        return turn.answer[answered]
    if script.otherwise is not None:
        return ScriptedAnswer(steps=[Say(say=script.otherwise)])
    excerpt = " ".join(newest.content.split())[:40]
    message = f"the script has no answer {answered + 1} to `{excerpt}`"
    raise ProviderRejected(message)


def fill_in(text: str, messages: tuple[Message, ...]) -> str:
    """Replace the placeholders in a text by the conversation's own text."""
    users = [message.content for message in messages if isinstance(message, UserMessage)]
    results = [message.content for message in messages if isinstance(message, ToolMessage)]
    result = results[-1] if results else ""
    receipts = RECEIPT.findall(result)
    values = {
        "user": users[-1] if users else "",
        "result": result,
        "receipt": receipts[-1] if receipts else "",
    }
    return PLACEHOLDER.sub(lambda match: values[match[1]], text)


def arguments_text(call: Call, messages: tuple[Message, ...]) -> str:
    """Return a call's arguments as a model would write them."""
    if isinstance(call.arguments, str):
        return fill_in(call.arguments, messages)
    return json.dumps(call.arguments, ensure_ascii=False)


def _turn(script: Script, texts: list[str]) -> Turn | None:
    """Return the turn for the newest user message: by its `when`, else the next in order."""
    in_order = [turn for turn in script.turn if not turn.when]
    index = -1
    found: Turn | None = None
    for text in texts:
        matching = [turn for turn in script.turn if turn.when and turn.when.lower() in text.lower()]
        if matching:
            found = matching[0]
        else:
            index += 1
            found = in_order[index] if index < len(in_order) else None
    return found


def _path(place: tuple[str | int, ...]) -> str:
    """Return a fault's place as `script.turn[0].answer[1].steps[2].say`; counts from zero."""
    text = "script"
    for part in (*place[:_KIND_AT], *place[_KIND_AT + 1 :]):
        text += f"[{part}]" if isinstance(part, int) else f".{part}"
    return text
