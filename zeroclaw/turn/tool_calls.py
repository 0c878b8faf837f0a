"""A batch of calls: the gate, the last check of each call, then its run with a time limit.

Only the process groups that a tool starts are written here. The transitions go back to the turn,
which records them before it continues.
"""

import asyncio
import hashlib
import re
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Literal

from zeroclaw.delivery.rows import FilePost, notice_row, outbox_row
from zeroclaw.envelope import ActionId, ConversationId
from zeroclaw.errors import ConfigError, ToolFailed
from zeroclaw.foreign import Raised, call
from zeroclaw.gate.action import Frozen
from zeroclaw.gate.approval import APPROVALS, to_put
from zeroclaw.gate.conditions import facts_of
from zeroclaw.gate.grant import GRANTS, Grant
from zeroclaw.gate.outgoing_files import checked_files
from zeroclaw.gate.receipt import fields_of
from zeroclaw.gate.taint import Files, Source, Taint, files_after, of_result
from zeroclaw.gate.verdict import Cleared, Setting, Stopped
from zeroclaw.host.executors import run_inline
from zeroclaw.host.places import make_workspace, real
from zeroclaw.message import ToolCall
from zeroclaw.store import Commit, DurablePoint, Put, PutBlob, RowKind, Rows, Write
from zeroclaw.table import Codec, Column, Stays, Table, json_codec
from zeroclaw.text import catalogue
from zeroclaw.text.language import Language
from zeroclaw.tool import Spawned, Tool, ToolContext, ToolFile, ToolOutput
from zeroclaw.turn.batch import MAY_HAVE_RUN, Slot
from zeroclaw.turn.context import TurnContext, TurnServices
from zeroclaw.turn.entries import CallStarted, Gated
from zeroclaw.turn.kept_results import kept_put
from zeroclaw.turn.receipts import line_about
from zeroclaw.turn.results import CallEnd, TimedOut, call_end
from zeroclaw.turn.session import NOTHING, Transition
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


def _marks(conversation: ConversationId, setting: Setting, after: Files) -> tuple[Put, ...]:
    """Return the marks of a workspace that a call may change; none if they are there already."""
    workspace = setting.context.workspace
    path = str(workspace)
    mark = WORKSPACES.put(conversation, None, state=after, place=path)
    is_own = workspace.name == conversation
    # A shared place is marked even if this workspace is: it may have become a link since.
    if after == "theirs" or (after == setting.taint.files and is_own):
        return ()
    if is_own:
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
    """Gates, checks and runs the calls of one turn."""

    def __init__(self, turn: TurnContext) -> None:
        """Begin with no call cleared."""
        self._turn = turn
        self._services, self._session, self._opened = turn.services, turn.session, turn.opened
        self._cleared: dict[ActionId, tuple[Frozen, Cleared, Setting | None]] = {}
        self._workspace: Path | None = None
        self._workspace_error = ""
        # The setting that the gate decided in, until the calls that start at once are checked.
        self._gated_in: Setting | None = None
        # The verdict on the only call of a batch, if it starts at once and no grants were involved,
        # since grants expire; kept as long.
        self._as_gated: Cleared | None = None

    async def setting(self, action: ActionId | None = None) -> Setting:
        """Return the current setting for the gate; child processes are recorded as of `action`."""
        gated = self._gated_in
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

    async def gate(self, calls: tuple[ToolCall, ...]) -> Transition:
        """Gate a batch; its verdicts, rows and approval requests are one commit.

        Without approval requests, the commit of the calls that start includes it. These calls are
        remembered, so that they are not read again.
        """
        setting = await self.setting()
        gated = await self._services.gate.gate_batch(calls, setting)
        if gated.starts:
            self._turn.gated.update({frozen.action.id: frozen for frozen in gated.frozen})
            self._gated_in = setting
            is_alone = len(calls) == 1 and not setting.grants
            self._as_gated = gated.cleared[0] if is_alone else None
        entry = Gated(verdicts=gated.verdicts, at=self._services.clock.now())
        return Transition(
            events=(entry,),
            point=None if gated.starts else DurablePoint.GATED,
            journal=(entry,),
            audited=gated.audited,
            writes=(*gated.writes, *map(to_put, gated.approvals)),
        )

    async def check(self, slots: Mapping[ActionId, Slot]) -> Transition:
        """Check calls for the last time; all starts are recorded before the first call runs."""
        *others, last = slots.items()
        async with asyncio.TaskGroup() as group:
            checks = [group.create_task(self._check(*slot)) for slot in others]
            last_check = await self._check(*last)  # usually the only call, so it needs no task
        self._gated_in = self._as_gated = None
        transition = NOTHING
        for check in checks:
            transition = transition.then(check.result())
        return transition.then(last_check)

    async def _check(self, action: ActionId, slot: Slot) -> Transition:
        """Return the start of a call, or its end if it may not run after all."""
        frozen = await self._turn.frozen(action)
        gated, as_gated = self._gated_in, self._as_gated
        setting = await self.setting(action)
        # The other fields of a setting do not change while no call runs.
        if gated is None or (setting.current_principal, setting.revoked_by) != (
            gated.current_principal,
            gated.revoked_by,
        ):
            as_gated = None
        approval = slot.approval
        request = None if approval is None else await APPROVALS.get(self._services.store, approval)
        verdict = await self._services.gate.recheck(
            frozen, setting, request, written=slot.call.arguments, cleared=as_gated
        )
        if isinstance(verdict, Stopped):
            return await self._stopped(slot, frozen, verdict)
        facts, is_in_message = facts_of(verdict.tool.spec), verdict.in_message
        after = files_after(facts, setting.taint, is_in_message=is_in_message)
        marks = _marks(frozen.action.conversation, setting, after)
        # The context stays valid if no other call runs before, and this one marks no workspace.
        unchanged = None if as_gated is None or marks else setting
        self._cleared[action] = (frozen, verdict, unchanged)
        started = CallStarted(action=action, at=self._services.clock.now())
        # Marked before the call runs: after a kill in the middle, the files' origin is known.
        return Transition(
            events=(started,), point=DurablePoint.CALL_STARTED, journal=(started,), writes=marks
        )

    async def _stopped(self, slot: Slot, frozen: Frozen, verdict: Stopped) -> Transition:
        if slot.started:  # by an earlier process
            return await self.unknown(frozen.action.id, slot.call)
        text = f"`{slot.call.name}` did not run: {verdict.reason}"
        for_people = catalogue.CALL_DID_NOT_RUN.to(
            self._turn.language, tool=slot.call.name, why=verdict.for_people
        )
        refusal = refusal_result(
            self._services, frozen, text, outcome="denied", by=verdict.by, for_people=for_people
        )
        return self._end_call(refusal)

    async def run(self, action: ActionId) -> Transition:
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
        if not isinstance(returned, TimedOut):  # its result quotes no output
            untrusted = self._untrusted_sources(tool, frozen, returned, taint)
            end = replace(end, finished=replace(end.finished, untrusted=untrusted))
        return self._end_call(end)

    async def unknown(self, action: ActionId, call: ToolCall) -> Transition:
        """Return the end of a call whose outcome a restart lost, for model and operators (P3)."""
        for_people = catalogue.CALL_MAY_HAVE_RUN.to(self._turn.language, tool=call.name)
        principal = self._opened.principal
        line = catalogue.MAY_HAVE_RUN.about(
            tool=call.name, who=principal.label, where=self._turn.address.channel
        )
        notice = notice_row(self._services.ids.ulid(), line)
        refusal = refusal_result(
            self._services,
            await self._turn.frozen(action),
            MAY_HAVE_RUN,
            outcome="unknown",
            by="restart",
            for_people=for_people,
        )
        return replace(self._end_call(refusal), writes=(notice,))

    def _end_call(self, end: CallEnd) -> Transition:
        """Return the transition of a call's end, with all records of it."""
        finished, conversation = end.finished, self._session.conversation
        writes: list[Write] = []
        if end.blob is not None:
            trusted = not finished.untrusted
            row = kept_put(conversation, end.blob, finished.at, self._opened.turn, trusted=trusted)
            writes += (end.blob, row)
        for file in end.files:
            writes += self._sent(file)
        return Transition(
            events=(finished,),
            point=DurablePoint.CALL_FINISHED,
            journal=(finished,),
            audited=(end.audited,),
            writes=tuple(writes),
        )

    def _sent(self, file: ToolFile) -> tuple[Write, Write]:
        """Return the writes that send a file to the chat: its blob, and its outbox row."""
        blob = PutBlob(digest=hashlib.sha256(file.content).hexdigest(), body=file.content)
        post = FilePost(
            address=self._turn.address,
            name=file.name,
            media_type=file.media_type,
            digest=blob.digest,
            size_bytes=len(file.content),
            turn=self._opened.turn,
            caption=file.caption,
            reply_to=self._turn.row.reply_to,
            language=self._turn.language,
        )
        return blob, outbox_row(self._services.ids.ulid(), post, self._session.conversation)

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
