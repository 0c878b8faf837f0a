"""The tools that store short texts for later: `remember`, `recall` and `forget_note`.

The owner of a note follows from the chat it is made in; no argument can change it. A call sees only
the notes of that owner, so a group never reads the private notes of a person, and no person reads
another's. The owner is also the call's only resource: `notes:of:<principal>` or
`notes:in:<chat>`.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Literal, Protocol, TypeVar

from pydantic import Field

from zeroclaw.config.model import NotesSettings
from zeroclaw.errors import ToolArgumentsInvalid, ToolFailed
from zeroclaw.redact import holds_marker
from zeroclaw.text import catalogue
from zeroclaw.text.language import Localized
from zeroclaw.tool import Effect, Tool, ToolContext, ToolOutput, ToolSpec
from zeroclaw.tools import ModelSchema, ModelTool, ToolArguments, counted, quoted
from zeroclaw.tools.notes.note import KeptNote, Note, matching, owner_of, within

REMEMBER = "remember"
_TIMEOUT_S = 30.0
_ANSWER_CHARS = 8_000  # of one `recall`, so that the runtime need not cut it
_MAX_FOUND = 50
_Arguments = TypeVar("_Arguments", bound=ToolArguments)


class NotesStore(Protocol):
    """Stores notes by owner; injected."""

    async def all(self, owner: str, /) -> tuple[Note, ...]:
        """Return the notes of an owner, newest first."""
        ...

    async def add(self, owner: str, note: Note, /, *, max_notes: int) -> KeptNote | Literal["full"]:
        """Store a note; it is durable on return.

        Args:
            owner: The owner's key, see `owner_of`.
            note: Its number is ignored.
            max_notes: Maximum number of notes per owner.

        Returns:
            The note with its number, or `full` if the owner has no room for it.

        Raises:
            ToolFailed: Concurrent writers conflicted with every attempt.
        """
        ...

    async def forget(self, owner: str, number: int, /) -> Note | None:
        """Remove and return a note of this owner; None if it has no such number."""
        ...


class RememberArguments(ToolArguments):
    """Arguments of `remember`."""

    text: str = Field(
        min_length=1, max_length=100_000, description="One short fact that stands alone."
    )


class RecallArguments(ToolArguments):
    """Arguments of `recall`."""

    words: str = Field(default="", max_length=1_000, description="Any of which a note holds.")
    limit: int = Field(default=20, ge=1, le=_MAX_FOUND)


class ForgetArguments(ToolArguments):
    """Arguments of `forget_note`."""

    number: int = Field(ge=1, le=1_000_000_000)


def tools(
    settings: NotesSettings, store: NotesStore, redact: Callable[[str], str]
) -> tuple[Tool, ...]:
    """Return the three tools; a text that `redact` would change is refused."""
    notes = _Notes(settings, store, redact)
    return (
        _notes_tool(
            REMEMBER,
            "Keep a short text for later: of a direct chat for its person alone, of a group for"
            " the group. Never a secret.",
            RememberArguments,
            lambda arguments: catalogue.WOULD_REMEMBER.about(text=quoted(arguments.text)),
            notes.remember,
            apply_settings=notes.apply_settings,
        ),
        _notes_tool(
            "recall",
            "Find what was remembered for this person, or this group.",
            RecallArguments,
            _recall_line,
            notes.recall,
            effect="read",
        ),
        _notes_tool(
            "forget_note",
            "Remove a note for good, by the number that `recall` shows.",
            ForgetArguments,
            lambda arguments: catalogue.WOULD_FORGET_NOTE.about(number=arguments.number),
            notes.forget,
        ),
    )


def _notes_tool(
    name: str,
    description: str,
    model: type[_Arguments],
    summary: Callable[[_Arguments], Localized],
    handler: Callable[[_Arguments, ToolContext], Awaitable[ToolOutput]],
    *,
    effect: Effect = "write",
    apply_settings: Callable[[_Arguments], _Arguments] = lambda arguments: arguments,
) -> Tool:
    spec = ToolSpec(
        name=name,
        description=description,
        parameters=ModelSchema(model),
        effects=frozenset({effect}),
        # A text that is stored already is not stored again, and numbers are never reused.
        idempotent=True,
        risk="low",
        timeout_s=_TIMEOUT_S,
        # The model may rely on the order of the writes in a batch.
        execution="sequential" if effect == "write" else "parallel",
    )
    return ModelTool(
        spec=spec,
        model=model,
        summary=summary,
        find_resources=lambda _, context: (f"notes:{_owner(context)}",),
        handler=handler,
        apply_settings=apply_settings,
    )


def _owner(context: ToolContext) -> str:
    return owner_of(context.address, context.principal)


def _recall_line(arguments: RecallArguments) -> Localized:
    if arguments.words:
        return catalogue.WOULD_RECALL.about(words=quoted(arguments.words))
    return catalogue.WOULD_RECALL_NEWEST


def make_note(
    text: str, context: ToolContext, redact: Callable[[str], str], *, by: str = ""
) -> Note:
    """Return the note for a text, without a number.

    Args:
        text: The text as the model gave it.
        context: Context of the call that stores it.
        redact: A text that it would change is refused.
        by: The authors, if others than the principal wrote it; empty for the principal.

    Raises:
        ToolFailed: The text must not be stored.
    """
    stripped = text.strip()
    if holds_marker(stripped):
        message = "the text holds a redaction marker: redacted text can't be remembered"
        raise ToolFailed(message)
    if redact(stripped) != stripped:
        message = "the text looks like it holds a secret, and notes may hold none: it is not stored"
        raise ToolFailed(message)
    return Note(
        number=0,
        text=stripped,
        by=by or context.principal.label,
        at=context.clock.now(),
        conversation=context.conversation,
        trusted=not context.untrusted,
        channel=context.address.channel,
        writer="" if by else context.principal.id,
    )


class _Notes:
    """Implements the three tools."""

    def __init__(
        self, settings: NotesSettings, store: NotesStore, redact: Callable[[str], str]
    ) -> None:
        self._settings, self._store, self._redact = settings, store, redact

    def apply_settings(self, arguments: RememberArguments) -> RememberArguments:
        """Refuse an empty text and one that is too long."""
        chars, limit = len(arguments.text.strip()), self._settings.max_note_chars
        if not chars:
            raise ToolArgumentsInvalid(("text: must not be empty",))
        if chars > limit:
            raise ToolArgumentsInvalid((f"text: must be at most {limit:,} characters",))
        return arguments

    async def remember(self, arguments: RememberArguments, context: ToolContext) -> ToolOutput:
        """Store a text; never drops an older note to make room."""
        owner, note = _owner(context), make_note(arguments.text, context, self._redact)
        stored = await self._store.add(owner, note, max_notes=self._settings.max_notes)
        if stored == "full":
            return ToolOutput(text=await self._full(owner), is_error=True)
        verb = "remembered" if stored.is_new else "this is remembered already,"
        return ToolOutput(text=f"{verb} as note {stored.note.number}")

    async def recall(self, arguments: RecallArguments, context: ToolContext) -> ToolOutput:
        """Return the notes that contain any of the words, best match first."""
        notes = await self._store.all(_owner(context))
        found = await asyncio.to_thread(matching, notes, arguments.words)
        if not found:
            return ToolOutput(text=_no_match(notes, arguments.words))
        lines = within(found[: arguments.limit], context.conversation, _ANSWER_CHARS)
        count = f"{len(found):,} of {counted(len(notes), 'note')}"
        order = "with any word, best match first" if arguments.words else "newest first"
        omitted = len(found) - len(lines)
        tail = [f"[{omitted:,} more: ask with other words]"] if omitted else []
        return ToolOutput(
            text="\n".join([f"{count}, {order}:", *lines, *tail]),
            untrusted=not all(note.trusted for note in found[: len(lines)]),
        )

    async def forget(self, arguments: ForgetArguments, context: ToolContext) -> ToolOutput:
        """Remove a note of this owner; other owners' notes look as if they didn't exist."""
        note = await self._store.forget(_owner(context), arguments.number)
        if note is None:
            return ToolOutput(text=f"there is no note {arguments.number} here", is_error=True)
        text = f"forgot note {note.number}: {quoted(note.text)}"
        return ToolOutput(text=text, untrusted=not note.trusted)

    async def _full(self, owner: str) -> str:
        notes = await self._store.all(owner)
        oldest = ", ".join(str(note.number) for note in notes[:-4:-1])
        return f"it is not stored: all {self._settings.max_notes:,} notes are taken; forget one first with `forget_note` (the oldest are {oldest})"


def _no_match(notes: tuple[Note, ...], words: str) -> str:
    if not notes:
        return "no note is stored here yet"
    return f"none of {counted(len(notes), 'note')} holds a word of {quoted(words)}"
