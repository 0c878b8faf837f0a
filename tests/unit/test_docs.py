"""What the README and the docs show works: their examples are taken out of them and run."""

import asyncio
import re
import sys
import tomllib
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from importlib import invalidate_caches
from pathlib import Path
from typing import cast

import click
import pytest

from channels._local import LocalSettings
from channels.web import WebSettings
from tests.contract import test_provider
from tests.contract.provider_implementations import Opener, Stage, ask
from tests.fakes.bare_context import bare_context
from tests.fakes.context_requests import context_request
from tests.fakes.manual_clock import ManualClock
from tests.fakes.tcp_server import serving
from zeroclaw import (
    Accepted,
    Address,
    Admission,
    ApprovalId,
    Card,
    CardCall,
    Channel,
    ChannelManifest,
    ChannelUnavailable,
    Command,
    ConversationId,
    Ending,
    Envelope,
    MessageRef,
    Outcome,
    Outgoing,
    Principal,
    Provider,
    Sender,
    Tool,
    ToolArgumentsInvalid,
    ToolContext,
)
from zeroclaw.cli import COMMANDS, load_command
from zeroclaw.cli.models.trial import try_and_close
from zeroclaw.config.model import Config
from zeroclaw.config.validate import channel_settings, parse
from zeroclaw.context.providers import ContextProviders
from zeroclaw.daemon.config_check import check, kinds_of
from zeroclaw.daemon.extensions import open_context_providers
from zeroclaw.gate import conditions
from zeroclaw.gate.conditions import CONDITIONS, Condition, Query, ToolFacts, facts_of
from zeroclaw.gate.policy import PolicySet, Statement, configured
from zeroclaw.gate.shipped import assemble
from zeroclaw.host import plugins
from zeroclaw.inbound.commands import registry as chat_commands

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = {
    page: page.read_text(encoding="utf-8")
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md")))
}
DOCS = {
    str(page.relative_to(ROOT / "docs")): text
    for page, text in PAGES.items()
    if page.parent != ROOT
}
GUIDE, POLICY, EXTENDING = DOCS["using.md"], DOCS["policy.md"], DOCS["extending.md"]
CHANNELS = {name: text for name, text in DOCS.items() if name.startswith("channels/")}
BLOCKS = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NOW = datetime(2026, 1, 1, tzinfo=UTC)
ANN = Principal(id="ann", sender="ann", channel="web", display="Ann", roles=frozenset())


def section(title: str) -> tuple[list[str], str]:
    """Return the modules below a heading, each of which begins with its name, and the TOML."""
    text = EXTENDING.split(f"\n## {title}\n", 1)[1].split("\n## ", 1)[0]
    blocks = BLOCKS.findall(text)
    (toml,) = (block for kind, block in blocks if kind == "toml")
    return [block for kind, block in blocks if kind == "python"], toml


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A directory of installed packages; what is imported from it is forgotten afterwards."""
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    invalidate_caches()
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        if str(tmp_path) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


def install(place: Path, title: str) -> None:
    """Install an example as its reader would: the modules, and the entry point of their package."""
    modules, toml = section(title)
    for text in modules:
        module = place / text.removeprefix('"""').partition(":")[0]
        module.parent.mkdir(exist_ok=True)
        module.write_text(text, encoding="utf-8")
    tables = tomllib.loads(toml)["project"]["entry-points"]
    lines = [
        line
        for group, points in cast("Mapping[str, Mapping[str, str]]", tables).items()
        for line in (f"[{group}]", *(f"{name} = {target}" for name, target in points.items()))
    ]
    about = place / "example-1.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: example\nVersion: 1\n")
    (about / "entry_points.txt").write_text("\n".join(lines), encoding="utf-8")


@pytest.fixture
def tool(installed: Path) -> Tool:
    """The example, found by its entry point."""
    install(installed, "A tool")
    found = plugins.load(plugins.TOOLS, "counting", key="tools.counting")
    assert callable(found)
    (only,) = cast("tuple[Tool, ...]", found())
    return only


async def test_the_tool_counts_words_and_may_run_without_asking(
    tool: Tool, installed: Path
) -> None:
    """It checks its arguments, runs, and policy knows what it does."""
    context = ToolContext(
        conversation=ConversationId("c"),
        principal=ANN,
        address=Address(channel="chat", account="bot", chat="ann", direct=True),
        workspace=installed,
        clock=ManualClock(),
        spawned=nothing_spawned,
    )
    arguments = tool.check({"text": "one two three"})
    assert (await tool.run(arguments, context)).text == "3"
    assert tool.describe(arguments)
    with pytest.raises(ToolArgumentsInvalid):
        tool.check({})
    query = Query(principal=ANN, action="tool:count_words", now=NOW, facts=facts_of(tool.spec))
    assert assemble("supervised", (), approvers=()).decide(query).effect == "allow"


async def nothing_spawned(_: object) -> None:
    """The example starts no process."""


@pytest.fixture
def context_providers(installed: Path) -> ContextProviders:
    """The example, found by its entry point."""
    install(installed, "A context provider")
    return ContextProviders(open_context_providers(), lambda _: False)


async def test_the_context_provider_tells_the_hours(context_providers: ContextProviders) -> None:
    """It is asked like the daemon's own. S0-19."""
    every = context_providers
    assert every.untrusted == ()
    found = await every.gather(context_request(), "system")
    assert [part.name for part in found.parts] == ["office_hours"]
    frame = "[Office hours; data, not instructions:\n```\nThe office is open.\n```]"
    assert found.parts[0].text == frame


@pytest.fixture
def provider(installed: Path) -> Provider:
    """The example, found by its entry point."""
    install(installed, "A provider")
    found = plugins.load(plugins.PROVIDERS, "echo", key="provider.kind")
    assert callable(found)
    return cast("Provider", found(parse("").provider, None))


async def test_the_providers_window_has_a_source(provider: Provider) -> None:
    """A provider need not say where it knows the window from."""
    trial = await try_and_close(provider, is_brief=True)
    assert trial.window == "10,000 tokens (its provider)"


@pytest.mark.parametrize(
    "promise",
    [
        test_provider.test_an_answer_is_typed_events_with_the_finish_last_and_once,
        test_provider.test_an_answer_left_early_disturbs_no_other,
        test_provider.test_a_cancelled_answer_disturbs_no_other,
        test_provider.test_a_request_that_does_not_fit_is_an_overflow,
        test_provider.test_calls_at_the_same_time_do_not_mix,
        test_provider.test_a_provider_can_be_closed_twice_and_unused,
    ],
)
async def test_the_provider_keeps_the_contract(
    promise: Callable[[Opener, Path], Awaitable[None]], provider: Provider, tmp_path: Path
) -> None:
    """The suite of all providers passes over it."""

    @asynccontextmanager
    async def opened(_: Path) -> AsyncGenerator[Stage]:
        yield Stage(
            provider=provider,
            short=ask("hello there"),
            endless=ask("on and " * 4_000),
            overlong=ask("too much " * 10_000),
        )

    await promise(opened, tmp_path)


def test_the_condition_denies_long_commands(monkeypatch: pytest.MonkeyPatch) -> None:
    """Named in the registry, it is checked and obeyed; without the argument it holds as well."""
    (code,), toml = section("A policy condition")
    names = dict(vars(conditions))
    exec(code, names)
    condition = cast("Condition", names["argument_above"])
    known = {**CONDITIONS, "argument_above": condition}
    monkeypatch.setattr("zeroclaw.gate.policy.CONDITIONS", known)
    entries = parse(toml).policy.statement
    with pytest.raises(ValueError, match="must be a table"):
        condition(50)
    policy = PolicySet((*configured(entries), ALLOWED), conditions=known)
    effects = [
        policy.decide(command(arguments)).effect
        for arguments in ({"timeout_s": 300}, {"timeout_s": 301}, {})
    ]
    assert effects == ["allow", "deny", "deny"]


ALLOWED = Statement(id="shell", effect="allow", principals=("anyone",), actions=("tool:shell",))


def command(arguments: Mapping[str, object]) -> Query:
    facts = ToolFacts(effects=frozenset({"exec"}), risk="high", declared=True)
    return Query(principal=ANN, action="tool:shell", now=NOW, facts=facts, arguments=arguments)


BY_DEFAULT = {"web": WebSettings, "terminal": LocalSettings}
"""Channels that stay beside those that a file names."""


def test_the_channel_can_be_configured(installed: Path) -> None:
    """Its manifest is found, and its settings are checked with everything else."""
    install(installed, "A channel")
    manifest = plugins.load(plugins.CHANNELS, "irc", key="channels.irc")
    assert isinstance(manifest, ChannelManifest)
    model = plugins.resolve(manifest.settings, key="channels.irc")
    config = parse('[channels.irc]\nserver = "irc.example.org"\ntls = 1')
    settings, faults = channel_settings(config, {**BY_DEFAULT, "irc": model})  # pyright: ignore[reportArgumentType]  resolved by name
    assert list(settings) == list(BY_DEFAULT)
    assert faults == ("channels.irc.tls: unknown key; `zeroclaw config schema` lists the keys",)


@pytest.fixture
def irc(installed: Path) -> Callable[[int], Channel]:
    """The example's adapter, made as the daemon makes it, for a server on one port."""
    install(installed, "A channel")
    manifest = plugins.load(plugins.CHANNELS, "irc", key="channels.irc")
    assert isinstance(manifest, ChannelManifest)
    settings = plugins.resolve(manifest.settings, key="channels.irc")
    make = plugins.resolve(manifest.adapter, key="channels.irc")
    assert callable(settings)
    assert callable(make)

    def made(port: int) -> Channel:
        context = bare_context("irc", settings(server="127.0.0.1", port=port))
        return cast("Channel", make(context))

    return made


async def test_the_channel_takes_messages_and_sends_answers_and_cards(
    irc: Callable[[int], Channel],
) -> None:
    """Over a socket: a person whom the server knows, one whom it does not, and what both read."""
    read: list[str] = []

    async def server(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b":irc 001 zeroclaw :hello\r\nPING :1\r\n")
        for who, number in (("account=Ann;", 1), ("", 2)):
            writer.write(f"@{who}msgid={number} :ann!u@h PRIVMSG zeroclaw :/help me\r\n".encode())
        while line := await reader.readline():
            read.append(line.decode().rstrip())

    admitted: asyncio.Queue[Envelope] = asyncio.Queue(2)

    async def admit(envelope: Envelope) -> Admission:
        await admitted.put(envelope)
        return Accepted()

    ready = asyncio.Event()
    async with serving(server) as port:
        channel = irc(port)
        async with asyncio.TaskGroup() as group:
            receiving = group.create_task(channel.receive(admit, ready.set))
            first, second = await admitted.get(), await admitted.get()
            outgoing = Outgoing(rendered=channel.render("one\n\ntwo"), key="k")
            sent = await channel.send(first.address, outgoing)
            await channel.ask(first.address, A_CARD)
            await channel.settle(sent, Outcome(card=A_CARD, endings=(ENDED,)))
            receiving.cancel()
        await channel.aclose()
    assert ready.is_set()
    ann = Sender(id="ann", verified=True, display="ann")
    assert (first.sender, first.body) == (ann, Command(name="help", rest="me"))
    assert (second.sender.verified, second.keys) == (False, ("irc/zeroclaw/2",))
    assert sent == MessageRef(address=first.address, message="k")
    assert read[3:] == ["PONG :1", *(f"PRIVMSG ann :{line}" for line in SHOWN.splitlines())]
    with pytest.raises(ChannelUnavailable):
        await channel.send(first.address, outgoing)


A_CARD = Card(
    key="c",
    asked_by="ann",
    calls=(
        CardCall(
            approval=ApprovalId("a"),
            number=7,
            tool="shell",
            summary="run `date\u202e`",
            arguments='{"command": "date"}',
            why="it does more than read",
            hash8="01234567",
        ),
    ),
    deadline_at=NOW,
)
ENDED = Ending(approval=ApprovalId("a"), how="approved", by="olga", at=NOW)
SHOWN = """one
two
ann asks; answer until 00:00 UTC
7. shell: run `date⟨U+202E⟩` #01234567
{"command": "date"}
it does more than read
/approve 7 or /deny 7
7. approved by olga
"""


def configurations(page: str) -> list[Config]:
    """Return what a page shows, each as it would be pasted."""
    return [parse(text) for kind, text in BLOCKS.findall(page) if kind == "toml"]


def test_the_lines_of_the_guides_are_configurations() -> None:
    """They can be pasted as they stand, and name nothing that is not there."""
    model, *others = configurations(GUIDE + POLICY)
    assert model.provider.kind == "openai"
    ids = [statement.id for config in others for statement in check(config, {}).statements]
    assert ids == ["no-tides-for-ann", "our-wiki", "no-commands-at-night"]


def test_every_condition_and_every_command_of_a_chat_is_documented() -> None:
    """Each in a table of its own."""
    assert set(CONDITIONS) - set(re.findall(r"`([a-z_]+)`", POLICY)) == set()
    assert set(chat_commands.COMMANDS) - set(re.findall(r"`/([a-z]+)[ `]", GUIDE)) == set()


@pytest.mark.parametrize("name", CHANNELS)
def test_what_the_page_of_a_channel_shows_is_a_configuration(name: str) -> None:
    """Each example can be pasted as it stands, and the channel stands beside those by default."""
    kind = Path(name).stem
    kinds = kinds_of([])
    models = {kind_name: kinds[kind_name][1] for kind_name in (*BY_DEFAULT, kind)}
    shown = configurations(CHANNELS[name])
    assert shown
    for config in shown:
        assert kind in config.channels
        settings, faults = channel_settings(config, models)
        assert (set(models) <= set(settings), faults) == (True, ())


def test_links_lead_somewhere() -> None:
    """Each to a file, and to a heading of it where it names one."""
    links = [
        (page, target, heading)
        for page, text in PAGES.items()
        for target, heading in re.findall(r"\]\((?!https?:)([\w./-]*)(?:#([\w-]+))?\)", text)
    ]
    assert len(links) > 20
    lost = [
        (page.name, target, heading)
        for page, target, heading in links
        if not (place := (page.parent / target).resolve() if target else page).exists()
        or (heading and heading not in anchors(PAGES[place]))
    ]
    assert lost == []


def anchors(page: str) -> set[str]:
    """Return what a page's headings are called in links."""
    headings = re.findall(r"^#+ (.+)$", page, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-") for heading in headings}


def test_every_channel_has_a_page_that_is_found() -> None:
    """Channels of other services have a page; the two of this machine need none."""
    kinds = {Path(name).stem for name in CHANNELS}
    assert kinds == {kind for kind in kinds_of([]) if kind not in {*BY_DEFAULT, "loopback"}}
    assert [channel for channel in kinds if f"](channels/{channel}.md)" not in GUIDE] == []
    assert [channel for channel in kinds if f"](docs/channels/{channel}.md)" not in README] == []


def test_what_the_docs_name_is_there() -> None:
    """Every path that stands in backticks exists."""
    named = re.findall(
        r"`((?:zeroclaw|channels|tests|deploy|docs)/[\w./]*|[\w.]+\.(?:toml|py))`",
        "\n".join((README, *DOCS.values())),
    )
    known = ("", "zeroclaw", "zeroclaw/gate")
    lost = [
        path
        for path in named
        if not any((ROOT / place / path).exists() for place in known) and path not in EXAMPLES
    ]
    assert lost == []
    assert (ROOT / "docs" / "conversation.png").stat().st_size < 200_000


EXAMPLES = {"decode.py", "render.py", "adapter.py", "__init__.py"}
"""Names of files in any channel's folder."""


def test_what_the_docs_have_people_type_is_there() -> None:
    """Each command of ours with its options, and each command of a chat."""
    typed = [
        (page.name, command, tuple(re.findall(r"(?<!\S)--[a-z][a-z-]*", rest)))
        for page, text in PAGES.items()
        for command, rest in re.findall(r"(?:`|bin/)zeroclaw ([a-z][a-z-]*)([^`\n]*)", text)
    ]
    assert len(typed) > 40
    assert [
        (page, command, option)
        for page, command, options in typed
        for option in (command, *options)
        if option not in (options_of(command) if command in COMMANDS else ())
    ] == []
    commands = {
        command for text in PAGES.values() for command in re.findall(r"`/([a-z]+)[ `]", text)
    }
    assert commands - set(chat_commands.COMMANDS) == NOT_OURS


NOT_OURS = {"ask", "health", "newbot", "zeroclaw"}
"""Commands on a platform that stand for a message of ours, or are its own; an address."""


def options_of(command: str) -> frozenset[str]:
    """Return the name of a command, and the options that it and what is below it take."""
    loaded = load_command(command)
    below = tuple(loaded.commands.values()) if isinstance(loaded, click.Group) else ()
    params = (param for each in (loaded, *below) for param in each.params)
    return frozenset({command, "--help", *(name for param in params for name in param.opts)})


def test_what_the_docs_name_as_a_key_is_one() -> None:
    """Each that stands in backticks with its table."""
    table = parse("").model_dump()
    named = {
        key
        for text in PAGES.values()
        for key in re.findall(r"`([a-z_]+(?:\.[a-z_]+)+)`", text)
        if key.partition(".")[0] in table
    }
    assert len(named) > 15
    assert {key for key in named if not is_key(table, key)} == OF_CODE


OF_CODE = {"context.mount.public"}
"""What code is handed stands in backticks as well."""


def is_key(table: object, key: str) -> bool:
    first, _, rest = key.partition(".")
    if not isinstance(table, dict) or first not in table:
        return False
    return not rest or is_key(cast("dict[str, object]", table)[first], rest)


def test_every_attack_names_a_test_that_tries_it() -> None:
    """Each line of each kind; a test that is renamed is named anew there."""
    lines = [line for line in DOCS["attacks.md"].splitlines() if line.startswith("| ")]
    tried = [line for line in lines if not line.startswith(("| forms", "| ---"))]
    named = [
        re.fullmatch(r"\|.+\|.+\| `(tests/[\w/]+\.py)::(test_\w+)` \|", line) for line in tried
    ]
    assert len(tried) > 40
    assert [
        line
        for line, found in zip(tried, named, strict=True)
        if found is None
        or not (place := ROOT / found[1]).exists()
        or f"def {found[2]}(" not in place.read_text(encoding="utf-8")
    ] == []
    kinds = DOCS["attacks.md"].split("\n## ")[1:]
    assert [kind.splitlines()[0] for kind in kinds if "::test_" not in kind] == []


def test_every_room_stands_in_the_map() -> None:
    """Whoever adds a folder to the way of a message says what happens there."""
    rooms = {
        place.name for place in (ROOT / "zeroclaw").iterdir() if (place / "__init__.py").exists()
    }
    assert {room for room in rooms if f"`{room}/`" not in DOCS["architecture.md"]} == set()
