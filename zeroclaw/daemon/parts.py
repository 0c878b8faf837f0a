"""Opens what the daemon is made of: store, keys, provider, tools, the local listener."""

import asyncio
import os
import random
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, TypeVar, cast

from zeroclaw.channel import Channel, ChannelLog
from zeroclaw.clock import Clock, Ids
from zeroclaw.config import Config, FetchSettings, ProviderSettings
from zeroclaw.daemon.checked import Checked
from zeroclaw.daemon.stored import stored_tools
from zeroclaw.errors import ConfigError, ZeroclawError
from zeroclaw.foreign import Raised, call_now
from zeroclaw.gate.keys import Keys, open_keys
from zeroclaw.gate.policy import PolicySet
from zeroclaw.gate.protection import Protected
from zeroclaw.gate.shipped import assemble
from zeroclaw.gate.statement import Statement
from zeroclaw.host import places, sandbox, shelves
from zeroclaw.host.clock import SystemClock
from zeroclaw.host.control import Control
from zeroclaw.host.http import HttpxClient
from zeroclaw.host.ids import SystemIds
from zeroclaw.host.listener import Listener, open_listener
from zeroclaw.host.logs import EventLog
from zeroclaw.host.protected import Protected as Shielded
from zeroclaw.provider import Endpoint, Provider, ProviderContext
from zeroclaw.store import Store
from zeroclaw.stores.sqlite import open_store
from zeroclaw.tool import Tool
from zeroclaw.tools import fetch, files, shell

T = TypeVar("T")


class OpenStore(Protocol):
    """Opens the store; the tests' way in to watch its commits."""

    async def __call__(self, directory: Path, *, clock: Clock, log: ChannelLog) -> Store:
        """Open it in the data directory."""
        ...


async def _sqlite(directory: Path, *, clock: Clock, log: ChannelLog) -> Store:
    return await open_store(directory, clock=clock, log=log)


@dataclass(frozen=True, slots=True, kw_only=True)
class Openers:
    """What a composition root may replace; the product replaces nothing.

    Attributes:
        store: Opens the store.
        channel: Is handed each channel that was made, and returns the one that is used.
    """

    store: OpenStore = _sqlite
    channel: Callable[[Channel], Channel] = field(default=lambda channel: channel)


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """What the daemon is started with.

    Attributes:
        config: As parsed.
        checked: What checking it brought to light.
        places: Where everything is.
        version: As people are told it.
    """

    config: Config
    checked: Checked
    places: places.Places
    version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadyFacts:
    """What a person is told when the daemon is up.

    Attributes:
        model: The model's name.
        note: One line about the model, empty for none.
        web_url: Opens the web chat and logs in, once; empty without a web chat.
        channels: The names of all channels.
        shell: Why there is no shell, empty when there is one or none was asked for.
        halted: Who halted everything, empty for nobody.
        claim: The code that makes whoever sends it an operator, empty for none; never logged.
    """

    model: str
    note: str
    web_url: str
    channels: tuple[str, ...]
    shell: str
    halted: str
    claim: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """All that is open before the first task runs."""

    start: Start
    openers: Openers
    store: Store
    provider: Provider
    tools: Mapping[str, Tool]
    keys: Keys
    protected: Protected
    listener: Listener | None
    control: Control
    clock: Clock
    ids: Ids
    log: ChannelLog
    jitter: Callable[[], float]
    shell_note: str

    def policy(self, halt: Statement | None, revoked: frozenset[str] = frozenset()) -> PolicySet:
        """Return the policy with or without a halt, and without those who were put out."""
        config, checked = self.start.config, self.start.checked
        return assemble(
            config.autonomy,
            checked.statements,
            halt,
            approvers=config.approvals.approvers,
            revoked=revoked,
        )


async def open_parts(start: Start, openers: Openers, stack: AsyncExitStack) -> Parts:
    """Open everything; what is opened is closed by `stack`, in reverse.

    Raises:
        NeedsOperator: Something is wrong that a person has to mend.
    """
    config, log = start.config, EventLog("daemon")
    clock = SystemClock()
    ids = SystemIds(clock)
    data = start.places.data
    store = await openers.store(data, clock=clock, log=log)
    stack.push_async_callback(store.aclose)
    keys = await asyncio.to_thread(
        open_keys,
        data,
        keep_days=config.receipts.keep_days,
        now=clock.now(),
        name=ids.ulid(),
        secret=os.urandom(32),
    )
    listener = None
    if any(part.manifest.kind == "web" for part in start.checked.channels):
        listener = await open_listener(
            host=config.listener.host,
            port=config.listener.port,
            sessions_at=data / "sessions.json",
            clock=clock,
            ids=ids,
            log=log,
        )
        stack.push_async_callback(listener.aclose)
    provider = await asyncio.to_thread(open_provider, start, clock, ids)
    stack.push_async_callback(provider.aclose)
    tools, shell_note = await _open_tools(start, store, stack)
    return Parts(
        start=start,
        openers=openers,
        store=store,
        provider=provider,
        tools=tools,
        keys=keys,
        protected=await asyncio.to_thread(_protected, start.places),
        listener=listener,
        control=Control(data, log=log),
        clock=clock,
        ids=ids,
        log=log,
        jitter=random.random,
        shell_note=shell_note,
    )


def open_provider(start: Start, clock: Clock, ids: Ids) -> Provider:
    """Open the provider of a configuration whose kind is not left open; blocks.

    Raises:
        NeedsOperator: It can't be opened.
    """
    settings, checked = start.config.provider, start.checked
    key = "provider.kind"
    opener = cast(
        "Callable[[ProviderSettings, ProviderContext], Provider]",
        shelves.load(shelves.PROVIDERS, settings.kind, key=key),
    )

    def open_endpoint(endpoint: Endpoint) -> Provider:
        from zeroclaw.providers.openai import open_endpoint as open_openai

        return open_openai(endpoint, context, settings)

    context = ProviderContext(
        clock=clock,
        ids=ids,
        jitter=random.random,
        log=EventLog("provider"),
        redact=checked.redactor.redact,
        secrets=checked.provider_secrets,
        models=start.places.models,
        open_endpoint=open_endpoint,
    )
    return _opened(lambda: opener(settings, context), settings.kind, key=key)


def _opened(opener: Callable[[], T], name: str, *, key: str) -> T:
    """Call an opener that may be a stranger's; what it has to say in our own errors is kept."""
    found = call_now(opener)
    if not isinstance(found, Raised):
        return found
    if isinstance(found.error, ZeroclawError):
        raise found.error
    fault = f"{key}: `{name}` can't be opened (it {found.line})"
    raise ConfigError((fault,)) from found.error


async def _open_tools(
    start: Start, store: Store, stack: AsyncExitStack
) -> tuple[dict[str, Tool], str]:
    """Return the tools by name, and why there is no shell."""
    config = start.config.tools
    hidden = tuple(path for path in (start.places.data, start.places.config) if path is not None)
    shielded = Shielded(hidden=hidden)
    found: list[Tool] = []
    note = ""
    if config.fetch.enabled:
        found += _open_fetch(config.fetch, start.version, stack)
    if config.files.enabled:
        settings = files.FilesSettings(
            max_read_bytes=config.files.max_read_bytes,
            max_write_bytes=config.files.max_write_bytes,
            protected=shielded,
        )
        found += files.tools(settings)
    if config.shell.enabled:
        limits = sandbox.Limits(memory_bytes=config.shell.memory_bytes)
        tested = await sandbox.self_test(limits, network=config.shell.network)
        if isinstance(tested, sandbox.Broken):
            note = tested.reason
        found += shell.tools(
            shell.ShellSettings(
                sandbox=tested,
                network=config.shell.network,
                timeout_s=config.shell.timeout_s,
                limits=limits,
                protected=shielded,
                without_sandbox=config.shell.without_sandbox,
            )
        )
    found += stored_tools(start.config, store, start.checked.redactor.redact)
    for name in shelves.names(shelves.TOOLS):
        if name not in {"fetch", "files", "notes", "results", "shell"}:
            key = f"tools.{name}"
            opener = cast(
                "Callable[[], tuple[Tool, ...]]", shelves.load(shelves.TOOLS, name, key=key)
            )
            found += _opened(opener, name, key=key)
    return {tool.spec.name: tool for tool in found}, note


def _open_fetch(config: FetchSettings, version: str, stack: AsyncExitStack) -> tuple[Tool, ...]:
    """Return the fetch tool, with a client of its own that keeps no connection."""
    settings = fetch.FetchSettings(
        max_bytes=config.max_bytes,
        timeout_s=config.timeout_s,
        max_redirects=config.max_redirects,
        redirects=config.redirects,
        ports=config.ports,
        allow=config.allow,
        user_agent=f"zeroclaw/{version}",
    )
    http = HttpxClient(limits=fetch.limits(settings))
    stack.push_async_callback(http.aclose)
    return fetch.tools(settings, http=http)


def _protected(where: places.Places) -> Protected:
    """Return what no policy opens: the data directory and the configuration, by real path."""
    closed = [str(where.data.resolve())]
    if where.config is not None:
        closed.append(str(where.config.resolve()))
    return Protected(closed=tuple(closed), open=(str(where.workspaces.resolve()),))
