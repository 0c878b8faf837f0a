"""The tools, and what they are made of.

A `ModelTool` stands between a pydantic model and the contract's plain arguments; `readable` and
`quoted` make text out of bytes and names that may hold anything.
"""

import re
from collections.abc import Awaitable, Callable, Iterator, KeysView, Mapping
from functools import cached_property
from typing import Generic, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError, field_validator
from pydantic_core import ErrorDetails

from zeroclaw.errors import ToolArgumentsInvalid
from zeroclaw.text.escape import escape_invisible
from zeroclaw.text.language import Localized
from zeroclaw.tool import Arguments, ToolContext, ToolOutput, ToolSpec
from zeroclaw.value import Value

Model = TypeVar("Model", bound=BaseModel)


_DESCRIBED_BYTES = 16  # enough to know most formats by


class ToolArguments(BaseModel):
    """What a tool takes; unknown keys are faults, and so is a NUL in any text."""

    # Built by the first call: with its schema each takes two milliseconds of every start.
    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    @field_validator("*", mode="after")
    @classmethod
    def _without_nul(cls, value: object) -> object:
        # It ends a string for the kernel, so it may hide what follows; no text needs one.
        if isinstance(value, str) and "\0" in value:
            message = "must not hold a NUL character"
            raise ValueError(message)
        return value


class _Made(BaseModel):
    """The part of a generated schema that is used."""

    model_config = ConfigDict(defer_build=True)

    properties: dict[str, dict[str, object]] = {}
    required: list[str] = []


_LEFT_OUT = frozenset({"title", "minLength", "maxLength", "minItems", "maxItems"})
_LARGE = 100_000


class ModelSchema(Mapping[str, object]):
    """The JSON Schema of a flat model, without what only costs tokens; made when it is first read.

    Those are titles, and bounds that no honest call comes near: `check` refuses what is beyond them.
    """

    def __init__(self, model: type[BaseModel]) -> None:
        """Make nothing yet."""
        self._model = model

    def __getitem__(self, key: str) -> object:
        return self._made[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._made)

    def __len__(self) -> int:
        return len(self._made)

    def keys(self) -> KeysView[str]:
        """Return the names at once: `dict` asks for them, for each tool in each turn."""
        return self._made.keys()

    @cached_property
    def _made(self) -> dict[str, object]:
        made = _Made.model_validate(self._model.model_json_schema())
        return {
            "type": "object",
            "properties": {
                name: {key: value for key, value in field.items() if not _costs_only(key, value)}
                for name, field in made.properties.items()
            },
            "required": made.required,
            "additionalProperties": False,
        }


def _costs_only(key: str, value: object) -> bool:
    if key in _LEFT_OUT or not isinstance(value, int):
        return key in _LEFT_OUT
    return (key == "maximum" and value >= _LARGE) or (key == "minimum" and value <= 1)


def parse(model: type[Model], arguments: Arguments) -> Model:
    """Return the arguments, typed.

    Raises:
        ToolArgumentsInvalid: With every fault, none of which repeats a value.
    """
    try:
        return model.model_validate(dict(arguments))
    except ValidationError as error:
        found = error.errors(include_url=False, include_context=False, include_input=False)
        faults = tuple(_fault(one) for one in found)
        raise ToolArgumentsInvalid(faults) from None


def dump(model: BaseModel) -> Arguments:
    """Return typed arguments as plain values again, defaults filled in."""
    return model.model_dump()


class ModelTool(Value, Generic[Model]):
    """A tool made of a model of its arguments, and of what is done with them.

    Attributes:
        spec: What it declares.
        model: Its arguments.
        line: What a call would do, for people.
        reach: What a call would touch, see `Tool.resources`.
        work: Does it, see `Tool.run`.
        settled: Fills in and refuses what depends on settings; twice changes nothing more.
    """

    spec: ToolSpec
    model: type[Model]
    line: Callable[[Model], Localized]
    reach: Callable[[Model, ToolContext], Awaitable[tuple[str, ...]]]
    work: Callable[[Model, ToolContext], Awaitable[ToolOutput]]
    settled: Callable[[Model], Model] = lambda asked: asked

    def check(self, arguments: Arguments) -> Arguments:
        """Validate against the model and the settings."""
        return dump(self._asked(arguments))

    def describe(self, arguments: Arguments) -> Localized:
        """Return what the call would do."""
        return self.line(parse(self.model, arguments))

    async def resources(self, arguments: Arguments, context: ToolContext) -> tuple[str, ...]:
        """Return what the call would touch."""
        return await self.reach(self._asked(arguments), context)

    async def run(self, arguments: Arguments, context: ToolContext) -> ToolOutput:
        """Do it."""
        return await self.work(self._asked(arguments), context)

    def _asked(self, arguments: Arguments) -> Model:
        return self.settled(parse(self.model, arguments))


class Readable(Value):
    """Bytes made readable.

    Attributes:
        text: The text, or a line that describes data that is none.
        is_text: It is the text.
        bad_bytes: How many places were not UTF-8; each is shown as U+FFFD.
    """

    text: str
    is_text: bool
    bad_bytes: int = 0


def is_binary(data: bytes) -> bool:
    """Tell data from text by its first 8 KiB: text has no NUL and is nearly all UTF-8."""
    sample = data[:8192]
    if b"\0" in sample:
        return True
    # A mojibake letter or two is still text; one broken place in ten is not.
    return sample.decode("utf-8", "replace").count("\ufffd") * 10 > len(sample)


def readable(data: bytes) -> Readable:
    """Turn bytes into text, or into a description when they are none."""
    if is_binary(data):
        return Readable(text=described(data, len(data)), is_text=False)
    text = data.decode("utf-8", "replace")
    honest = data.count("\ufffd".encode())
    return Readable(text=text, is_text=True, bad_bytes=text.count("\ufffd") - honest)


def described(start: bytes, size_bytes: int) -> str:
    """Return the line that stands for data, by its size and its first bytes."""
    more = " …" if size_bytes > _DESCRIBED_BYTES else ""
    size = counted(size_bytes, "byte")
    return f"[{size} of data, not text: {start[:_DESCRIBED_BYTES].hex(' ')}{more}]"


# CSI and OSC sequences and two-character escapes (ECMA-48), then what is left of C0 and C1.
_ESCAPES = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]{0,2000}(?:\x07|\x1b\\)|\x1b[ -~]")
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def without_controls(text: str) -> str:
    """Drop what moves a cursor or colours a letter; lines end in one newline."""
    return _CONTROLS.sub("", _ESCAPES.sub("", text.replace("\r\n", "\n").replace("\r", "\n")))


def quoted(text: str, *, limit_chars: int = 200) -> str:
    """Return text that others chose in backticks, on one line and not too long."""
    seen = escape_invisible(text).replace("`", "'")
    line = "".join(letter if letter.isprintable() else " " for letter in seen)
    cut = line if len(line) <= limit_chars else f"{line[:limit_chars]}…"
    return f"`{cut}`"


def fenced(text: str) -> str:
    """Return a text in a code fence that nothing in it can close."""
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}\n{text.rstrip()}\n{fence}"


def counted(count: int, one: str) -> str:
    """Return a number and what it counts: `1 byte`, `1,200 bytes`."""
    return f"{count:,} {one}" if count == 1 else f"{count:,} {one}s"


def _fault(found: ErrorDetails) -> str:
    path = ".".join(str(part) for part in found["loc"]) or "arguments"
    message = found["msg"].removeprefix("Value error, ")
    return f"{path}: {message[:1].lower()}{message[1:]}"
