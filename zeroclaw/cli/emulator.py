"""`zeroclaw try`: a channel without its platform."""

import asyncio
import os
import signal
from collections.abc import Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import cast

import click

from zeroclaw.channel import ChannelManifest
from zeroclaw.cli.options import Integer, with_config
from zeroclaw.emulator import Emulate, Emulated, EmulatorContext
from zeroclaw.errors import ConfigError, PortInUse
from zeroclaw.host.places import find_config

_KEY = "try"
_POLL_S = 0.05
_HOW_TO_TALK = """A temporary daemon answers there. Write to it as Ann; this asks Olga for an approval:
    /tool shell {"command": "date"}
Ctrl-C ends both."""


@click.command("try")
@click.argument("platform", metavar="CHANNEL")
@click.option("--run", is_flag=True, help="Also start a daemon that answers there.")
@click.option(
    "--port",
    type=Integer(0, 65535),
    default=0,
    help="The page's port on 127.0.0.1. Default: any free one.",
)
@click.option("--no-limits", is_flag=True, help="Turn off the platform's rate limits.")
@with_config
def command(platform: str, *, run: bool, port: int, no_limits: bool, config: Path | None) -> None:
    """Try a channel without its platform.

    Emulates the platform on this machine and opens a page with two people: Ann, who talks to the
    bot, and Olga, the operator, who is asked for approvals. You type and press buttons for both.
    Except for e-mail, you watch answers grow, and can make the bot's next message fail. Needs no
    account and no token.

    \b
    zeroclaw try telegram --run  with a daemon in a temporary directory
    zeroclaw try discord --run   likewise
    zeroclaw try email --run     likewise; needs root, dovecot and postfix
    zeroclaw try slack --run     likewise; first fetches a package from npm
    zeroclaw try telegram        prints how to connect your own daemon

    With --run, the model is the one in your configuration or, without one, the small model on this
    machine, which only chats. To see a tool call, write `/tool shell {"command": "date"}`. Ctrl-C
    ends it.
    """  # noqa: D301  the \b is click's
    try:
        emulate = _emulate_of(platform)
        path = find_config(config) if run else None
        click.echo(f"opening {platform} on this machine…", err=True)
        asyncio.run(_try(emulate, port=port, has_limits=not no_limits, run=run, config=path))
    except ModuleNotFoundError as error:  # an emulator imports its servers when it opens
        raise _missing_packages(platform) from error
    except KeyboardInterrupt:
        click.echo("")


async def _try(
    emulate: Emulate, *, port: int, has_limits: bool, run: bool, config: Path | None
) -> None:
    from zeroclaw.host.clock import SystemClock
    from zeroclaw.host.ids import SystemIds

    clock = SystemClock()
    context = EmulatorContext(clock=clock, ids=SystemIds(clock), port=port, has_limits=has_limits)
    async with AsyncExitStack() as stack:
        try:
            emulated = await stack.enter_async_context(emulate(context))
        except OSError as error:
            reason = os.strerror(error.errno or 0).lower()
            message = f"can't use port {port} of 127.0.0.1: {reason}; choose another with --port"
            raise PortInUse(message) from error
        if run:
            await _with_daemon(emulated, config)
        else:
            await _print_until_signal(_instructions(emulated))


async def _print_until_signal(text: str) -> None:
    """Print a text, and wait for Ctrl-C or SIGTERM.

    Both need handlers: a shell makes background programs ignore SIGINT, and without a handler
    SIGTERM would leave the directory behind.
    """
    loop, signalled = asyncio.get_running_loop(), asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, signalled.set)
    click.echo(text)
    await signalled.wait()


def _emulate_of(platform: str) -> Emulate:
    """Return the function that opens an emulator.

    Raises:
        ConfigError: No emulator of that name is installed, or a package that it needs is missing.
    """
    from zeroclaw.host import plugins

    if platform in plugins.names(plugins.CHANNELS):  # for the daemon's side
        manifest = plugins.load(plugins.CHANNELS, platform, key=_KEY)
        if isinstance(manifest, ChannelManifest) and not plugins.are_installed(manifest.needs):
            raise _missing_packages(platform)
    try:
        emulate = plugins.load(plugins.EMULATORS, platform, key=_KEY)
    except ConfigError as error:
        if isinstance(error.__cause__, ModuleNotFoundError):
            raise _missing_packages(platform) from error
        raise
    if not callable(emulate):
        raise ConfigError((f"{_KEY}: `{platform}` is installed, but is not a function",))
    return cast("Emulate", emulate)  # from a package's entry point; accepts a context or fails


def _missing_packages(platform: str) -> ConfigError:
    """Return the error that names everything to install for a channel and its emulator."""
    from zeroclaw.host import plugins

    return ConfigError((f"{_KEY}: {plugins.packages_needed(platform, f'try-{platform}')}",))


def _instructions(emulated: Emulated) -> str:
    """Return how to open the page, and how to connect a daemon."""
    import tomli_w

    variables = " ".join(f"{name}={value}" for name, value in emulated.environment.items())
    return f"""open    {emulated.page}

To connect a daemon, put these lines into its configuration

{tomli_w.dumps(emulated.tables).rstrip()}

and this into its environment

    {variables}

`--run` does all of that by itself. Ctrl-C ends it."""


async def _with_daemon(emulated: Emulated, config: Path | None) -> None:
    """Run a daemon on a temporary directory until a signal ends it."""
    from zeroclaw.cli.chat.own_daemon import with_temporary_daemon

    os.environ.update(emulated.environment)  # the daemon inherits it
    tables = await asyncio.to_thread(_tables, emulated.tables, config)
    click.echo("starting a daemon…", err=True)

    async def session(place: Path) -> None:
        await until_connected(place)
        await _print_until_signal(f"open    {emulated.page}\n\n{_HOW_TO_TALK}")

    await with_temporary_daemon(tables, session, prefix="zeroclaw-try-")


async def until_connected(place: Path) -> None:
    """Wait until each channel of the daemon in this data directory is up, or has failed.

    On most platforms, messages from before a channel's first connection are never answered.
    """
    from zeroclaw.cli.client import ask
    from zeroclaw.host.answers import Status
    from zeroclaw.host.clock import SystemClock

    clock, channels = SystemClock(), (await ask(place, "status", Status)).channels
    while any(channel.condition == "starting" for channel in channels.values()):
        await clock.sleep(_POLL_S)
        channels = (await ask(place, "status", Status)).channels


def _tables(tables: Mapping[str, object], config: Path | None) -> Mapping[str, object]:
    """Return a configuration for one session, with the model of the person's configuration.

    Raises:
        ConfigError: That configuration is not TOML.
    """
    from zeroclaw.config import table_of
    from zeroclaw.config.model import Config
    from zeroclaw.host.places import read_config

    text = read_config(config)
    try:
        configured = table_of(text)
    except ConfigError as error:
        fault = f"`{config}` can't be read: {error}; `zeroclaw check-config` says more"
        raise ConfigError((fault,)) from error
    model = {"provider": configured["provider"]} if "provider" in configured else {}
    # A running daemon may have the usual port, and people use the emulator's page anyway.
    off = {name: {"enabled": False} for name in Config().channels}
    channels = {"channels": {**off, **cast("Mapping[str, object]", tables.get("channels", {}))}}
    return {**model, **tables, **channels}
