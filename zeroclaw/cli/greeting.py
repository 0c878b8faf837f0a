"""The greeting of a started daemon: a few lines, each about something to do next."""

from collections.abc import Iterator

from zeroclaw.cli.configuration import Loaded
from zeroclaw.cli.invocation import command
from zeroclaw.daemon.foundation import ReadyFacts


def greeting(facts: ReadyFacts, loaded: Loaded) -> Iterator[str]:
    """Return the lines; the first says that the daemon is ready.

    Args:
        facts: About the daemon.
        loaded: Its configuration and places, and why a discovered model was chosen.
    """
    config, places = loaded.config, loaded.places
    yield f"zeroclaw is ready: {', '.join(facts.channels) or 'no channels'}"
    yield f"  model     {facts.model}"
    if loaded.reason:
        yield f"            {loaded.reason}"
    if facts.note:
        yield f"            {facts.note}"
    if facts.halted:
        yield f"  HALTED    by {facts.halted}; `{command('resume')}` goes on"
    if facts.shell:
        yield f"  no shell  {facts.shell}"
    if facts.is_root:
        yield "  root      should not run this; give it its own user, as deploy/zeroclaw.service does"
    if facts.claim:
        yield f"  operator  nobody yet: send {facts.claim} to the bot in a private chat, within the hour"
    if facts.web_url:
        yield f"  web page  {facts.web_url} (works once; `{command('status')}` prints a new one)"
    if "terminal" in {config.kind_of(name) for name in facts.channels}:
        yield f"  terminal  {command('chat')}"
    if config.provider.kind == "local" and facts.note:  # the note says that it calls no tools
        yield '  tools     call one yourself with `/tool shell {"command": "date"}`, or see'
        yield f"            `{command('demo')}`"
        where = f"in {places.config}" if places.config else f"with `{command('init')}`"
        yield f"  stronger  name a model that calls tools, {where}"
