"""Wires what every turn works with."""

import asyncio
from collections.abc import Callable
from pathlib import Path

from zeroclaw.config.model import NotesSettings, RuntimeSettings
from zeroclaw.context.notes import Notes
from zeroclaw.daemon.channel_host import ChannelHost
from zeroclaw.daemon.foundation import Foundation
from zeroclaw.daemon.live_config import LivePolicy
from zeroclaw.delivery.account import Account
from zeroclaw.delivery.live import Live
from zeroclaw.delivery.outbox import Outbox
from zeroclaw.envelope import ConversationId
from zeroclaw.events import Publish
from zeroclaw.gate.decide import Gate
from zeroclaw.gate.verdict import Refusals
from zeroclaw.host.logs import EventLog
from zeroclaw.inbound.approvals import Approvals
from zeroclaw.inbound.deadlines import CardHooks, Deadlines
from zeroclaw.inbound.identity import People
from zeroclaw.inbound.operators import Operators
from zeroclaw.retention.policy import is_over
from zeroclaw.store import Put
from zeroclaw.tools import attachments, results
from zeroclaw.turn.context import Failure, TurnServices
from zeroclaw.turn.deliveries import Deliveries
from zeroclaw.turn.downloads import Downloads
from zeroclaw.turn.model_call import Model, ModelRecord
from zeroclaw.turn.numbers import Numbers
from zeroclaw.turn.recollection import Recollection
from zeroclaw.turn.results import Results
from zeroclaw.turn.session import Leases
from zeroclaw.turn.states import Limits
from zeroclaw.turn.turn_row import open_drafts


def turn_rooms(
    foundation: Foundation,
    group: asyncio.TaskGroup,
    *,
    serving: ChannelHost,
    leases: Leases,
    live: Live,
    policy: LivePolicy,
    people: People,
    operators: Operators,
    requests: Callable[[], tuple[Approvals, Deadlines]],
    failed: Callable[[Failure], tuple[Put, ...]],
    publish: Publish,
    left_s: Callable[[str], float],
    log: EventLog,
) -> TurnServices:
    """Return them, with the gate and the outbox; strangers' questions and reminders are wired later."""
    config, redactor = foundation.start.config, foundation.start.checked.redactor
    settings = foundation.settings
    gate = Gate(
        tools=foundation.tools,
        policy=policy,
        protected=foundation.protected,
        redactor=redactor,
        refusals=Refusals(redactor, foundation.keys.current),
        clock=foundation.clock,
        ids=foundation.ids,
        settings=lambda: settings.config.approvals,
        approvers=operators.approvers,
    )
    outbox = Outbox(
        store=foundation.store,
        account_of=serving.account_of,
        clock=foundation.clock,
        group=group,
        fence_of=leases.fence_of,
        hooks=CardHooks(Deliveries(lambda: rooms), requests),
        jitter=foundation.jitter,
        drafts=lambda: open_drafts(foundation.store),
    )

    async def has_room() -> bool:
        return not is_over(settings.config.retention, await foundation.store.used_bytes())

    rooms = TurnServices(
        store=foundation.store,
        model=Model(
            provider=foundation.provider,
            redactor=redactor,
            record=ModelRecord(foundation.clock, log),
            slots=asyncio.Semaphore(config.runtime.model_concurrency),
            prompt=lambda: settings.config.runtime.prompt,
            max_output_tokens=config.provider.max_output_tokens,
        ),
        gate=gate,
        tools=foundation.tools,
        arrivals=Downloads(
            store=foundation.store,
            account_of=serving.account_of,
            clock=foundation.clock,
            settings=config.attachments,
            has_room=has_room,
            reader=attachments.NAME if attachments.NAME in foundation.tools else "",
            log=log,
        ),
        recollection=Recollection(
            notes=Notes(foundation.store),
            most_chars=recalled_chars(config.tools.notes, foundation.provider.facts.context_tokens),
            redact=redactor.redact,
        ),
        live=live,
        outbox=outbox,
        redactor=redactor,
        keys=foundation.keys,
        results=Results(
            keys=foundation.keys,
            redactor=redactor,
            cap_chars=lambda: settings.config.runtime.result_chars,
            reader=results.NAME if results.NAME in foundation.tools else "",
        ),
        numbers=Numbers(foundation.store),
        clock=foundation.clock,
        ids=foundation.ids,
        publish=publish,
        log=log,
        limits=lambda: limits_of(settings.config.runtime),
        each_approver=operators.each_approver,
        operators=operators.readers,
        failed=failed,
        policy=policy,
        halted=lambda: policy.halted_by,
        known=people.by_now,
        revoked=people.put_out_by,
        workspace=lambda conversation: _workspace(foundation, conversation),
        max_file_bytes=lambda address: _max_file_bytes(serving.account_of(address.channel)),
        left_s=left_s,
    )
    return rooms


def recalled_chars(settings: NotesSettings, context_tokens: int | None) -> int:
    """Return how long the notes of one message may be; a small window has room for little.

    A character takes up to four tokens in a language that the model hardly knows; then they fill
    half of the window.
    """
    most_chars = settings.recalled_chars if settings.enabled else 0
    return most_chars if context_tokens is None else min(most_chars, context_tokens // 8)


def limits_of(runtime: RuntimeSettings) -> Limits:
    """Return the bounds of a turn."""
    return Limits(max_rounds=runtime.max_iterations, max_tokens=runtime.max_session_tokens or None)


def _max_file_bytes(account: Account | None) -> int:
    """Return what a chat takes; one whose channel is not there yet can't be asked."""
    return 0 if account is None else account.capabilities.max_file_bytes


async def _workspace(foundation: Foundation, conversation: ConversationId) -> Path:
    return await asyncio.to_thread(_made, foundation.start.places.workspaces / conversation)


def _made(workspace: Path) -> Path:
    """Make a directory unless it is there; returns its real path, which conversations may share."""
    workspace.mkdir(mode=0o700, parents=True, exist_ok=True)
    # As tools name what is below it, links in the way there followed.
    return workspace.resolve()
