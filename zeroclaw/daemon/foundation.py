"""Opens the store, keys, providers, tools and listeners, before the first task runs."""

import asyncio
import os
import random
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, AsyncExitStack
from pathlib import Path
from typing import Protocol, cast

from zeroclaw.channel import Log
from zeroclaw.clock import Clock, Ids
from zeroclaw.config.model import Config, ProviderSettings
from zeroclaw.context_provider import ContextProvider
from zeroclaw.daemon.config_check import ANSWERS, SUMMARISES, CheckedConfig, providers_of
from zeroclaw.daemon.extensions import by_name, open_context_providers, open_tools
from zeroclaw.gate.approval import without_words
from zeroclaw.gate.protection import Protected
from zeroclaw.gate.receipt_keys import Keys, open_keys
from zeroclaw.host import cgroups, places, plugins
from zeroclaw.host.clock import SystemClock
from zeroclaw.host.control import Control
from zeroclaw.host.ids import SystemIds
from zeroclaw.host.local_listener import SESSIONS, Listener
from zeroclaw.host.logs import EventLog
from zeroclaw.inbound.live_config import LiveConfig
from zeroclaw.mount import Hook
from zeroclaw.provider import Endpoint, Provider, ProviderContext
from zeroclaw.store import Query, RowKind, Store
from zeroclaw.stores.off_the_record import OffTheRecord
from zeroclaw.stores.sqlite import open_store
from zeroclaw.tool import Tool
from zeroclaw.value import Value, field


class OpenStore(Protocol):
    """Opens the store; tests replace it to watch commits."""

    async def __call__(self, directory: Path, *, clock: Clock, log: Log) -> Store:
        """Open the store in the data directory."""
        ...


class Openers(Value):
    """The parts that a composition root may replace; the product replaces nothing.

    Attributes:
        store: Opens the store.
        clock: The source of time.
    """

    store: OpenStore = open_store
    clock: Clock = field(default_factory=SystemClock)


class Start(Value):
    """The inputs of a daemon's start; a reload reads another one, to compare.

    Attributes:
        config: The parsed configuration.
        checked: The result of checking it.
        places: The paths of its files and directories.
        version: The version shown to people.
        reread: Reads the configuration again; blocks, and raises `ConfigError` with every fault.
        written: The configuration as in the file, if `config` has a discovered model instead.
    """

    config: Config
    checked: CheckedConfig
    places: places.Places
    version: str
    reread: "Callable[[], Start]"
    written: Config | None = None


class ReadyFacts(Value):
    """The facts in the greeting of a daemon that is up.

    Attributes:
        model: The model's name.
        note: One line about the model; empty for none.
        web_url: Opens the web chat and logs in once; empty without a web chat.
        channels: The names of all channels.
        shell: Why there is no shell; empty if there is one or none was configured.
        halted: Who halted the daemon; empty if it is not halted.
        claim: A code that makes its sender an operator; empty for none; never logged.
        is_root: The daemon runs as root, which it should not.
    """

    model: str
    note: str
    web_url: str
    channels: tuple[str, ...]
    shell: str
    halted: str
    claim: str = ""
    is_root: bool = False


class Public(Protocol):
    """The public listener; its module is imported only if it is needed."""

    def mount(self, path: str, hook: Hook) -> AbstractContextManager[None]:
        """Answer one path while the context is open; see `Mount.public`."""
        ...

    async def serve(self) -> None:
        """Answer requests until cancelled; call once."""
        ...


class Foundation(Value):
    """The resources that are open before the first task runs.

    Attributes:
        start: What the daemon was started with; its configuration is in force for keys that need a
            restart.
        settings: The configuration in force, which a reload replaces.
        context: Context providers of other packages.
        summariser: Writes summaries instead of the provider; None if the provider does.
        groups: The package of each tool; a tool without one is its own group.
    """

    start: Start
    settings: LiveConfig
    store: Store
    provider: Provider
    tools: Mapping[str, Tool]
    keys: Keys
    protected: Protected
    listener: Listener | None
    public: Public | None
    control: Control
    clock: Clock
    ids: Ids
    log: Log
    jitter: Callable[[], float]
    shell_note: str
    watched: str
    context: tuple[ContextProvider, ...] = ()
    summariser: Provider | None = None
    groups: Mapping[str, str] = field(default_factory=dict[str, str])


async def open_foundation(start: Start, openers: Openers, stack: AsyncExitStack) -> Foundation:
    """Open everything; `stack` closes it in reverse order.

    Raises:
        NeedsOperator: A person has to fix something first.
    """
    config, log = start.config, EventLog("daemon")
    settings = LiveConfig(config, start.checked.statements, start.checked.skills)
    log_warnings(start.checked, log)
    clock = openers.clock
    ids = SystemIds(clock)
    data = start.places.data
    disk = await openers.store(data, clock=clock, log=log)
    store = OffTheRecord(disk, facts_of=without_words)
    stack.push_async_callback(store.aclose)
    await asyncio.to_thread(places.make_workspace, start.places.workspaces)
    await _follow(ids, store)
    listener = None
    if any(part.manifest.kind == "web" for part in start.checked.channels):
        listener = await asyncio.to_thread(
            Listener, config.listener, sessions_at=data / SESSIONS, clock=clock, ids=ids, log=log
        )
        stack.callback(listener.close)
    public = await _open_public(start, stack)
    providers: dict[str, Provider] = {}
    for path, _ in providers_of(config):
        provider = await asyncio.to_thread(open_provider, start, clock, path)
        stack.push_async_callback(provider.aclose)
        providers[path] = provider
    result = await asyncio.to_thread(cgroups.take_over)
    subtree, watched = (None, result) if isinstance(result, str) else (result, "")
    log("command_limits", by="a watch" if watched else "cgroups", reason=watched)
    groups, shell_note = await open_tools(
        settings,
        subtree=subtree,
        store=store,
        hidden=await asyncio.to_thread(hidden_paths, start.places),
        redact=start.checked.redactor.redact,
        stack=stack,
    )
    if shell_note:
        log("shell_unavailable", reason=shell_note, level="warning")
    context = await asyncio.to_thread(open_context_providers)
    # Last: a start that fails, again and again, must not add keys.
    keys = await asyncio.to_thread(
        open_keys,
        data,
        keep_days=config.receipts.keep_days,
        now=clock.now(),
        name=ids.ulid(),
        secret=os.urandom(32),
    )
    return Foundation(
        start=start,
        settings=settings,
        store=store,
        provider=providers[ANSWERS],
        tools=by_name(groups),
        groups={tool.spec.name: name for name, tools in groups.items() for tool in tools},
        keys=keys,
        protected=await asyncio.to_thread(protected_in, start.places),
        listener=listener,
        public=public,
        control=Control(data, log=log),
        clock=clock,
        ids=ids,
        log=log,
        jitter=random.random,
        shell_note=shell_note,
        watched=watched,
        summariser=providers.get(SUMMARISES),
        context=context,
    )


def log_warnings(checked: CheckedConfig, log: Log) -> None:
    """Log the oddities of a configuration."""
    for warning in checked.warnings:
        log("config_warning", what=warning, level="warning")


async def _follow(ids: SystemIds, store: Store) -> None:
    """Make new ids sort after all waiting rows, even if the clock was set back."""
    for kind in (RowKind.INBOX, RowKind.OUTBOX):
        for row in await store.select(Query(kind=kind, newest_first=True, limit=1)):
            ids.follow(row.key)


async def _open_public(start: Start, stack: AsyncExitStack) -> Public | None:
    """Bind the public listener if a channel needs it."""
    if not any(part.is_public for part in start.checked.channels):
        return None
    from zeroclaw.host.public_listener import PublicListener

    settings, log = start.config.public, EventLog("public")
    public = await asyncio.to_thread(PublicListener, settings, log=log)
    stack.callback(public.close)
    tls = bool(settings.cert_file)
    log("public_listener_opened", host=settings.host, port=public.port, tls=tls)
    return public


def open_provider(start: Start, clock: Clock, path: str = ANSWERS) -> Provider:
    """Open a configured provider, whose kind must not be `auto`; blocks.

    Raises:
        NeedsOperator: It can't be opened.
    """
    checked, key = start.checked, f"{path}.kind"
    settings = dict(providers_of(start.config))[path]
    opener = cast(
        "Callable[[ProviderSettings, ProviderContext], Provider]",
        plugins.load(plugins.PROVIDERS, settings.kind, key=key),
    )

    def open_endpoint(endpoint: Endpoint) -> Provider:
        from zeroclaw.providers.openai import open_endpoint as open_openai

        return open_openai(endpoint, context, settings)

    context = ProviderContext(
        clock=clock,
        ids=SystemIds(clock),
        jitter=random.random,
        log=EventLog("provider"),
        redact=checked.redactor.redact,
        secrets=checked.secrets_of(path),
        models=start.places.models,
        open_endpoint=open_endpoint,
        tokenizer=checked.tokenizers.get(path),
    )

    def open_whole() -> Provider:
        provider = opener(settings, context)
        _ = provider.facts, provider.stream, provider.aclose  # fails here for what is no provider
        return provider

    return plugins.opened(open_whole, settings.kind, key=key)


def protected_in(roots: places.Places) -> Protected:
    """Return the real paths that no policy can open: data directory, configuration and skills."""
    closed = dict.fromkeys(str(places.real(path)) for path in hidden_paths(roots))
    return Protected(closed=tuple(closed), open=(str(places.real(roots.workspaces)),))


def hidden_paths(roots: places.Places) -> tuple[Path, ...]:
    """Return the paths that tools never reach: as they are named, and as they really are.

    Without a configuration, also the place where a reload would find one.
    """
    config = roots.config or places.usual_config()
    named = [path for path in (roots.data, config, roots.skills) if path is not None]
    return tuple(dict.fromkeys((*named, *map(places.real, named))))
