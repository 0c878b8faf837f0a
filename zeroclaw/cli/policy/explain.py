"""Explains a decision for `policy explain`, with this machine's tools and the store's state."""

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

from zeroclaw.cli.configuration import Loaded
from zeroclaw.config.model import Config
from zeroclaw.daemon.config_check import kinds_of
from zeroclaw.daemon.foundation import protected_in
from zeroclaw.daemon.tools import by_name, open_tools
from zeroclaw.errors import ConfigError, ToolArgumentsInvalid
from zeroclaw.gate.policy import configured
from zeroclaw.gate.ruling import Explained
from zeroclaw.host import plugins
from zeroclaw.host.clock import SystemClock
from zeroclaw.inbound.commands.explain import Explainer
from zeroclaw.inbound.commands.halt import last_halt
from zeroclaw.inbound.identity import People
from zeroclaw.inbound.live_config import LiveConfig, LivePolicy, learn_stored
from zeroclaw.stores.sqlite import open_store
from zeroclaw.stores.sqlite.files import FILE_NAME
from zeroclaw.stores.sqlite.reader import open_read_only
from zeroclaw.tool import Tool
from zeroclaw.tools import loading
from zeroclaw.value import replace


async def offered_here(config: Config, stack: AsyncExitStack) -> tuple[dict[str, Tool], str]:
    """Return the tools that a daemon would offer here, only to be inspected, and why no shell."""
    await asyncio.to_thread(plugins.names, plugins.TOOLS)  # reads every package, once
    # The tools are inspected, not run, so an empty store is enough.
    folder = await asyncio.to_thread(TemporaryDirectory, prefix="zeroclaw-policy-")
    stack.push_async_callback(asyncio.to_thread, folder.cleanup)
    empty = await open_store(Path(folder.name), clock=SystemClock())
    stack.push_async_callback(empty.aclose)
    groups, no_shell = await open_tools(
        LiveConfig(config, ()), store=empty, hidden=(), redact=str, version="", stack=stack
    )
    loaders = loading.tools(lambda _who, _where: (), lambda _who, _where: {})
    return by_name({**groups, "loading": loaders}), no_shell


async def explain(
    loaded: Loaded, *, who: str, tool: str, arguments: str, resources: tuple[str, ...]
) -> Explained:
    """Return the decision that would be made; see `Explainer.explain`.

    Raises:
        ConfigError: No person has this name, the arguments don't fit the tool, or a statement has
            a fault.
        StoreUnusable: There is a store, but it can't be read.
    """
    config, places = loaded.config, loaded.places
    settings = LiveConfig(config, configured(config.policy.statement))
    policy = LivePolicy(settings)
    async with AsyncExitStack() as stack:
        offered, no_shell = await offered_here(config, stack)
        people = await asyncio.to_thread(_people, config)
        # A halt and revoked people are in the store, if there is one.
        if await asyncio.to_thread((places.data / FILE_NAME).is_file):
            kept = await stack.enter_async_context(open_read_only(places.data))
            await learn_stored(kept, people)
            policy.halt(await last_halt(kept))
        policy.revoke(people.revoked)
        explainer = Explainer(
            settings=settings,
            people=people,
            policy=policy,
            protected=await asyncio.to_thread(protected_in, places),
            tools=offered,
            workspaces=await asyncio.to_thread(places.workspaces.resolve),
            clock=SystemClock(),
        )
        try:
            found = await explainer.explain(
                who=who, action=tool, arguments=arguments, resources=resources
            )
        except ConfigError as error:
            raise ConfigError(tuple(f"--who: {fault}" for fault in error.faults)) from error
        except ToolArgumentsInvalid as error:
            raise ConfigError((f"--args: {'; '.join(error.faults)}",)) from error
    sandbox = (f"there is no sandbox here: {no_shell}",) if no_shell else ()
    return replace(found, notes=(*sandbox, *found.notes))


def _people(config: Config) -> People:
    kinds = kinds_of([])
    channels = {
        name: kinds[kind][0]
        for name, settings in config.channels.items()
        if settings.enabled and (kind := config.kind_of(name)) in kinds
    }
    return People(config, channels)
