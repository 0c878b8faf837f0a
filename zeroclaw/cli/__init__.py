"""The command `zeroclaw`: lists every command, and imports only the one that runs.

Exit codes: 0 success · 1 the command failed · 2 wrong usage or configuration · 3 no daemon is
running, or it can't be reached. Errors are one line each, on stderr.
"""

import errno
import os
import re
import sys
from collections.abc import Generator
from contextlib import contextmanager
from importlib import import_module
from io import TextIOWrapper
from typing import IO

import click

from zeroclaw.cli.invocation import harmless
from zeroclaw.errors import ConfigError, ZeroclawError, did_you_mean, system_words

_STDERR = 2
# Otherwise pydantic searches every installed package for plugins to run on each model. That takes a
# thirtieth of the start, and runs foreign code that we do not want here.
os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")

COMMANDS = {
    "init": "Write a first configuration, after a few questions.",
    "run": "Run the daemon until a signal stops it.",
    "chat": "Talk to the bot in this terminal.",
    "demo": "See a draft, an approval and a receipt in half a minute.",
    "try": "Try a channel without its platform.",
    "status": "Show the state of the running daemon.",
    "usage": "Show how many tokens models used, and what that cost.",
    "logout": "Log every browser out of the web page.",
    "doctor": "Find out why the bot is silent, and what to do.",
    "halt": "Stop everything that runs, until `zeroclaw resume`.",
    "reload": "Make the running daemon read its configuration again.",
    "resume": "Go on after `zeroclaw halt`.",
    "pair": "Show who wants to talk to the bot; let people in, or remove them.",
    "grants": "Show the calls that may run for a time without asking, and revoke them.",
    "check-config": "Find every fault in the configuration.",
    "config": "Read and change keys of the configuration, or print its schema.",
    "models": "List, get and test models.",
    "policy": "Show what may run, and explain why.",
    "receipts": "Tell true receipts from false ones.",
    "export": "Export one conversation, or everything of one person.",
    "backup": "Copy all data to a new directory, even while the daemon runs.",
    "restore": "Replace the data with a backup, while no daemon runs.",
}
"""Each command with its line of help, in the order of the list."""
_OPERATORS = ("status", "logout", "halt", "reload", "resume", "pair", "grants")
_ELSEWHERE = {
    "try": "emulator:command",
    "restore": "backup:restore",
    "check-config": "config:check",
    **{name: f"operator:{name}" for name in _OPERATORS},
}
"""The location of a command that is not `command` in the file of its name."""


def load_command(name: str) -> click.Command:
    """Load the file of a command, and return the command."""
    file, _, attribute = _ELSEWHERE.get(name, f"{name}:command").partition(":")
    command: click.Command = getattr(import_module(f"zeroclaw.cli.{file}"), attribute)
    return command


class CommandFailed(click.ClickException):
    """An error as printed for a person."""

    def __init__(self, *lines: str) -> None:
        # `harmless` reads the command's options from click's context, which ends before `show`.
        self.lines = tuple(map(harmless, lines))
        super().__init__("; ".join(self.lines))

    def show(self, file: IO[str] | None = None) -> None:
        """Print one line for each fault."""
        for line in self.lines:
            click.echo(f"zeroclaw: {line}", file=file, err=file is None)


def failure_of(error: ZeroclawError) -> CommandFailed:
    """Return an error as printed for a person, with its exit code."""
    faults = error.faults if isinstance(error, ConfigError) else (str(error),)
    failure = CommandFailed(*(" ".join(fault.splitlines()) for fault in faults))
    failure.exit_code = error.exit_code  # pyright: ignore[reportAttributeAccessIssue]  click reads it from the instance
    return failure


def usage_failure(error: click.UsageError) -> click.ClickException:
    """Return a usage error as one line; help for an empty command line stays unchanged."""
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        return error
    text = re.sub(r"\. \(?Did (you .*\?)\)?$", r"; did \1", error.format_message()).rstrip(".")
    subcommands = [] if error.ctx is None else error.ctx.command_path.split()[1:]
    invoked = " ".join(("zeroclaw", *subcommands))
    if isinstance(error, click.NoSuchOption) and not subcommands:
        text += "; options stand behind the command"
    hint = "" if text.endswith("?") else f"; `{invoked} --help` shows how"
    line = f"{text[:1].lower()}{text[1:]}{hint}"
    return failure_of(ConfigError((line,)))


def _system_failure(error: OSError) -> str:
    """Describe what the system refused, such as a write to a full disk."""
    reason = system_words(error)
    if error.filename:
        return f"`{error.filename}`: {reason}"
    if error.errno == errno.ENOENT:  # without a file name, only `getcwd` raises it
        return "the current directory was removed; change to another"
    return f"it can't go on: {reason}"


@contextmanager
def _errors_as_lines() -> Generator[None]:
    """Turn expected errors into lines for a person."""
    try:
        yield
    except ZeroclawError as error:
        raise failure_of(error) from error
    except click.UsageError as error:
        raise usage_failure(error) from error
    except OSError as error:
        if error.errno == errno.EPIPE:  # the reader is gone; click ends silently
            raise
        raise CommandFailed(_system_failure(error)) from error


class _Lazy(click.Group):
    """Lists its commands without loading them."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  click's signature
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            if ctx.resilient_parsing:  # a shell completes a line, and prints no errors
                return None
            message = f"no such command '{cmd_name}'{did_you_mean(cmd_name, COMMANDS)}"
            raise click.UsageError(message, ctx)
        return load_command(cmd_name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002  click's signature
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        with _errors_as_lines():
            return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> object:
        with _errors_as_lines():
            return super().invoke(ctx)


@click.group(
    cls=_Lazy,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Begin with `zeroclaw demo` or `zeroclaw chat`.",
)
@click.version_option(package_name="zeroclaw", message="%(version)s")
def root() -> None:
    """An LLM agent with gated tools, in the chats you already use.

    `zeroclaw run` starts the daemon. The other commands talk to a running daemon, or need none.
    """


def _open_standard_streams() -> None:
    """Open /dev/null in place of closed standard streams, so that no socket gets their numbers.

    Characters that the locale's encoding does not have are read and written as escapes.
    """
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= _STDERR:
        pass
    os.close(descriptor)
    for name, number, mode in (("stdin", 0, "r"), ("stdout", 1, "w"), ("stderr", 2, "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(number, mode))
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def main() -> None:
    """Run the command line, and end the process.

    The interpreter would wait for every thread, even for one in which the system looks up a name
    while no name server answers.
    """
    _open_standard_streams()
    try:
        root.main(prog_name="zeroclaw")
    except SystemExit as end:
        # Everything is closed, and `click.echo` has flushed what it wrote.
        os._exit(int(end.code or 0))
