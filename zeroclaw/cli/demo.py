"""`zeroclaw demo`: half a minute with a scripted model and a real gate."""

import asyncio
import tempfile
from importlib.resources import files
from pathlib import Path

import click

from zeroclaw.cli.invocation import say

_SCRIPT = "demo.toml"
_FIRST = "Please put a haiku about a lobster into a file."
_CONFIG = """\
data_dir = "{data}"
workspace_dir = "{workspaces}"

[provider]
kind = "scripted"
script = "{script}"

[channels.web]
enabled = false  # a daemon that runs already has the usual port

[runtime]
grace_s = 0.5  # who leaves with a card open answers it no more
"""


@click.command("demo")
@click.option(
    "--auto", is_flag=True, help="Approve by itself and leave at the end; for pipes and tests."
)
def command(*, auto: bool) -> None:
    """See a draft, an approval and a receipt in half a minute.

    A script stands in for the model; all else is real: the answer is shown while it is written, a
    call waits for your approval, and its result carries a receipt that cannot be forged. It runs
    on a directory of its own, which is thrown away. Needs no network and no key.
    """
    asyncio.run(_demo(auto=auto))


async def _demo(*, auto: bool) -> None:
    from zeroclaw.cli.chat.own_daemon import with_own_daemon
    from zeroclaw.cli.chat.session import Unanswered, sit

    with tempfile.TemporaryDirectory(prefix="zeroclaw-demo-") as folder:
        place = Path(folder)
        config = await asyncio.to_thread(_prepare, place)
        if not auto:
            click.echo("a script answers here; when it asks for your approval, press a and Enter")
        data = place / "data"
        try:
            await with_own_daemon(
                data,
                ("--config", str(config)),
                lambda: sit(data, first=(_FIRST,), approves=auto),
                is_kept=False,
            )
        except Unanswered as error:
            message = (
                "the demo waits for your approval, and nothing more can be typed here; run it in "
                "a terminal, or as `zeroclaw demo --auto`"
            )
            raise Unanswered(message) from error
    say("that was the demo; `zeroclaw chat` talks with a model")


def _prepare(place: Path) -> Path:
    """Write the demo's configuration and script; returns the configuration."""
    script = place / _SCRIPT
    script.write_text((files("zeroclaw.cli") / _SCRIPT).read_text(encoding="utf-8"), "utf-8")
    config = place / "config.toml"
    text = _CONFIG.format(data=place / "data", workspaces=place / "workspaces", script=script)
    config.write_text(text, encoding="utf-8")
    return config
