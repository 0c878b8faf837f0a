"""`zeroclaw demo`: half a minute with a scripted model and a real gate."""

import asyncio
from functools import partial
from importlib.resources import as_file, files

import click

from zeroclaw.cli.invocation import say

_FIRST = "Please put a haiku about a lobster into a file."


@click.command("demo")
@click.option(
    "--auto", is_flag=True, help="Approve without asking, and exit at the end; for pipes and tests."
)
def command(*, auto: bool) -> None:
    """See a draft, an approval and a receipt in half a minute.

    A script plays the model; everything else is real. The answer appears while it is written, a
    call waits for your approval, and its result carries a receipt that cannot be forged. The demo
    runs in a temporary directory, and needs no network and no key.
    """
    asyncio.run(_demo(auto=auto))


async def _demo(*, auto: bool) -> None:
    from zeroclaw.cli.chat.own_daemon import with_temporary_daemon
    from zeroclaw.cli.chat.session import Unanswered, converse

    with as_file(files("zeroclaw.cli") / "demo.toml") as script:
        tables = {
            "provider": {"kind": "scripted", "script": str(script)},
            # A running daemon may have the usual port.
            "channels": {"web": {"enabled": False}},
            # A person who leaves with a card open will not answer it.
            "runtime": {"grace_s": 0.5},
        }
        if not auto:
            click.echo("a script plays the model; when it asks for approval, press a and Enter")
        try:
            session = partial(converse, first=(_FIRST,), approves=auto)
            await with_temporary_daemon(tables, session, prefix="zeroclaw-demo-")
        except Unanswered as error:
            message = (
                "the demo waits for your approval, and nothing more can be typed here; run it in "
                "a terminal, or as `zeroclaw demo --auto`"
            )
            raise Unanswered(message) from error
    say("that was the demo; to talk to a model, run `zeroclaw chat`")
