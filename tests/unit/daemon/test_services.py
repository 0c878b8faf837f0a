"""The services of the daemon, and how they are wired."""

import asyncio
import itertools
import sys
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from tests.fakes.house import World
from tests.fakes.house_parts import CAPABILITIES
from tests.fakes.installed import install
from tests.fakes.scripted_channel import ScriptedChannel
from tests.fakes.scripted_model import ScriptedModel, says
from tests.unit.daemon.test_life import start_in
from zeroclaw.channel import Admit
from zeroclaw.clock import Clock
from zeroclaw.config.model import ToolsSettings
from zeroclaw.daemon.foundation import Openers, hidden_paths, open_foundation
from zeroclaw.daemon.services import MEASURE_AFTER_S
from zeroclaw.delivery.account import REFUSED_S
from zeroclaw.envelope import Accepted, Admission, Duplicate, Envelope, Position, Said
from zeroclaw.errors import (
    ChannelUnauthorized,
    ChannelUnavailable,
    ConfigError,
    PortInUse,
    ProviderUnusable,
    StoreUnusable,
)
from zeroclaw.host import sandbox
from zeroclaw.host.masks import hidden_in
from zeroclaw.host.places import places_of
from zeroclaw.inbound.context import Plan
from zeroclaw.inbound.live_config import Halt, halt_put
from zeroclaw.mount import HookAnswer, HookRequest, LineStream
from zeroclaw.store import Write
from zeroclaw.value import replace


class SlowModel(ScriptedModel):
    """A model that must be loaded first.

    Attributes:
        fault: The exception that loading it raises.
    """

    def __init__(self, fault: Exception | None = None) -> None:
        super().__init__()
        self.fault = fault
        self.loaded = 0

    async def start(self) -> None:
        await asyncio.sleep(0)
        if self.fault is not None:
            raise self.fault
        self.loaded += 1


async def test_a_halt_is_in_force_once_it_is_announced(world: World) -> None:
    """A call that is checked at the same instant does not start after it (P3)."""
    async with world.running() as house:
        halt = halt_put(Halt(by="Ada", at=world.clock.now()))
        house.services.announce(Plan(conversation=None, writes=(halt,)))
        assert house.services.policy.halted_by == "Ada"


async def test_a_slow_model_is_loaded_before_the_first_message(world: World) -> None:
    """Only the first message waits for it."""
    model = world.model = SlowModel()
    async with world.running():
        assert model.loaded == 1


async def test_a_model_that_cannot_be_loaded_is_reported_to_operators(world: World) -> None:
    """At the start, not at the first message; the daemon runs all the same (P10)."""
    world.model = SlowModel(ProviderUnusable("no model file; run `make run`"))
    async with world.running() as house:
        assert house.texts() == ["The model can't be used: no model file; run `make run`"]
        assert "model_failed" in world.facts.events()
        await house.say("hello")
        assert house.texts()[-1] == "ok"


class LateModel(ScriptedModel):
    """A model whose endpoint may start after the daemon."""

    measured = 0

    async def measure(self) -> None:
        self.measured += 1


async def test_an_endpoint_that_starts_later_is_asked_for_its_window_again(world: World) -> None:
    """It was asked once; then no conversation knew its window before the next start."""
    model = world.model = LateModel()
    async with world.running() as house:
        assert model.measured == 1
        await house.advance(MEASURE_AFTER_S[1])
        assert model.measured == 2


async def test_an_adapter_gets_its_own_positions(world: World) -> None:
    """Those committed with its own admissions, not another's (P1)."""
    world.add_channel("chat2")
    async with world.running() as house:
        envelope = house.envelope(Said(text="hello"))
        await house.services.ingress.admit(replace_position(envelope, "17"))
        await house.settle()
    async with world.running():
        chat, other = world.contexts["chat"], world.contexts["chat2"]
        assert (chat.positions, chat.account) == ({"inbox": "17"}, envelope.address.account)
        assert (other.positions, other.account) == ({}, "")


async def test_a_reopened_adapter_gets_the_current_positions(world: World) -> None:
    """With the positions of the start it would take old messages for new ones (P1)."""
    async with world.running() as house:
        positions = world.contexts["chat"].positions
        envelope = house.envelope(Said(text="hello"))
        await world.platforms["chat"].say(replace_position(envelope, "17"))
        assert positions == {"inbox": "17"}


async def test_a_repeated_event_waits_for_the_first_while_the_store_stalls(world: World) -> None:
    """As from a platform that times out on each delivery; the event is answered once (P1)."""
    is_slow = asyncio.Event()

    async def stall(_: tuple[Write, ...]) -> None:
        await is_slow.wait()

    async with world.running() as house:
        envelope = house.envelope(Said(text="hello"))
        admit = house.services.channels.recording_positions(house.services.ingress.admit)
        world.store.meanwhile = stall

        async def deliver() -> Admission:
            return await admit(envelope)

        async with asyncio.TaskGroup() as group:
            for _ in range(20):
                delivery = group.create_task(deliver())
                await house.settle()
                delivery.cancel()
            assert [task.get_name() for task in asyncio.all_tasks()].count("admission") == 1
            last = group.create_task(deliver())
            await house.settle()
            is_slow.set()
        assert last.result() == Accepted()
        assert await deliver() == Duplicate()
        await house.settle()
        assert house.texts() == ["ok"]


async def test_an_adapter_gets_its_own_secrets(world: World) -> None:
    """The `repr` of its context doesn't show them (P8)."""
    world.add_channel("chat2")
    async with world.running():
        contexts = (world.contexts["chat"], world.contexts["chat2"])
        assert [context.secrets["password"] for context in contexts] == ["of chat", "of chat2"]
        assert "of chat" not in repr(contexts)


def replace_position(envelope: Envelope, cursor: str) -> Envelope:
    return replace(envelope, position=Position(scope="inbox", cursor=cursor))


async def test_adapters_get_the_mount_of_the_listeners(world: World) -> None:
    """They may serve connections of the control socket; without a listener there is no page."""
    served: list[str] = []

    async def serve(_stream: LineStream) -> None:
        served.append("one")

    async def no_answer(_request: HookRequest) -> HookAnswer:
        return HookAnswer()

    async with world.running() as house:
        mount = world.contexts["chat"].mount
        mount.stream("chat", serve)
        assert house.streams() == ["chat"]
        with pytest.raises(PortInUse, match="there is no local listener"):
            mount.web("/chat", object())
        with pytest.raises(ConfigError, match="no channel asked for the public listener"):
            mount.public("/chat", no_answer)


async def test_a_channel_can_do_without_drafts(world: World) -> None:
    """With `stream = false` an answer is posted whole."""
    settings = world.config.channels["chat"].model_copy(update={"stream": False})
    world.configure(channels={"chat": settings})
    is_released = asyncio.Event()
    world.model.will((*says("half ")[:1], is_released, *says("whole")))
    async with world.running() as house:
        await house.say("hello")
        assert house.texts() == []
        is_released.set()
        await house.settle()
        assert house.texts() == ["half whole"]


async def test_a_turn_of_a_removed_channel_ends_all_the_same(world: World) -> None:
    """Its text waits for the channel, and nothing else does (P9)."""
    world.add_channel("chat2")
    people = world.config.channels["chat"]
    world.configure(channels={"chat": people, "chat2": people})
    world.model.will((asyncio.Event(),))
    async with world.running() as house:
        await house.say("hello", channel="chat2")
    channels = world.config.channels
    world.configure(channels={"chat": people})
    async with world.running() as house:
        assert await house.states() == ["answered"]
        await house.say("hello")
        assert house.texts() == ["ok"]
    world.configure(channels=channels)
    async with world.running() as house:
        await house.advance(60)
        assert house.texts(channel="chat2") == ["ok"]


class Dying(ScriptedChannel):
    """A channel whose connection is lost; nothing leaves by it any more."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(clock=clock, capabilities=CAPABILITIES, name="chat")
        self.lost = asyncio.Event()

    async def receive(self, admit: Admit, ready: Callable[[], None]) -> None:
        async with asyncio.TaskGroup() as group:
            talking = group.create_task(super().receive(admit, ready))
            await self.lost.wait()
            talking.cancel()
        raise ChannelUnavailable("the line was cut")


async def test_posts_that_waited_for_a_channel_leave_by_its_next_adapter(world: World) -> None:
    """The outbox stops using the adapter that lost its connection (P1)."""
    first = world.platforms["chat"] = Dying(world.clock)
    first.will("send", *[ChannelUnavailable("closed")] * 100)
    async with world.running() as house:
        await house.say("/whoami")
        second = world.add_platform("chat")
        first.lost.set()
        await house.advance(60)
        assert len(second.chat(house.place())) == 1
        await house.say("hello")
        assert house.texts()[-1] == "ok"


async def test_an_operator_is_notified_once_that_no_answer_gets_out(world: World) -> None:
    """If sending has a separate login, messages are still admitted, and their answers wait (P10).

    The login is retried ever more rarely, since some servers lock an account that fails often.
    """
    world.local = ("web",)
    world.add_channel("web")
    platform, refused = world.platforms["chat"], ChannelUnauthorized("the login was refused")
    platform.will("send", *[refused] * 4)
    async with world.running() as house:

        def notices() -> list[str]:
            return house.texts("operator", channel="web")

        await house.say("hello")
        await house.say("hello", "ben")
        await house.advance(120)
        assert notices() == []
        await house.advance(24 * 60)
        assert notices() == ["`chat` keeps failing: the login was refused. I go on trying."]
        assert (house.texts(), house.texts("ben")) == (["ok"], ["ok"])
        tries = [call.at for call in platform.calls if call.name == "send"][:5]
        waits = [later - earlier for earlier, later in itertools.pairwise(tries)]
        assert all(wait >= least for wait, least in zip(waits, REFUSED_S, strict=True))
        platform.will("send", *[refused] * 4)
        await house.say("hello")
        await house.advance(24 * 60)
        assert notices() == ["`chat` keeps failing: the login was refused. I go on trying."] * 2


async def test_an_operator_of_a_lost_channel_is_notified_elsewhere(world: World) -> None:
    """At the local terminal when no other channel is up."""
    world.local = ("web",)
    world.add_channel("web")
    world.platforms["chat"] = Broken(world.clock)
    async with world.running() as house:
        assert house.texts("operator", channel="web") == [
            "`chat` is down until you act: the token was refused"
        ]
        await house.say("/status", "operator", channel="web")
        assert (
            "`chat` down (the token was refused), `web` up"
            in house.texts("operator", channel="web")[-1]
        )


class Broken(Dying):
    """A channel whose token is refused."""

    async def receive(self, admit: Admit, ready: Callable[[], None]) -> None:
        raise ChannelUnauthorized("the token was refused")


# --- opening -------------------------------------------------------------------------------


async def test_tools_of_other_packages_are_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beside the built-in ones."""
    (tmp_path / "brought_tools.py").write_text(
        "from tests.fakes.plain_tool import LOOK, PlainTool\n"
        "def tools():\n    return (PlainTool(LOOK),)\n"
    )
    install(tmp_path, monkeypatch, "[zeroclaw.tools]\nbrought = brought_tools:tools\n")
    async with AsyncExitStack() as stack:
        parts = await open_foundation(await asyncio.to_thread(start_in, tmp_path), Openers(), stack)
        assert "look" in parts.tools
        assert "read_file" in parts.tools


@pytest.mark.parametrize("does", ["raise RuntimeError('x')", "return (len,)", "return len"])
async def test_a_tool_that_cannot_be_opened_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, does: str
) -> None:
    """One line, and no traceback of foreign code (P10)."""
    monkeypatch.delitem(sys.modules, "broken_tools", raising=False)
    (tmp_path / "broken_tools.py").write_text(f"def tools():\n    {does}\n")
    install(tmp_path, monkeypatch, "[zeroclaw.tools]\nbroken = broken_tools:tools\n")
    async with AsyncExitStack() as stack:
        with pytest.raises(ConfigError, match=r"tools\.broken: `broken` can't be opened"):
            await open_foundation(await asyncio.to_thread(start_in, tmp_path), Openers(), stack)


async def test_a_provider_that_cannot_be_opened_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error has the provider's own message if there is one (P10)."""
    start = await asyncio.to_thread(start_in, tmp_path)
    (tmp_path / "script.toml").write_text("this is no script")
    async with AsyncExitStack() as stack:
        with pytest.raises(ConfigError, match="script"):
            await open_foundation(start, Openers(), stack)


async def test_what_is_no_provider_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when its author forgot to return it (P10)."""
    (tmp_path / "empty_provider.py").write_text("def opens(settings, context):\n    pass\n")
    install(tmp_path, monkeypatch, "[zeroclaw.providers]\nempty = empty_provider:opens\n")
    start = await asyncio.to_thread(start_in, tmp_path)
    provider = start.config.provider.model_copy(update={"kind": "empty"})
    start = replace(start, config=start.config.model_copy(update={"provider": provider}))
    async with AsyncExitStack() as stack:
        with pytest.raises(ConfigError, match=r"provider\.kind: `empty` can't be opened"):
            await open_foundation(start, Openers(), stack)


async def test_an_impossible_data_directory_is_named_before_the_workspaces(tmp_path: Path) -> None:
    """The workspaces are beside it by default, so it is the one to fix (P10)."""
    start = await asyncio.to_thread(start_in, tmp_path)
    (tmp_path / "file").touch()
    data = tmp_path / "file" / "data"
    beside = replace(start.places, data=data, workspaces=data.with_name("data-workspaces"))
    async with AsyncExitStack() as stack:
        with pytest.raises(StoreUnusable, match=f"`{data}` is not a directory"):
            await open_foundation(replace(start, places=beside), Openers(), stack)


async def test_only_a_web_page_needs_a_listener(tmp_path: Path) -> None:
    """Nothing else does; each request for a login gets a new one."""
    start = await asyncio.to_thread(start_in, tmp_path, "listener = {port = 0}\n[channels.web]\n")
    async with AsyncExitStack() as stack:
        parts = await open_foundation(start, Openers(), stack)
        assert parts.listener is not None
    async with AsyncExitStack() as stack:
        parts = await open_foundation(await asyncio.to_thread(start_in, tmp_path), Openers(), stack)
        assert parts.listener is None
        assert parts.shell_note == ""


async def test_a_missing_shell_is_logged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A service's greeting is not shown, so its operator reads the journal."""
    monkeypatch.setattr(sandbox, "ENVIRONMENT", {"PATH": str(tmp_path)})
    start = await asyncio.to_thread(start_in, tmp_path)
    start = replace(start, config=start.config.model_copy(update={"tools": ToolsSettings()}))
    async with AsyncExitStack() as stack:
        parts = await open_foundation(start, Openers(), stack)
    assert "`bwrap` is missing" in parts.shell_note
    assert "shell_unavailable" in caplog.messages


async def test_a_channel_called_by_its_platform_needs_the_public_listener(tmp_path: Path) -> None:
    """Nothing else opens it: it is off by default."""
    called = (
        'public = {port = 0}\n[channels.web]\nenabled = false\n[channels.telegram]\ntoken = {file = "token"}\n'
        'receive = "webhook"\nwebhook_url = "https://bot.example.org/telegram"\n'
    )
    token = tmp_path / "token"
    token.write_text("42:token")
    token.chmod(0o600)
    text = called.replace('"token"', f'"{token}"')
    start = await asyncio.to_thread(start_in, tmp_path, text)
    async with AsyncExitStack() as stack:
        parts = await open_foundation(start, Openers(), stack)
        assert parts.public is not None
    start = await asyncio.to_thread(start_in, tmp_path, text.replace("webhook", "polling", 1))
    async with AsyncExitStack() as stack:
        assert (await open_foundation(start, Openers(), stack)).public is None


async def test_no_tool_can_reach_the_configuration_file(tmp_path: Path) -> None:
    """Nor the data directory and the skills; the workspaces they can (S3-23)."""
    start = await asyncio.to_thread(start_in, tmp_path)
    config = tmp_path / "config.toml"
    config.write_text("")
    skills = tmp_path / "skills"
    start = replace(start, places=replace(start.places, config=config, skills=skills))
    async with AsyncExitStack() as stack:
        parts = await open_foundation(start, Openers(), stack)
        assert parts.protected.closed == (str(start.places.data), str(config), str(skills))
        assert parts.protected.open == (str(start.places.workspaces),)


async def test_a_disabled_tool_is_not_offered(tmp_path: Path) -> None:
    """The list is empty when all are disabled."""
    start = await asyncio.to_thread(start_in, tmp_path)
    every = ToolsSettings.model_fields
    tools = ToolsSettings.model_validate({name: {"enabled": False} for name in every})
    start = replace(start, config=start.config.model_copy(update={"tools": tools}))
    async with AsyncExitStack() as stack:
        assert (await open_foundation(start, Openers(), stack)).tools == {}


def test_a_configuration_is_hidden_where_its_link_leads(tmp_path: Path) -> None:
    """A workspace may be a link to the operator's dotfiles, and so may the configuration."""
    link = tmp_path / "etc" / "config.toml"
    link.parent.mkdir()
    link.symlink_to(tmp_path / "dotfiles" / "zeroclaw.toml")
    hidden = hidden_paths(places_of(link, data_dir=str(tmp_path / "data")))
    assert hidden_in(tmp_path / "dotfiles", hidden) == (("zeroclaw.toml",),)
    assert hidden_in(tmp_path / "etc", hidden) == (("config.toml",),)
