"""The tools that keep short texts for later: `remember`, `recall` and `forget_note`.

The owner of a note follows from the chat it is made in; no argument can change it. A call sees only
the notes of that owner, so a group never reads what a person said in private, and no person reads
another's notes. The owner is also the call's only resource: `notes:of:<principal>` or
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
_MOST_FOUND = 50
_Arguments = TypeVar("_Arguments", bound=ToolArguments)


class NotesStore(Protocol):
    """Stores notes by owner; injected."""

    async def all(self, owner: str, /) -> tuple[Note, ...]:
        """Return the notes of an owner, newest first."""
        ...

    async def add(self, owner: str, note: Note, /, *, most: int) -> KeptNote | Literal["full"]:
        """Keep a note; it is durable on return.

        Args:
            owner: The owner's key, see `owner_of`.
            note: Its number is ignored.
            most: Maximum number of notes per owner.

        Returns:
            The note with its number, or `full` if the owner has no room and nothing was kept.

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
    limit: int = Field(default=20, ge=1, le=_MOST_FOUND)


class ForgetArguments(ToolArguments):
    """Arguments of `forget_note`."""

    number: int = Field(ge=1, le=1_000_000_000)


def tools(
    settings: NotesSettings, store: NotesStore, redact: Callable[[str], str]
) -> tuple[Tool, ...]:
    """Return the three tools; a text that `redact` would change is not kept."""
    notes = _Notes(settings, store, redact)
    return (
        _notes_tool(
            REMEMBER,
            "Keep a short text for later: of a direct chat for its person alone, of a group for"
            " the group. Never a secret.",
            RememberArguments,
            lambda asked: catalogue.WOULD_REMEMBER.about(text=quoted(asked.text)),
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
            lambda asked: catalogue.WOULD_FORGET_NOTE.about(number=asked.number),
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
    apply_settings: Callable[[_Arguments], _Arguments] = lambda asked: asked,
) -> Tool:
    spec = ToolSpec(
        name=name,
        description=description,
        parameters=ModelSchema(model),
        effects=frozenset({effect}),
        # A text that is kept already is not kept again, and numbers are never reused.
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
        find_resources=_resources,
        handler=handler,
        apply_settings=apply_settings,
    )


async def _resources(asked: object, context: ToolContext) -> tuple[str, ...]:
    del asked
    return (f"notes:{_owner(context)}",)


def _owner(context: ToolContext) -> str:
    return owner_of(context.address, context.principal)


def _recall_line(asked: RecallArguments) -> Localized:
    if asked.words:
        return catalogue.WOULD_RECALL.about(words=quoted(asked.words))
    return catalogue.WOULD_RECALL_NEWEST


def made_note(
    text: str, context: ToolContext, redact: Callable[[str], str], *, by: str = ""
) -> Note:
    """Return the note to keep for a text, without a number.

    Args:
        text: The text as the model gave it.
        context: Context of the call that keeps it.
        redact: A text that it would change is refused.
        by: The authors, if there are others than the principal; empty for the principal.

    Raises:
        ToolFailed: The text must not be kept.
    """
    said = text.strip()
    if holds_marker(said):
        message = "the text holds a redaction marker: what was redacted can't be remembered"
        raise ToolFailed(message)
    if redact(said) != said:
        message = "the text holds what looks like a secret, and notes keep none: nothing is kept"
        raise ToolFailed(message)
    return Note(
        number=0,
        text=said,
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

    def apply_settings(self, asked: RememberArguments) -> RememberArguments:
        """Refuse an empty text and one that is too long."""
        chars, most = len(asked.text.strip()), self._settings.max_note_chars
        if not chars:
            raise ToolArgumentsInvalid(("text: must not be empty",))
        if chars > most:
            raise ToolArgumentsInvalid((f"text: must be at most {most:,} characters",))
        return asked

    async def remember(self, asked: RememberArguments, context: ToolContext) -> ToolOutput:
        """Keep a text; never drops an older note to make room."""
        owner, note = _owner(context), made_note(asked.text, context, self._redact)
        kept = await self._store.add(owner, note, most=self._settings.max_notes)
        if kept == "full":
            return ToolOutput(text=await self._full(owner), is_error=True)
        said = "remembered" if kept.is_new else "this is remembered already,"
        return ToolOutput(text=f"{said} as note {kept.note.number}")

    async def recall(self, asked: RecallArguments, context: ToolContext) -> ToolOutput:
        """Return the notes that contain any of the words, best match first."""
        every = await self._store.all(_owner(context))
        found = await asyncio.to_thread(matching, every, asked.words)
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
        """Remove a note of this owner; other owners' notes look as if they didn't exist."""
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


def _nothing(every: tuple[Note, ...], words: str) -> str:
    if not every:
        return "nothing is remembered here yet"
    return f"none of {counted(len(every), 'note')} holds a word of {quoted(words)}"
