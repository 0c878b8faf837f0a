"""The built-in tools and the parts they share.

A `ModelTool` translates between a pydantic model and the contract's plain arguments. `readable` and
`quoted` turn arbitrary bytes and names into text.
"""

import re
from collections.abc import Awaitable, Callable, Iterator, KeysView, Mapping
from functools import cached_property
from typing import Generic, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError, field_validator
from pydantic_core import ErrorDetails

from zeroclaw.errors import ToolArgumentsInvalid
from zeroclaw.text.escape import escape_invisible, shortened
from zeroclaw.text.language import Localized
from zeroclaw.tool import Arguments, ToolContext, ToolOutput, ToolSpec
from zeroclaw.value import Value

Model = TypeVar("Model", bound=BaseModel)


_DESCRIBED_BYTES = 16  # enough to recognise most formats


class ToolArguments(BaseModel):
    """Base of all tool arguments; unknown keys and NUL characters are faults."""

    # Deferred to the first call: building each schema adds 2 ms to every start.
    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    @field_validator("*", mode="after")
    @classmethod
    def _without_nul(cls, value: object) -> object:
        # The kernel ends a string at NUL, so one may hide the rest. No text needs it.
        if isinstance(value, str) and "\0" in value:
            message = "must not hold a NUL character"
            raise ValueError(message)
        return value


class _GeneratedSchema(BaseModel):
    """The used parts of a generated schema."""

    model_config = ConfigDict(defer_build=True)

    properties: dict[str, dict[str, object]] = {}
    required: list[str] = []


_OMITTED_KEYS = frozenset({"title", "minLength", "maxLength", "minItems", "maxItems"})
_LARGE = 100_000


class ModelSchema(Mapping[str, object]):
    """The JSON Schema of a flat model, generated on first read and trimmed to save tokens.

    It leaves out titles, and bounds that no honest call comes near: `check` still enforces them.
    """

    def __init__(self, model: type[BaseModel]) -> None:
        """Store the model; nothing is generated yet."""
        self._model = model

    def __getitem__(self, key: str) -> object:
        return self._trimmed[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._trimmed)

    def __len__(self) -> int:
        return len(self._trimmed)

    def keys(self) -> KeysView[str]:
        """Return the keys without iterating: `dict` asks for them, per tool and turn."""
        return self._trimmed.keys()

    @cached_property
    def _trimmed(self) -> dict[str, object]:
        schema = _GeneratedSchema.model_validate(self._model.model_json_schema())
        return {
            "type": "object",
            "properties": {
                name: {key: value for key, value in field.items() if not _is_costly(key, value)}
                for name, field in schema.properties.items()
            },
            "required": schema.required,
            "additionalProperties": False,
        }


def _is_costly(key: str, value: object) -> bool:
    if key in _OMITTED_KEYS or not isinstance(value, int):
        return key in _OMITTED_KEYS
    return (key == "maximum" and value >= _LARGE) or (key == "minimum" and value <= 1)


def parse(model: type[Model], arguments: Arguments) -> Model:
    """Return the arguments as an instance of the model.

    Raises:
        ToolArgumentsInvalid: With every fault; none repeats a value.
    """
    try:
        return model.model_validate(dict(arguments))
    except ValidationError as error:
        found = error.errors(include_url=False, include_context=False, include_input=False)
        raise ToolArgumentsInvalid(tuple(map(_fault, found))) from None


def read_spec(name: str, description: str, model: type[BaseModel], timeout_s: float) -> ToolSpec:
    """Return the declaration of a tool that only reads data of its conversation."""
    return ToolSpec(
        name=name,
        description=description,
        parameters=ModelSchema(model),
        effects=frozenset({"read"}),
        idempotent=True,
        risk="low",
        timeout_s=timeout_s,
    )


class ModelTool(Value, Generic[Model]):
    """A tool built from a pydantic model of its arguments and a few functions.

    Attributes:
        spec: The tool's declaration.
        model: The model of its arguments.
        summary: Returns one line about a call for people, see `Tool.describe`.
        find_resources: Returns the resources of a call, see `Tool.resources`; on the event loop.
        handler: Runs a call, see `Tool.run`.
        apply_settings: Applies the settings to parsed arguments: fills in defaults, refuses bad values.
            Must be idempotent.
    """

    spec: ToolSpec
    model: type[Model]
    summary: Callable[[Model], Localized]
    find_resources: Callable[[Model, ToolContext], tuple[str, ...]]
    handler: Callable[[Model, ToolContext], Awaitable[ToolOutput]]
    apply_settings: Callable[[Model], Model] = lambda arguments: arguments

    def check(self, arguments: Arguments) -> Arguments:
        """Validate against the model and the settings; fills in defaults."""
        return self._parsed(arguments).model_dump()

    def describe(self, arguments: Arguments) -> Localized:
        """Return one line about the call."""
        return self.summary(parse(self.model, arguments))

    async def resources(self, arguments: Arguments, context: ToolContext) -> tuple[str, ...]:
        """Return the resources that the call would touch."""
        return self.find_resources(self._parsed(arguments), context)

    async def run(self, arguments: Arguments, context: ToolContext) -> ToolOutput:
        """Run the call."""
        return await self.handler(self._parsed(arguments), context)

    def _parsed(self, arguments: Arguments) -> Model:
        return self.apply_settings(parse(self.model, arguments))


class Readable(Value):
    """Bytes as readable text.

    Attributes:
        text: The text, or one line that describes binary data.
        is_text: Whether the bytes were text.
        bad_bytes: Number of places that were not UTF-8; each is shown as U+FFFD.
    """

    text: str
    is_text: bool
    bad_bytes: int = 0


def is_binary(data: bytes) -> bool:
    """Whether the first 8 KiB look binary: they contain a NUL, or too many bytes that are not UTF-8."""
    sample = data[:8192]
    if b"\0" in sample:
        return True
    # A mojibake letter or two is still text; one bad place in ten bytes is not.
    return sample.decode("utf-8", "replace").count("\ufffd") * 10 > len(sample)


def readable(data: bytes) -> Readable:
    """Decode bytes as text, or describe them if they are binary."""
    if is_binary(data):
        return Readable(text=described(data, len(data)), is_text=False)
    text = data.decode("utf-8", "replace")
    honest = data.count("\ufffd".encode())
    return Readable(text=text, is_text=True, bad_bytes=text.count("\ufffd") - honest)


def described(start: bytes, size_bytes: int) -> str:
    """Return a one-line description of binary data: its size and its first bytes."""
    ellipsis = " …" if size_bytes > _DESCRIBED_BYTES else ""
    size = counted(size_bytes, "byte")
    return f"[{size} of data, not text: {start[:_DESCRIBED_BYTES].hex(' ')}{ellipsis}]"


# CSI and OSC sequences and two-character escapes (ECMA-48), then the remaining C0 and C1 controls.
_ESCAPES = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]{0,2000}(?:\x07|\x1b\\)|\x1b[ -~]")
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def without_controls(text: str) -> str:
    """Remove terminal escapes and control characters; normalise line ends to newlines."""
    return _CONTROLS.sub("", _ESCAPES.sub("", text.replace("\r\n", "\n").replace("\r", "\n")))


def quoted(text: str, *, limit_chars: int = 200) -> str:
    """Return untrusted text in backticks, on one line, escaped and capped."""
    # Twice the limit, as a line end of two characters becomes one.
    escaped = escape_invisible(text[: 2 * limit_chars + 2]).replace("`", "'")
    line = "".join(letter if letter.isprintable() else " " for letter in escaped)
    return f"`{shortened(line, limit_chars)}`"


def fenced(text: str) -> str:
    """Return text in a code fence that it cannot close."""
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
    return f"{fence}\n{text.rstrip()}\n{fence}"


def counted(count: int, noun: str) -> str:
    """Return a count with its noun: `1 byte`, `1,200 bytes`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def _fault(error: ErrorDetails) -> str:
    path = ".".join(str(part) for part in error["loc"]) or "arguments"
    message = error["msg"].removeprefix("Value error, ")
    return f"{path}: {message[:1].lower()}{message[1:]}"
