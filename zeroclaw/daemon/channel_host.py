"""Runs the channels: creates them with their contexts, mounts them, and keeps their accounts."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path

from zeroclaw.channel import Admit, Channel, ChannelContext, Menu
from zeroclaw.daemon.foundation import Foundation
from zeroclaw.delivery.account import Account
from zeroclaw.envelope import Accepted, Admission, Answered, Envelope, Position
from zeroclaw.errors import ConfigError, PortInUse, RecordUnreadable, ShuttingDown
from zeroclaw.foreign import Raised, call
from zeroclaw.gate.receipt_screen import screen_shown
from zeroclaw.host.clock import begin_in
from zeroclaw.host.logs import EventLog
from zeroclaw.host.places import CHANNELS
from zeroclaw.inbound.ingress import POSITIONS
from zeroclaw.inbound.operators import Notices
from zeroclaw.inbound.supervisor import Supervisor
from zeroclaw.inbound.transcript import Transcript
from zeroclaw.mount import Hook, LineStream
from zeroclaw.store import Commit, DurablePoint, Row, scan
from zeroclaw.text import catalogue

CALLS_AT_ONCE = 32
"""Concurrent calls to one platform; each is a separate request."""


class ChannelHost:
    """The configured channels, and their `Mount`.

    Attributes:
        accounts: Accounts of the channels that were up at least once, by name.
        web_name: Name of the web chat; empty if there is none.
        wakeup: Set when a channel comes up, or something new is stored for operators.
    """

    def __init__(self, foundation: Foundation, group: asyncio.TaskGroup) -> None:
        """Set up the bookkeeping; nothing runs before `start`."""
        self.wakeup = asyncio.Event()
        self._foundation = foundation
        self._group = group
        channels = foundation.start.checked.channels
        self.web_name = next((part.name for part in channels if part.manifest.kind == "web"), "")
        self.accounts: dict[str, Account] = {}
        self._positions: dict[str, dict[str, str]] = {}

    async def start(
        self,
        supervisor: Supervisor,
        transcript: Transcript,
        notices: Notices,
        menu: Callable[[str], Menu],
    ) -> None:
        """Start every channel at its stored position; waits for none of them.

        `menu` returns the command menu of a channel, by its name.
        """
        foundation = self._foundation
        positions = await self._read_positions(notices)
        data, channels = foundation.start.places.data, foundation.start.checked.channels
        folders = {it.name: await asyncio.to_thread(_directory, data, it.name) for it in channels}
        up = partial(self._up, supervisor)
        # No await from here on: a channel that fails at once is reported on the following ones.
        for part in channels:
            prefix = f"{part.name}/"
            ours = [(row, position) for row, position in positions if row.key.startswith(prefix)]
            accounts = {row.place.removeprefix(prefix) for row, _ in ours}
            self._positions[part.name] = {position.scope: position.cursor for _, position in ours}
            context = ChannelContext(
                name=part.name,
                settings=part.settings,
                secrets=part.secrets,
                clock=foundation.clock,
                mount=self,
                log=EventLog(f"channel.{part.name}"),
                positions=self._positions[part.name],
                account=accounts.pop() if len(accounts) == 1 else "",
                transcript=transcript.read,
                directory=folders[part.name],
                sent_file=transcript.sent_file,
                is_off_the_record=transcript.is_off_the_record,
                menu=menu(part.name),
                tell=notices.tell,
                admits=partial(notices.context.people.admits, part.name),
            )
            self._group.create_task(
                supervisor.keep(part.name, partial(part.make, context), up, self._ready),
                name=f"channel {part.name}",
            )

    async def _read_positions(self, notices: Notices) -> list[tuple[Row, Position]]:
        """Return the stored positions; report damaged ones once, because messages may be missed."""
        store, damaged = self._foundation.store, dict[str, list[str]]()
        positions: list[tuple[Row, Position]] = []
        async for row in scan(store, POSITIONS.where()):
            try:
                positions.append((row, POSITIONS.of(row)))
            except RecordUnreadable:
                damaged.setdefault(row.key.partition("/")[0], []).append(row.key)
        for channel, keys in damaged.items():
            await notices.tell(catalogue.POSITION_LOST.about(channel=channel))
            deletes = tuple(map(POSITIONS.delete, keys))
            await store.commit(Commit(point=DurablePoint.HOUSEKEEPING, writes=deletes))
        return positions

    def recording_positions(self, admit: Admit) -> Admit:
        """Wrap ingress to record the positions read, since an adapter may be recreated.

        A cancelled adapter leaves its admissions to finish: a committed change, such as a halt,
        comes into force only once it is announced. An event that is delivered again meanwhile waits
        for the same admission, so that a store that stalls collects no more of them.
        """
        running: dict[Envelope, asyncio.Task[Admission | Raised]] = {}

        async def admit_and_record(envelope: Envelope) -> Admission:
            admission = await admit(envelope)
            if envelope.position is not None and isinstance(admission, Accepted | Answered):
                positions = self._positions.setdefault(envelope.address.channel, {})
                positions[envelope.position.scope] = envelope.position.cursor
            return admission

        async def admit_once(envelope: Envelope) -> Admission:
            task = running.get(envelope)
            if task is None:
                work = call(lambda: admit_and_record(envelope))
                task = begin_in(self._group, work, name="admission")
                if task is None:
                    message = "zeroclaw is shutting down"
                    raise ShuttingDown(message)
                running[envelope] = task
                task.add_done_callback(lambda _: running.pop(envelope))
            admission = await asyncio.shield(task)
            if isinstance(admission, Raised):
                raise admission.error
            return admission

        return admit_once

    # --- mounts --------------------------------------------------------------------------------

    def web(self, prefix: str, application: object) -> str:
        """Mount a web application; see `Mount`."""
        if self._foundation.listener is None:
            message = "there is no local listener"
            raise PortInUse(message)
        return self._foundation.listener.web(prefix, application)

    def stream(self, name: str, serve: Callable[[LineStream], Awaitable[None]]) -> None:
        """Serve connections of the control socket; see `Mount`."""
        self._foundation.control.stream(name, serve)

    def public(self, path: str, hook: Hook) -> AbstractContextManager[None]:
        """Answer one path of the public listener; see `Mount`."""
        if self._foundation.public is None:
            fault = "no channel asked for the public listener before the daemon started"
            raise ConfigError((fault,))
        return self._foundation.public.mount(path, hook)

    # --- running channels ----------------------------------------------------------------------

    def channel_of(self, name: str) -> Channel | None:
        """Return a channel; None if it has not been up yet."""
        account = self.accounts.get(name)
        return None if account is None else account.channel

    def draft_account(self, name: str) -> Account | None:
        """Return the account of a channel if it shows answers while they are written."""
        # An answer may still be due on a channel that a reload removed.
        settings = self._foundation.settings.config.channels.get(name)
        return self.accounts.get(name) if settings is not None and settings.stream else None

    def _up(self, supervisor: Supervisor, channel: Channel) -> None:
        self.wakeup.set()
        if (account := self.accounts.get(channel.name)) is not None:
            account.swap_channel(channel)
            return
        self.accounts[channel.name] = Account(
            channel=channel,
            clock=self._foundation.clock,
            group=self._group,
            call_timeout_s=self._foundation.start.config.runtime.call_timeout_s,
            calls_at_once=CALLS_AT_ONCE,
            screen=partial(screen_shown, redactor=self._foundation.start.checked.redactor),
            note_refused=partial(supervisor.note_refused, channel.name),
        )

    def _ready(self, name: str) -> None:
        self.wakeup.set()
        self.accounts[name].retry_now()


def _directory(data: Path, channel: str) -> Path:
    """Create a channel's directory."""
    directory = data / CHANNELS / channel
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    return directory
