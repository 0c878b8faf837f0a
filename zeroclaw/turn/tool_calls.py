"""The run phase of a batch: the last check of each call, then its run with a time limit.

Only the process groups that a tool starts are written here. Results go back to the turn, which
records them before it continues.
"""

import asyncio
import re
from functools import partial
from pathlib import Path
from typing import Literal

from zeroclaw.envelope import ActionId, ApprovalId, ConversationId
from zeroclaw.errors import ConfigError, ToolFailed
from zeroclaw.foreign import Raised, call
from zeroclaw.gate.action import Frozen
from zeroclaw.gate.approval import APPROVALS
from zeroclaw.gate.conditions import facts_of
from zeroclaw.gate.grant import GRANTS, Grant
from zeroclaw.gate.outgoing_files import checked_files
from zeroclaw.gate.receipt import fields_of
from zeroclaw.gate.taint import Files, Source, Taint, files_after, of_result
from zeroclaw.gate.verdict import Cleared, GatedBatch, Setting, Stopped
from zeroclaw.host.executors import run_inline
from zeroclaw.host.places import make_workspace, real
from zeroclaw.message import ToolCall
from zeroclaw.store import Commit, DurablePoint, Put, RowKind, Rows, Write
from zeroclaw.table import Codec, Column, Stays, Table, json_codec
from zeroclaw.text.language import Language
from zeroclaw.tool import Spawned, Tool, ToolContext, ToolOutput
from zeroclaw.turn.context import TurnContext, TurnServices
from zeroclaw.turn.receipts import line_about
from zeroclaw.turn.results import CallEnd, TimedOut, call_end
from zeroclaw.value import replace

_ULID = re.compile(r"[0-9A-HJKMNP-TV-Z]{26}")
REDACTED_CHARS = 2_000
"""Characters of a call's own line that are searched for secrets; a card shows fewer."""


PROCESSES = Table(
    kind=RowKind.PROCESS,
    codec=json_codec(Spawned),
    columns=frozenset(),
    keeps=Stays(until="the process has ended, or the next start has ended it"),
)
WORKSPACES = Table(
    kind=RowKind.WORKSPACE,
    codec=Codec[None](encode=lambda _: b"", decode=lambda _: None),
    columns=frozenset({Column.STATE, Column.PLACE}),
    keeps=Stays(until="the store is deleted: files in it stay untrusted, whoever is forgotten"),
)
"""The marks of workspaces, by conversation: the key stays if all workspaces are moved."""
_SHARED, _RESTORED = "/shared", "/restored"
"""Marks of several workspaces: of all that are links, and of all older than a restored backup."""


def mark_restored(ulid: str) -> Put:
    """Return the mark of every workspace older than this ulid: no backup contains workspaces."""
    return WORKSPACES.put(_RESTORED, None, place=ulid)


async def state_of_files(rows: Rows, conversation: ConversationId, workspace: Path) -> Files:
    """Return the worst state that the files of a conversation's workspace may be in.

    Args:
        rows: The store of the marks.
        conversation: The conversation that has the workspace.
        workspace: Its real path; the name differs if it is a link to a place that others may use.
    """
    mark = await rows.get(WORKSPACES.kind, conversation)
    backup = await rows.get(WORKSPACES.kind, _RESTORED)
    if backup is not None and conversation < backup.place:
        return "planted"
    if workspace.name != conversation:
        marks = [await rows.get(WORKSPACES.kind, key) for key in (_SHARED, *workspace.parts)]
        place = WORKSPACES.where(place=str(workspace), limit=1)
        if backup is not None or any(marks) or await rows.select(place):
            return "planted"
    if mark is None:
        return "theirs"
    return "brought" if mark.state == "brought" else "planted"


def _marks(conversation: ConversationId, workspace: Path, files: Files) -> tuple[Put, ...]:
    path = str(workspace)
    mark = WORKSPACES.put(conversation, None, state=files, place=path)
    if workspace.name == conversation:
        return (mark,)
    # The conversation that owns the directory, or a parent of it, works there as well.
    owners = [part for part in workspace.parts if _ULID.fullmatch(part)]
    return (mark, *(WORKSPACES.put(key, None, place=path) for key in (_SHARED, *owners)))


def refusal_result(
    services: TurnServices,
    frozen: Frozen,
    text: str,
    *,
    outcome: Literal["denied", "cancelled", "unknown"],
    by: str,
    for_people: str = "",
) -> CallEnd:
    """Return the refusal that replaces a gated call's result.

    Args:
        services: Its gate signs the refusal.
        frozen: The gated call.
        text: The reason, for the model.
        outcome: Whether the call ran.
        by: The person or part that ended it, for the audit.
        for_people: The reason in the person's language; empty if `text` is for people, too.
    """
    at, fields = services.clock.now(), fields_of(frozen.action, outcome, text)
    signed = services.gate.refusals.refuse(fields, at, for_people=for_people)
    return call_end(frozen, signed, outcome, at, by=by)


class ToolCalls:
    """Checks and runs the calls of one turn.

    Attributes:
        gated_in: The setting that the gate decided in, until the calls that start at once are checked.
        as_gated: The verdict on the only call of a batch, if it starts at once and no grants were
            involved, since grants expire; kept as long as `gated_in`.
    """

    def __init__(self, turn: TurnContext) -> None:
        """Begin with no call cleared."""
        self._turn = turn
        self._services, self._session, self._opened = turn.services, turn.session, turn.opened
        self._cleared: dict[ActionId, tuple[Frozen, Cleared, Setting | None]] = {}
        self._workspace: Path | None = None
        self._workspace_error = ""
        self.gated_in: Setting | None = None
        self.as_gated: Cleared | None = None

    async def setting(self, action: ActionId | None = None) -> Setting:
        """Return the current setting for the gate; child processes are recorded as of `action`."""
        gated = self.gated_in
        if gated is None:
            context, taint = await self._context(action)
        else:
            # Nothing has run since the gate decided.
            spawned = partial(self._spawned, action)
            context, taint = replace(gated.context, spawned=spawned), gated.taint
        grants: tuple[Grant, ...] = ()
        if gated is None or gated.grants:
            conversation = context.conversation
            rows = GRANTS.readable(self._services.store, conversation=conversation)
            grants = tuple([grant async for grant in rows])
        return Setting(
            context=context,
            turn=self._opened.turn,
            grants=grants,
            current_principal=self._services.current(self._opened.principal),
            revoked_by=self._services.revoked_by(self._opened.principal),
            taint=taint,
        )

    async def _context(self, action: ActionId | None) -> tuple[ToolContext, Taint]:
        """Return a tool's context now, and the sources of the text that the model has read."""
        services, history = self._services, self._session.history
        if (workspace := self._workspace) is None:
            place = services.workspaces / self._session.conversation
            # The real path, for the whole turn; tools check again what they open below it.
            try:
                self._workspace = workspace = run_inline(lambda: make_workspace(place))
                self._workspace_error = ""
            except ConfigError as error:  # as on a full disk; the call is gated, and then fails
                workspace, self._workspace_error = run_inline(lambda: real(place)), str(error)
        files = await state_of_files(services.store, self._session.conversation, workspace)
        account = services.outbox.accounts.get(self._turn.address.channel)
        context = ToolContext(
            conversation=self._session.conversation,
            principal=self._opened.principal,
            address=self._turn.address,
            workspace=workspace,
            clock=services.clock,
            spawned=partial(self._spawned, action),
            max_file_bytes=0 if account is None else account.capabilities.max_file_bytes,
            untrusted=bool(history.untrusted),
            skills=services.sources.offers.folders_for(
                self._opened.principal, self._turn.address, history.loaded.skills
            ),
        )
        return context, Taint(
            sources=history.untrusted,
            words=() if history.turn is None else history.turn.own_texts,
            # A retry of another person's call contains no text of its own person.
            typed=self._opened.call is not None and bool(self._opened.own),
            files=files,
        )

    async def gate(self, calls: tuple[ToolCall, ...]) -> GatedBatch:
        """Gate a batch; remember the calls that start at once, so that they are not read again."""
        setting = await self.setting()
        gated = await self._services.gate.gate_batch(calls, setting)
        if gated.starts:
            self._turn.gated.update({frozen.action.id: frozen for frozen in gated.frozen})
            self.gated_in = setting
            is_alone = len(calls) == 1 and not setting.grants
            self.as_gated = gated.cleared[0] if is_alone else None
        return gated

    async def check(
        self, frozen: Frozen, written: ToolCall, approval: ApprovalId | None
    ) -> tuple[Cleared | Stopped, tuple[Write, ...]]:
        """Check a call for the last time; return whether it may run, and the writes of its start.

        Args:
            frozen: As it was gated.
            written: As the model wrote it.
            approval: The approval that allowed it, None if it needed none.
        """
        gated, as_gated = self.gated_in, self.as_gated
        setting = await self.setting(frozen.action.id)
        # The other fields of a setting do not change while no call runs.
        if gated is None or (setting.current_principal, setting.revoked_by) != (
            gated.current_principal,
            gated.revoked_by,
        ):
            as_gated = None
        request = None if approval is None else await APPROVALS.get(self._services.store, approval)
        verdict = await self._services.gate.recheck(
            frozen, setting, request, written=written.arguments, cleared=as_gated
        )
        if not isinstance(verdict, Cleared):
            return verdict, ()
        facts, is_in_message = facts_of(verdict.tool.spec), verdict.in_message
        after = files_after(facts, setting.taint, is_in_message=is_in_message)
        marks = _marks(self._session.conversation, setting.context.workspace, after)
        # A shared place is marked even if this workspace is: it may have become a link since.
        if after == "theirs" or (after == setting.taint.files and len(marks) == 1):
            marks = ()
        # The context stays valid if no other call runs before, and this one marks no workspace.
        unchanged = None if as_gated is None or marks else setting
        self._cleared[frozen.action.id] = (frozen, verdict, unchanged)
        # Written before the call runs: after a kill in the middle, the files' origin is known.
        return verdict, marks

    async def run(self, action: ActionId) -> CallEnd:
        """Run a call that was cleared."""
        frozen, cleared, unchanged = self._cleared[action]
        if unchanged is None:
            context, taint = await self._context(action)
        else:
            context, taint = unchanged.context, unchanged.taint
        context = replace(context, permits=cleared.permits)
        tool, arguments = cleared.tool, frozen.action.arguments
        returned: ToolOutput | Raised | TimedOut

        async def run_tool() -> ToolOutput:
            if self._workspace_error:
                raise ToolFailed(self._workspace_error)
            return await tool.run(arguments, context)

        try:
            async with asyncio.timeout(tool.spec.timeout_s):
                returned = await call(run_tool)
                if isinstance(returned, ToolOutput) and returned.files:
                    files = partial(
                        checked_files,
                        returned,
                        max_bytes=context.max_file_bytes,
                        redactor=self._services.gate.redactor,
                    )
                    returned = await self._services.results.share.run(
                        self._session.conversation, files
                    )
        except TimeoutError:
            returned = TimedOut(after_s=tool.spec.timeout_s)
        end = await self._services.results.of_run(
            frozen.action, returned, self._services.clock.now(), language=self._turn.language
        )
        del self._cleared[action]
        if isinstance(returned, TimedOut):
            return end  # the result quotes no output
        untrusted = self._untrusted_sources(tool, frozen, returned, taint)
        return replace(end, finished=replace(end.finished, untrusted=untrusted))

    def _untrusted_sources(
        self, tool: Tool, frozen: Frozen, returned: ToolOutput | Raised, taint: Taint
    ) -> tuple[Source, ...]:
        """Return the sources of untrusted text in a result; an error may quote foreign text."""
        redactor = self._services.gate.redactor

        def line(language: Language) -> str:
            text = line_about(tool, frozen.action, language, redactor)
            return redactor.redact(tool.spec.name if text is None else text[:REDACTED_CHARS])

        is_marked = isinstance(returned, ToolOutput) and returned.untrusted
        return of_result(facts_of(tool.spec), taint, line, marked=is_marked)

    def is_cancellable(self, action: ActionId) -> bool:
        """Tell whether stopping this call does no harm; it never does once the call has ended."""
        return action not in self._cleared or self._cleared[action][1].tool.spec.cancellable

    async def _spawned(self, action: ActionId | None, spawned: Spawned | None) -> None:
        """Record a process group before it does anything, so that a restart can end it."""
        key = action or self._opened.turn
        write = PROCESSES.delete(key) if spawned is None else PROCESSES.put(key, spawned)
        await self._services.store.commit(Commit(point=DurablePoint.HOUSEKEEPING, writes=(write,)))
