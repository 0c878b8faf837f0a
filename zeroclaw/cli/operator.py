"""Commands of an operator to the running daemon, through its control socket.

`status` and `reload`; `halt` and `resume`; `logout`; `pair` (people and pairing requests) and
`grants` (calls that run without asking). Without a daemon, most commands open its store or its file
instead, and import the code for that only then.
"""

import asyncio
from collections.abc import Iterator
from contextlib import aclosing
from pathlib import Path

import click
import msgspec

from zeroclaw.cli.client import ask, ask_if_running, change
from zeroclaw.cli.invocation import say
from zeroclaw.cli.options import as_json, at_place, print_result
from zeroclaw.errors import ConfigError, Refused, refused_as
from zeroclaw.host.answers import ChannelSeen, Grants, Halted, LoggedOut, Reloaded, Status, Text

_ACTOR = "the operator on this machine"


# --- status ----------------------------------------------------------------------------------------


@click.command("status")
@at_place
@as_json
def status(place: Path, *, as_json: bool) -> None:
    """Show the state of the running daemon.

    Its channels, its model, its work, how much disk space it uses, and a new link to the web page
    that logs one browser in. As long as no operator can be reached, also the code that makes its
    sender one. Exits with 3 if no daemon runs.
    """
    reply = asyncio.run(ask(place, "status", Status))
    print_result(msgspec.to_builtins(reply), status_lines(reply), as_json=as_json)


def status_lines(status: Status) -> Iterator[str]:
    """Yield a status as lines for a person."""
    yield f"zeroclaw   {status.version}"
    if status.halted:
        yield f"HALTED     by {status.halted}; `zeroclaw resume` goes on"
    failing = f"; failures in a row: {status.failures}, see `zeroclaw doctor`"
    yield f"model      {status.model}{failing if status.failures else ''}"
    if status.restart_for:
        yield f"restart    for {', '.join(status.restart_for)}"
    label = "channels"
    for name, channel in sorted(status.channels.items()):
        yield f"{label:<10} {name} {_condition(channel)}"
        label = ""
    yield f"work       {status.busy} at work, {status.waiting} waiting, {status.unsent} to be sent"
    if status.pending:
        yield f"approvals  {status.pending} to answer; `/pending` in a chat lists them"
    for name, count in sorted(status.dropped.items()):
        yield f"strangers  messages dropped on {name}: {count}"
    for name, count in sorted(status.refused.items()):
        yield f"limits     messages not taken on {name}: {count}"
    yield f"disk       {status.disk_bytes / 1e6:,.1f} MB"
    if status.claim:
        yield f"operator   nobody yet: send {status.claim} to the bot in a private chat"
    if status.login_url:
        yield f"web page   {status.login_url} (works once)"


def _condition(channel: ChannelSeen) -> str:
    since = "?" if channel.since is None else f"{channel.since.astimezone():%Y-%m-%d %H:%M:%S}"
    return f"{channel.condition} since {since}{f': {channel.why}' if channel.why else ''}"


# --- reload ----------------------------------------------------------------------------------------


@click.command("reload")
@at_place
def reload(place: Path) -> None:
    """Make the running daemon read its configuration again.

    Changes to people, policy and limits apply at once, also to running turns: those of removed
    people are stopped. Keys that need a restart are listed and keep their old values. If the file
    has a fault, every fault is printed and nothing changes. SIGHUP does the same, and logs the
    result.
    """
    result = asyncio.run(ask(place, "reload", Reloaded))
    if result.faults:
        raise ConfigError((*result.faults, "nothing was changed"))
    say("\n".join(reload_lines(result)))


def reload_lines(result: Reloaded) -> Iterator[str]:
    """Yield the result of a reload as lines for a person."""
    yield f"read        {result.file}"
    yield f"in force    {', '.join(result.live) or 'nothing new'}"
    if result.waiting:
        yield f"restart     needed for {', '.join(result.waiting)}; unchanged until then"
    for warning in result.warnings:
        yield f"warning     {warning}"


# --- halt and resume -------------------------------------------------------------------------------


@click.command("halt")
@at_place
def halt(place: Path) -> None:
    """Stop everything that runs, until `zeroclaw resume`.

    Running answers and commands end, no tool runs, and messages wait, also after a restart. If no
    daemon runs, the next one starts halted.
    """
    if asyncio.run(_switch(place, on=True)) is not None:
        say("halted: nothing runs and nothing starts, until `zeroclaw resume`")
    else:
        say("no daemon runs; the next one starts halted, until `zeroclaw resume`")


@click.command("resume")
@at_place
def resume(place: Path) -> None:
    """Go on after `zeroclaw halt`.

    Messages that waited are answered now. If no daemon runs, the next one starts as usual.
    """
    match asyncio.run(_switch(place, on=False)):
        case None:
            click.echo("no daemon runs; the next one starts as usual")
        case Halted(before=True):
            click.echo("going on: messages that waited are answered now")
        case _:
            click.echo("nothing was halted")


async def _switch(place: Path, *, on: bool) -> Halted | None:
    """Halt or resume; return the running daemon's answer, None if none runs."""
    if reply := await ask_if_running(place, "halt" if on else "resume", Halted, by=_ACTOR):
        return reply
    from zeroclaw.host.clock import SystemClock
    from zeroclaw.inbound.commands.invocation import switch
    from zeroclaw.stores.sqlite import open_store

    clock = SystemClock()
    async with aclosing(await open_store(place, clock=clock)) as store:
        await switch(store, on=on, by=_ACTOR, at=clock.now())
    return None


# --- logout ----------------------------------------------------------------------------------------


@click.command("logout")
@at_place
def logout(place: Path) -> None:
    """Log every browser out of the web page.

    That includes the console. Open pages say so at once, and unused login links stop working. No
    daemon has to run. `zeroclaw status` prints a new link.
    """
    reply = asyncio.run(ask_if_running(place, "logout", LoggedOut))
    count = _log_out_stored(place) if reply is None else reply.sessions
    browsers = "1 browser is" if count == 1 else f"{count} browsers are"
    click.echo(f"{browsers} logged out" if count else "no browser was logged in")


def _log_out_stored(place: Path) -> int:
    # The page's server is imported only if no daemon runs.
    from zeroclaw.host.atomic_file import closing_descriptor
    from zeroclaw.host.local_listener import SESSIONS, log_out_stored
    from zeroclaw.stores.sqlite.files import lock_directory

    if not place.is_dir():
        return 0
    lock = lock_directory(place)  # held by a starting daemon too, which has read the sessions
    with closing_descriptor(lock), refused_as(Refused, f"`{place / SESSIONS}` can't be changed"):
        return log_out_stored(place / SESSIONS)


# --- pair ------------------------------------------------------------------------------------------


@click.group("pair")
def pair() -> None:
    """Show who wants to talk to the bot; let people in, or remove them.

    On channels with `pairing = "code"`, a stranger who writes in private gets a code, and operators
    get a card. Instead of answering the card, you can use the stranger's code here.
    """


@pair.command("list")
@at_place
def pair_list(place: Path) -> None:
    """Show who is waiting, who was let in, and who was revoked."""
    say(asyncio.run(_pairs(place)))


@pair.command("approve")
@click.argument("person", metavar="CODE|PERSON")
@at_place
def pair_approve(place: Path, *, person: str) -> None:
    """Let in the person who has this code, or a revoked person."""
    say(asyncio.run(change(place, "pair", "approve", person)))


@pair.command("deny")
@click.argument("person", metavar="CODE|PERSON")
@at_place
def pair_deny(place: Path, *, person: str) -> None:
    """Refuse the person who has this code, and ignore them for a day."""
    say(asyncio.run(change(place, "pair", "deny", person)))


@pair.command("revoke")
@click.argument("person", metavar="PERSON")
@at_place
def pair_revoke(place: Path, *, person: str) -> None:
    """Remove a person at once, and stop their running turns.

    PERSON is a name from the configuration, or <channel>:<sender id>.
    """
    say(asyncio.run(change(place, "pair", "revoke", person)))


async def _pairs(place: Path) -> str:
    if (reply := await ask_if_running(place, "pair", Text, words="list")) is not None:
        return reply.text
    from zeroclaw.host.clock import SystemClock
    from zeroclaw.inbound.commands.pair import listed
    from zeroclaw.stores.sqlite.reader import open_read_only
    from zeroclaw.text.language import ENGLISH

    async with open_read_only(place) as store:
        return await listed(store, SystemClock().now(), ENGLISH)


# --- grants ----------------------------------------------------------------------------------------


@click.group("grants")
def grants() -> None:
    """Show the calls that may run for a time without asking, and revoke them.

    An approver who answers "for a time" grants that conversation further calls of that tool.
    """


@grants.command("list")
@at_place
@as_json
def grants_list(place: Path, *, as_json: bool) -> None:
    """Show every grant in force.

    Each with its number, tool, resources and end, its approver, and the person it is for.
    """
    reply = asyncio.run(ask(place, "grants", Grants, words="list"))
    print_result(reply.grants, (reply.text,), as_json=as_json)


@grants.command("revoke")
@click.argument("numbers", metavar="NUMBER…", nargs=-1, required=True)
@at_place
def grants_revoke(place: Path, *, numbers: tuple[str, ...]) -> None:
    """Revoke grants at once: the next such call asks again.

    `zeroclaw grants list` shows the numbers. Fails if no grant was revoked.
    """
    say(asyncio.run(change(place, "grants", "revoke", *numbers)))
