"""The marks (entities) of a text, with offsets in UTF-16 code units, as Telegram counts.

Marks come from a list (`entities`), from markup, or are detected in the text. They are sorted, and
marks that Telegram does not allow inside others are dropped.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import accumulate

from channels.telegram.emulator.refusals import bad_request, can_not_parse
from channels.telegram.emulator.wire import Json, is_array, is_number, is_object, text_of
from zeroclaw import Value, replace

MAX_ENTITIES = 100
"""Further marks are dropped (Telegram's limit, not documented in the Bot API)."""
DETECTED = ("mention", "hashtag", "cashtag", "bot_command", "url", "email", "phone_number")
FORMATTING = (
    "bold",
    "italic",
    "underline",
    "strikethrough",
    "spoiler",
    "blockquote",
    "expandable_blockquote",
    "code",
    "pre",
    "text_link",
    "text_mention",
    "custom_emoji",
    "date_time",
)
BLOCKQUOTES = ("blockquote", "expandable_blockquote")
ALONE = ("code", "pre")
# Characters that take two code units, and lone halves of these.
_PAIRS = re.compile("[\\U00010000-\\U0010ffff]")
_SURROGATES = re.compile("[\\ud800-\\udfff]")


def utf16(text: str) -> int:
    """Return a text's length in UTF-16 code units."""
    return len(text) + len(_PAIRS.findall(text))


class Entity(Value):
    """One mark.

    Attributes:
        offset: Its start in UTF-16 code units.
        length: Its length in UTF-16 code units.
        extra: Other fields such as `url`, `language` or `user`, as sorted pairs.
    """

    type: str
    offset: int
    length: int
    extra: tuple[tuple[str, object], ...] = ()

    @property
    def end(self) -> int:
        """Its end in UTF-16 code units."""
        return self.offset + self.length

    def to_json(self) -> Json:
        """Return it as a `MessageEntity`."""
        return {"type": self.type, "offset": self.offset, "length": self.length, **dict(self.extra)}


class Formatted(Value):
    """A text and its marks."""

    text: str = ""
    entities: tuple[Entity, ...] = ()

    @property
    def length(self) -> int:
        """The length in UTF-16 code units."""
        return utf16(self.text)


def parse_entities(value: list[object]) -> tuple[Entity, ...]:
    """Parse a list of `MessageEntity`.

    Raises:
        Refused: One of them is invalid.
    """
    return tuple(_from_json(item) for item in value)


def _from_json(value: object) -> Entity:
    if not is_object(value):
        raise can_not_parse("expected an Object")
    offset, length, kind = value.get("offset"), value.get("length"), text_of(value, "type")
    if not is_number(offset) or not is_number(length):
        raise can_not_parse("offset and length of an entity must be whole numbers")
    if kind not in FORMATTING and kind not in DETECTED:
        raise can_not_parse("unsupported type of an entity specified")
    names = ("url", "language", "user", "custom_emoji_id", "unix_time", "date_time_format")
    extra = tuple((name, value[name]) for name in sorted(names) if name in value)
    return Entity(type=kind, offset=offset, length=length, extra=extra)


def normalized(text: str, entities: Collection[Entity]) -> Formatted:
    """Trim a text and sort its marks.

    Raises:
        Refused: A mark is outside of the text, or begins or ends inside a character.
    """
    _check(text, entities)
    trimmed = text.lstrip()
    cut = utf16(text) - utf16(trimmed)
    trimmed = trimmed.rstrip()
    size = utf16(trimmed)
    clipped = [_clipped(entity, cut, size) for entity in entities]
    allowed = _allowed(sorted((entity for entity in clipped if entity.length > 0), key=_order))
    return Formatted(text=trimmed, entities=tuple(allowed)[:MAX_ENTITIES])


def _order(entity: Entity) -> tuple[int, int, int]:
    rank = FORMATTING.index(entity.type) if entity.type in FORMATTING else -1
    return (entity.offset, -entity.length, -rank)


def _clipped(entity: Entity, cut: int, size: int) -> Entity:
    start = min(max(entity.offset - cut, 0), size)
    end = min(max(entity.end - cut, 0), size)
    return replace(entity, offset=start, length=end - start)


def _check(text: str, entities: Collection[Entity]) -> None:
    if _SURROGATES.search(text):
        raise bad_request("strings must be encoded in UTF-8")
    if not entities:
        return
    edges = {0, *accumulate(utf16(character) for character in text)}
    at = max(edges)
    for entity in entities:
        if entity.offset < 0 or entity.length < 0:
            raise bad_request("receive an entity with incorrect offset or length")
        if entity.end > at:
            raise bad_request(
                f"entity beginning at UTF-16 offset {entity.offset} ends after the end of the text"
                f" at UTF-16 offset {at}"
            )
        if entity.offset not in edges:
            raise bad_request("entity begins in a middle of a UTF-16 symbol")
        if entity.end not in edges:
            raise bad_request("entity ends in a middle of a UTF-16 symbol")


def _allowed(entities: Iterable[Entity]) -> Iterator[Entity]:
    """Drop marks that are not allowed inside another one, and clip overlapping ones to the outer."""
    around: list[Entity] = []
    for entity in entities:
        while around and around[-1].end <= entity.offset:
            around.pop()
        if any(outer.type in ALONE for outer in around):
            continue
        if any(outer.type == entity.type for outer in around):
            continue
        if entity.type in BLOCKQUOTES and any(outer.type in BLOCKQUOTES for outer in around):
            continue
        inner = entity
        if around and around[-1].end < entity.end:
            inner = replace(entity, length=around[-1].end - entity.offset)
        around.append(inner)
        yield inner


# --- detection of marks in a text ------------------------------------------------------------------

_FINDERS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("url", re.compile(r"\b(?:https?://|www\.)[^\s<>\"]*[^\s<>\".,;:!?'()\[\]]", re.IGNORECASE)),
    ("email", re.compile(r"\b[\w.+-]+@[\w-]+(?:\.[\w-]+)+\b")),
    ("bot_command", re.compile(r"(?<![\w/])/[A-Za-z0-9_]{1,64}(?:@[A-Za-z0-9_]{3,32})?\b")),
    ("mention", re.compile(r"(?<![\w@])@[A-Za-z0-9_]{3,32}\b")),
    ("hashtag", re.compile(r"(?<![\w#])#\w*[^\W\d]\w*")),
)
_OPAQUE = (*ALONE, "text_link", "text_mention")


def with_detected(formatted: Formatted) -> Formatted:
    """Add the marks that Telegram detects by itself: URLs, mentions, commands and hashtags."""
    fixed = [entity for entity in formatted.entities if entity.type in _OPAQUE]
    found: list[Entity] = []
    for kind, pattern in _FINDERS:
        for match in pattern.finditer(formatted.text):
            start = utf16(formatted.text[: match.start()])
            entity = Entity(type=kind, offset=start, length=utf16(match.group()))
            if not any(_overlap(entity, other) for other in (*fixed, *found)):
                found.append(entity)
    if not found:
        return formatted
    entities = _allowed(sorted((*formatted.entities, *found), key=_order))
    return replace(formatted, entities=tuple(entities)[:MAX_ENTITIES])


def _overlap(first: Entity, second: Entity) -> bool:
    return first.offset < second.end and second.offset < first.end


Parse = Callable[[str], tuple[str, tuple[Entity, ...]]]


def read_text(
    text: str, *, entities: list[object] | None, parse: Parse | None, detect: bool = True
) -> Formatted:
    """Read a text with its marks, as a bot sends it.

    Args:
        text: The text as sent.
        entities: `entities`, used only for a text without markup.
        parse: The parser of the markup, None for plain text.
        detect: Detect URLs, mentions and the like, as Telegram does.

    Raises:
        Refused: The markup or a mark is invalid.
    """
    if parse is not None:
        plain, parsed = parse(text)
    else:
        plain, parsed = text, parse_entities(entities) if is_array(entities) else ()
    formatted = normalized(plain, parsed)
    return with_detected(formatted) if detect else formatted
