"""Asks what most people leave as it is: language, a name, the model's window, what tools reach."""

import re

import click

from zeroclaw.cli.composing import OWNER, Answers, ChosenChannel
from zeroclaw.text.language import LANGUAGES, NAMES
from zeroclaw.value import replace

_LEAST_TOKENS = 512
_NAME = re.compile(r"[a-z][a-z0-9_-]{0,31}")  # as `config.Name`


def ask_further(answers: Answers, *, far: frozenset[str]) -> Answers:
    """Return the answers with more of them; one question alone when nobody wants to be asked.

    `far` are the channels that other people than this machine's user may write on.
    """
    wanted = click.confirm(
        "More questions (language, your name, what tools may reach)?", default=False
    )
    if not wanted:
        return answers
    known = ", ".join(f"{code} {NAMES[code]}" for code in LANGUAGES)
    click.echo(
        f"What are the bot's own sentences said in, as long as people choose no other: {known}?"
    )
    language = click.prompt("Language", type=click.Choice(LANGUAGES), default=LANGUAGES[0])
    provider, owner = answers.provider, answers.owner
    if provider.kind == "openai":
        click.echo(
            "How many tokens does the model read at once? 0 where its server says so itself."
        )
        tokens = click.prompt("Context", value_proc=window, default="0")
        provider = provider.model_copy(update={"context_tokens": tokens or None})
    if answers.operators:
        owner = click.prompt("Your name, as policies call you", value_proc=name, default=OWNER)
    channels = tuple(_with_strangers(one, far) for one in answers.channels)
    return replace(
        answers,
        provider=provider,
        channels=channels,
        owner=owner,
        language=language,
        fetches=click.confirm("May tools read pages of the internet?", default=True),
        shell_network=click.confirm("May commands reach the network?", default=False),
    )


def _with_strangers(channel: ChosenChannel, far: frozenset[str]) -> ChosenChannel:
    if channel.by_code or channel.kind not in far:
        return channel
    question = f"May strangers on {channel.kind} ask to be let in? You are asked about each."
    return replace(channel, by_code=click.confirm(question, default=False))


def window(given: str) -> int:
    """Take a number of tokens, or 0.

    Raises:
        click.UsageError: It is none that a model could have.
    """
    tokens = int(given) if given.strip().isdecimal() else -1
    if tokens != 0 and tokens < _LEAST_TOKENS:
        message = f"a number of tokens, at least {_LEAST_TOKENS}, or 0"
        raise click.UsageError(message)
    return tokens


def name(given: str) -> str:
    """Take a name as `[[people]]` has them.

    Raises:
        click.UsageError: It is none.
    """
    text = given.strip().lower()
    if not _NAME.fullmatch(text):
        message = "a name begins with a letter, and has at most 32 of a to z, digits, - and _"
        raise click.UsageError(message)
    return text
