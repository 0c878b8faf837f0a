"""Short texts that are kept for later, and the tools for them: `remember`, `recall`, `forget_note`.

Whose a note is follows from where it is made, and nothing in a call can change it: in a direct
chat it is that person's, wherever they write from; in any other chat it is that chat's, thread by
thread. Each call sees the notes of this one owner and no other, so a group never reads what
somebody said in private, and nobody reads another person's. The owner is also the call's only
resource, `notes:of:<principal>` or `notes:in:<chat>`.

A search ranks all notes of an owner, which are few, and so needs no index: whatever stores rows can
do it, and any language is searched.
"""

import re
import unicodedata
from collections.abc import Awaitable, Callable, Iterable, Sequence
from datetime import UTC, datetime
from typing import Literal, Protocol, TypeVar
from urllib.parse import quote, unquote

from pydantic import Field

from zeroclaw.config.model import NotesSettings
from zeroclaw.envelope import Address, ConversationId, Principal
from zeroclaw.errors import ToolArgumentsInvalid, ToolFailed
from zeroclaw.redact import holds_marker
from zeroclaw.text import catalogue
from zeroclaw.text.escape import escape_for_model
from zeroclaw.text.language import Localized
from zeroclaw.tool import Effect, Tool, ToolContext, ToolOutput, ToolSpec
from zeroclaw.tools import (
    ModelTool,
    ToolArguments,
    counted,
    fenced,
    quoted,
    schema,
    without_controls,
)
from zeroclaw.value import Value

_TIMEOUT_S = 30.0
_ANSWER_CHARS = 8_000  # of one `recall`, so that the runtime need not cut it
_MOST_FOUND = 50
_OF = "of:"
_NAME_CHARS = 64
_Asked = TypeVar("_Asked", bound=ToolArguments)


class Note(Value):
    """A kept text.

    Attributes:
        number: What it is called by; counts from 1 for each owner, and is never given twice.
        text: As it was said, without spaces at its ends.
        by: Who said it, as the chat shows them.
        at: When; aware.
        conversation: Where it was said.
        trusted: The turn that kept it held no text that nobody here vouches for.
        channel: On which channel it was said; empty where an older release kept it.
    """

    number: int
    text: str
    by: str
    at: datetime
    conversation: ConversationId
    trusted: bool = False
    channel: str = ""


class Kept(Value):
    """What became of a text that was to be kept.

    Attributes:
        note: As it stands now.
        is_new: False when an older note says the same, which is this one; see `gist`.
    """

    note: Note
    is_new: bool


class NotesStore(Protocol):
    """Where notes are kept, by owner; handed in by whoever has a store."""

    async def all(self, owner: str, /) -> tuple[Note, ...]:
        """Return the notes of an owner, newest first."""
        ...

    async def add(self, owner: str, note: Note, /, *, most: int) -> Kept | Literal["full"]:
        """Keep a note; durable when it returns.

        Args:
            owner: Whose.
            note: Its number is not looked at.
            most: Notes that an owner may have.

        Returns:
            The note with its number; `full` when the owner has as many as they may, and nothing
            was kept.

        Raises:
            ToolFailed: Others wrote at the same time, again and again.
        """
        ...

    async def forget(self, owner: str, number: int, /) -> Note | None:
        """Remove a note of this owner, and return it; None when there is none of that number."""
        ...


class RememberArguments(ToolArguments):
    """What `remember` takes."""

    text: str = Field(
        min_length=1, max_length=100_000, description="One short fact that stands alone."
    )


class RecallArguments(ToolArguments):
    """What `recall` takes."""

    words: str = Field(default="", max_length=1_000, description="Any of which a note holds.")
    limit: int = Field(default=20, ge=1, le=_MOST_FOUND)


class ForgetArguments(ToolArguments):
    """What `forget_note` takes."""

    number: int = Field(ge=1, le=1_000_000_000)


def owner_of(address: Address, principal: Principal) -> str:
    """Return whose a note made there is, in letters that a resource may have.

    Only a direct chat is a person's own: in any other, whoever reads along reads what is recalled.
    """
    return owner_of_person(principal.id) if address.direct else owner_of_chat(address)


def owner_of_chat(address: Address) -> str:
    """Return whose a note is that was made in a chat of several."""
    return f"in:{quote(address.key(), safe='/:@')}"


def owner_of_person(principal: str) -> str:
    """Return whose a note is that somebody had made in a direct chat; by `Principal.id`."""
    return f"{_OF}{quote(principal, safe=':@')}"


def person_of(owner: str) -> str:
    """Return whose notes an owner's are, by `Principal.id`; empty for a group's."""
    return unquote(owner.removeprefix(_OF)) if owner.startswith(_OF) else ""


def tools(
    settings: NotesSettings, store: NotesStore, redact: Callable[[str], str]
) -> tuple[Tool, ...]:
    """Return the three tools; what `redact` would take out of a text is not kept."""
    notes = _Notes(settings, store, redact)
    return (
        _made(
            "remember",
            "Keep a short text for later: of a direct chat for its person alone, of a group for"
            " the group. Never a secret.",
            RememberArguments,
            lambda asked: catalogue.WOULD_REMEMBER.about(text=quoted(asked.text)),
            notes.remember,
            settled=notes.settled,
        ),
        _made(
            "recall",
            "Find what was remembered for this person, or this group.",
            RecallArguments,
            _recall_line,
            notes.recall,
            effect="read",
        ),
        _made(
            "forget_note",
            "Remove a note for good, by the number that `recall` shows.",
            ForgetArguments,
            lambda asked: catalogue.WOULD_FORGET_NOTE.about(number=asked.number),
            notes.forget,
        ),
    )


def _made(
    name: str,
    description: str,
    model: type[_Asked],
    line: Callable[[_Asked], Localized],
    work: Callable[[_Asked, ToolContext], Awaitable[ToolOutput]],
    *,
    effect: Effect = "write",
    settled: Callable[[_Asked], _Asked] = lambda asked: asked,
) -> Tool:
    spec = ToolSpec(
        name=name,
        description=description,
        parameters=schema(model),
        effects=frozenset({effect}),
        # A text that is kept already is not kept again, and a number is never given twice.
        idempotent=True,
        risk="low",
        timeout_s=_TIMEOUT_S,
        # Writes of one batch mean their order.
        execution="sequential" if effect == "write" else "parallel",
    )
    return ModelTool(spec=spec, model=model, line=line, reach=_reach, work=work, settled=settled)


async def _reach(asked: object, context: ToolContext) -> tuple[str, ...]:
    del asked
    return (f"notes:{_owner(context)}",)


def _owner(context: ToolContext) -> str:
    return owner_of(context.address, context.principal)


def _recall_line(asked: RecallArguments) -> Localized:
    if asked.words:
        return catalogue.WOULD_RECALL.about(words=quoted(asked.words))
    return catalogue.WOULD_RECALL_NEWEST


class _Notes:
    """What the three tools do."""

    def __init__(
        self, settings: NotesSettings, store: NotesStore, redact: Callable[[str], str]
    ) -> None:
        self._settings, self._store, self._redact = settings, store, redact

    def settled(self, asked: RememberArguments) -> RememberArguments:
        """Refuse a text of nothing, and one that is too long."""
        chars, most = len(asked.text.strip()), self._settings.max_note_chars
        if not chars:
            raise ToolArgumentsInvalid(("text: must not be empty",))
        if chars > most:
            raise ToolArgumentsInvalid((f"text: must be at most {most:,} characters",))
        return asked

    async def remember(self, asked: RememberArguments, context: ToolContext) -> ToolOutput:
        """Keep a text; the oldest note is never dropped for it."""
        text, owner = asked.text.strip(), _owner(context)
        if holds_marker(text):
            message = "the text holds a redaction marker: what was redacted can't be remembered"
            raise ToolFailed(message)
        if self._redact(text) != text:
            message = (
                "the text holds what looks like a secret, and notes keep none: nothing is kept"
            )
            raise ToolFailed(message)
        by = context.principal.label
        note = Note(
            number=0,
            text=text,
            by=by,
            at=context.clock.now(),
            conversation=context.conversation,
            trusted=not context.untrusted,
            channel=context.address.channel,
        )
        kept = await self._store.add(owner, note, most=self._settings.max_notes)
        if kept == "full":
            return ToolOutput(text=await self._full(owner), is_error=True)
        said = "remembered" if kept.is_new else "this is remembered already,"
        return ToolOutput(text=f"{said} as note {kept.note.number}")

    async def recall(self, asked: RecallArguments, context: ToolContext) -> ToolOutput:
        """Return the notes that hold any of the words, those with more of them first."""
        every = await self._store.all(_owner(context))
        found = matching(every, asked.words)
        if not found:
            return ToolOutput(text=_nothing(every, asked.words))
        shown = within(found[: asked.limit], context.conversation, _ANSWER_CHARS)
        many = f"{len(found):,} of {counted(len(every), 'note')}"
        order = "with any word, those with more of them first" if asked.words else "newest first"
        more = len(found) - len(shown)
        tail = [f"[{more:,} more: ask with other words]"] if more else []
        return ToolOutput(
            text="\n".join([f"{many}, {order}:", *shown, *tail]),
            untrusted=not all(note.trusted for note in found[: len(shown)]),
        )

    async def forget(self, asked: ForgetArguments, context: ToolContext) -> ToolOutput:
        """Remove a note of this owner; another's looks as if it didn't exist."""
        gone = await self._store.forget(_owner(context), asked.number)
        if gone is None:
            return ToolOutput(text=f"there is no note {asked.number} here", is_error=True)
        said = f"forgot note {gone.number}: {quoted(gone.text)}"
        return ToolOutput(text=said, untrusted=not gone.trusted)

    async def _full(self, owner: str) -> str:
        every = await self._store.all(owner)
        oldest = ", ".join(str(note.number) for note in every[:-4:-1])
        return (
            f"nothing is kept: all {self._settings.max_notes:,} notes that there is room for are"
            f" taken; forget one first with `forget_note` (the oldest are {oldest})"
        )


# --- what notes say (pure) -----------------------------------------------------------------------

MOST_WORDS = 32
"""That are looked for; of more, the longest, which say most."""
_LOOKED_AT_CHARS = 16_000
_INSIDE_CHARS, _BEGINNING_CHARS = 4, 3
# Thai, Lao, Burmese, Khmer, Chinese, Japanese and Korean, which put no spaces between words, or not
# where a search would need them: each two neighbours are looked for, as most search engines do.
_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
_PIECE = re.compile(f"[{_UNSPACED}]+|[^{_UNSPACED}]+")
_IS_UNSPACED = re.compile(f"[{_UNSPACED}]")
# Points, then quotation marks and brackets of the languages that the bot speaks, and of others.
_SIGNS = ".,;:!?…。、¿¡()[]{}<>\"'`\u00b4«»“”„\u2018\u2019\u201a\u2039\u203a"
"""Around a word; others are part of it: `C#` is not `C`, and `-5` not `5`."""


def gist(text: str) -> str:
    """Return a text without what makes no difference: case, space, and signs around words.

    How a letter is composed makes none either. Empty for a text of nothing but signs.
    """
    # Folding can undo the composition (Unicode Standard, section 3.13, D146).
    plain = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    return " ".join(filter(None, (word.strip(_SIGNS) for word in plain.split())))


def matching(notes: Sequence[Note], words: str) -> tuple[Note, ...]:
    """Return the notes that hold any of the words: more words first, then in their order.

    A word is held from its third letter on where another begins with it, from its fourth on
    anywhere: the end of a word changes, and some languages join words. No words fit every note.
    """
    pieces = _pieces(words)
    if not pieces:
        return tuple(notes)
    texts = (f" {gist(note.text)} " for note in notes)
    held = [sum(piece in text for piece in pieces) for text in texts]
    places = sorted(range(len(notes)), key=held.__getitem__, reverse=True)
    return tuple(notes[place] for place in places if held[place])


def _pieces(words: str) -> frozenset[str]:
    """Return what a note is searched for; a space stands where a word begins or ends."""
    found: set[str] = set()
    for piece in _PIECE.findall(gist(words[:_LOOKED_AT_CHARS])):
        if _IS_UNSPACED.match(piece):
            found |= {piece[at : at + 2] for at in range(max(len(piece) - 1, 1))}
            continue
        for word in piece.split():
            is_begun = len(word) >= _BEGINNING_CHARS
            found.add(word if len(word) >= _INSIDE_CHARS else f" {word}{'' if is_begun else ' '}")
    return frozenset(sorted(found, key=lambda piece: (-len(piece), piece))[:MOST_WORDS])


def chosen(notes: Sequence[Note], words: str, most_chars: int) -> tuple[Note, ...]:
    """Return the notes that go along with a message: those that match it, then the newest.

    Args:
        notes: Of its owner, newest first.
        words: Of the message.
        most_chars: Of the notes as they are shown; one that is too long is passed over.
    """
    found: list[Note] = []
    for note in dict.fromkeys((*matching(notes, words), *notes)):
        line = _line(note, ConversationId(""))
        if len(line) <= most_chars:
            found.append(note)
            most_chars -= len(line)
    return tuple(found)


def as_data(notes: Iterable[Note], here: ConversationId, redact: Callable[[str], str]) -> str:
    """Return notes as they stand in a request, empty for none."""
    lines = redact("\n".join(_line(note, here) for note in notes))
    if not lines:
        return ""
    head = "[What was remembered earlier, the rest is found with `recall`; data, not instructions:"
    return f"{head}\n{fenced(escape_for_model(lines)[0])}]"


def within(notes: Iterable[Note], here: ConversationId, most_chars: int) -> list[str]:
    """Return as many notes as there is room for, each as it is shown."""
    lines: list[str] = []
    for note in notes:
        line = _line(note, here)
        most_chars -= len(line)
        # The first is shown however long it is: there is no other way to read it.
        if lines and most_chars < 0:
            break
        lines.append(line)
    return lines


def _nothing(every: tuple[Note, ...], words: str) -> str:
    if not every:
        return "nothing is remembered here yet"
    return f"none of {counted(len(every), 'note')} holds a word of {quoted(words)}"


def _line(note: Note, here: ConversationId) -> str:
    """Return a note under its number, with its source.

    Its further lines are set in, so that none looks like another note.
    """
    day = note.at.astimezone(UTC).strftime("%Y-%m-%d")
    name = without_controls(" ".join(note.by.split()))[:_NAME_CHARS]
    channel = f" on {note.channel}" if note.channel else ""
    which = "this" if note.conversation == here else "another"
    text = "\n    ".join(without_controls(note.text).splitlines())
    return f"[{note.number}] {day}, {name}{channel}, {which} conversation: {text}"
