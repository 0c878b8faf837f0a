"""The daemon from its start to its end."""

import asyncio
import os
import signal
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import pytest

from tests.fakes.house import World
from tests.fakes.house_parts import places_in
from tests.fakes.memory_store import MemoryStore
from tests.fakes.scripted_channel import Call, Hang
from tests.fakes.scripted_model import LOOK, asks_for, says
from zeroclaw import daemon
from zeroclaw.channel import Log
from zeroclaw.clock import Clock
from zeroclaw.codec import encode
from zeroclaw.config.model import Config, RuntimeSettings
from zeroclaw.config.validate import parse
from zeroclaw.daemon.config_check import check
from zeroclaw.daemon.foundation import Openers, ReadyFacts, Start
from zeroclaw.daemon.life import Hooks
from zeroclaw.envelope import ConversationId
from zeroclaw.errors import ConfigError, ProviderUnreachable, StoreUnusable
from zeroclaw.events import Event
from zeroclaw.host.control import connect
from zeroclaw.host.hangup import Hangup
from zeroclaw.inbound.live_config import KEY
from zeroclaw.store import Commit, DurablePoint, LogKind, Put, Query, RowKind, Store, Write
from zeroclaw.stores.sqlite import open_store
from zeroclaw.tool import Spawned
from zeroclaw.value import replace

POKE = asks_for(("poke", "{}"))


@pytest.fixture(autouse=True)
def own_switch_interval() -> Iterator[None]:
    """For the tests in whose own process a daemon runs: it shortens the interval of all threads."""
    before = sys.getswitchinterval()
    yield
    sys.setswitchinterval(before)


# --- the start -----------------------------------------------------------------------------------


async def test_a_start_tells_what_is_up(world: World) -> None:
    """Model, channels, a halt; once."""
    await world.halt("Ada")
    async with world.running():
        assert world.ready == [
            ReadyFacts(
                model="scripted",
                note="",
                web_url="",
                channels=("chat",),
                shell="",
                halted="Ada",
                is_root=os.geteuid() == 0,
            )
        ]


async def test_a_halt_that_an_earlier_release_ended_is_over(world: World) -> None:
    """It left an empty row."""
    await world.store.write(Put(kind=RowKind.SWITCH, key=KEY, body=b"", state="off"))
    async with world.running() as house:
        await house.say("one")
        assert house.texts() == ["ok"]
    assert [one.halted for one in world.ready] == [""]


@pytest.mark.slow
async def test_more_than_a_page_waits_and_all_of_it_is_found(world: World) -> None:
    """However many conversations have something to do, each is opened (P1)."""
    many = 1001
    waiting = tuple(
        Put(kind=RowKind.INBOX, key=f"i{n}", body=b"", conversation=conversation(n), state="queued")
        for n in range(many)
    )
    await world.halt("Ada")
    await world.store.write(*waiting)
    async with world.running() as house:
        assert len(house.services.mailboxes) == many


def conversation(number: int) -> ConversationId:
    return ConversationId(f"c{number}")


# --- the end -------------------------------------------------------------------------------------


async def test_a_stop_with_nothing_to_do_is_immediate(world: World) -> None:
    """Nothing is admitted any more, and the audit is anchored."""
    world.model.will(LOOK)
    async with world.running() as house:
        await house.say("look")
        await house.stop()
        assert "stopped" in world.facts.events()
        assert "daemon" in await world.store.streams(LogKind.AUDIT)


async def test_a_platform_that_hangs_does_not_hold_up_the_end(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it has not shown by then is left (P9)."""
    monkeypatch.setattr("zeroclaw.daemon.life.STOP_S", 0.0)
    world.configure(runtime=RuntimeSettings(grace_s=0.0))
    world.model.will((*says("half ")[:1], asyncio.Event()))

    async def hang(_call: Call) -> None:
        await asyncio.get_running_loop().create_future()

    async with world.running() as house:
        world.platforms["chat"].before = hang
        await house.say("hello")
        await house.stop()
        assert world.facts.events()[-2:] == ["drafts_unfinished", "stopped"]


# --- the control socket --------------------------------------------------------------------------


async def test_the_command_line_halts_and_resumes(world: World) -> None:
    """As `/halt` does, in the name of whoever asked."""
    world.model.will((asyncio.Event(),))
    async with world.running() as house:
        await house.say("one")
        assert await house.ask("halt", by="root") == {"halted": True, "before": False}
        assert house.texts() == ["_Stopped: everything was halted by root._"]
        await house.say("two")
        assert (await house.ask("status"))["halted"] == "root"
        assert await house.ask("resume") == {"halted": False, "before": True}
        assert house.texts()[-1] == "ok"
        await house.ask("halt")
        assert house.services.policy.halted_by == "the console"


async def test_status_is_told_as_json(world: World) -> None:
    """For the command line; strangers are a number (P4)."""
    async with world.running() as house:
        await house.say("hello", "mallory")
        report = await house.ask("status")
        assert report["dropped"] == {"chat": 1}
        assert report["model"] == "scripted"
        assert report["login_url"] == ""


async def test_status_counts_what_the_model_and_the_platform_did_not_take(world: World) -> None:
    """Who looks there first sees why people get no answer (P10)."""
    world.model.will((ProviderUnreachable("`h:9` can't be reached"),))
    async with world.running() as house:
        await house.say("hello")
        world.platforms["chat"].will("send", Hang())
        await house.say("/whoami", "ben")
        report = await house.ask("status")
        assert (report["failures"], report["unsent"]) == (1, 1)


async def test_a_watcher_that_breaks_changes_nothing(world: World) -> None:
    """What it raises stops nobody (P9, S0-52)."""

    def break_down(_event: Event) -> None:
        raise RuntimeError("oops")

    async with world.running() as house:
        house.services.bus.subscribe(break_down)
        await house.say("hello")
        assert house.texts() == ["ok"]


# --- the real thing ------------------------------------------------------------------------------


def start_in(directory: Path, more: str = "[channels.web]\nenabled = false\n") -> Start:
    """A start with a terminal and a script, over real files."""
    script = directory / "script.toml"
    script.write_text('otherwise = "hello"\n')
    config: Config = parse(
        f'provider = {{kind = "scripted", script = "{script}"}}\n'
        f"tools = {{shell = {{enabled = false}}}}\n{more}"
        "[channels.terminal]\n"
    )
    return Start(config=config, checked=check(config, {}), places=places_in(directory), version="1")


async def test_it_runs_over_real_parts_until_it_is_stopped(tmp_path: Path) -> None:
    """The control socket answers while it runs, and everything is closed after it."""
    start = await asyncio.to_thread(start_in, tmp_path)
    ready, stop = asyncio.Event(), asyncio.Event()
    hooks = Hooks(on_ready=lambda _facts: ready.set(), stop=stop)
    async with asyncio.TaskGroup() as group:
        group.create_task(daemon.serve(start, hooks, Openers()))
        await ready.wait()
        lines = await connect(start.places.data)
        await lines.send({"call": "status"})
        told = await lines.receive()
        await lines.aclose()
        stop.set()
    assert told is not None
    assert told["model"] == "scripted"


async def test_what_tools_of_an_earlier_life_left_running_is_forgotten(world: World) -> None:
    """After it was ended, or was found gone (P3)."""
    start = await asyncio.to_thread(start_in, world.path)
    store = await open_store(start.places.data, clock=world.clock, log=world.facts)
    gone = Spawned(pgid=2**22 + 1, start_ticks=1, boot="another")
    row = Put(kind=RowKind.PROCESS, key="a", body=encode(gone))
    await store.commit(Commit(point=DurablePoint.HOUSEKEEPING, writes=(row,)))
    await store.aclose()
    stop = asyncio.Event()
    stop.set()
    await daemon.serve(start, Hooks(on_ready=lambda _facts: None, stop=stop), Openers())
    store = await open_store(start.places.data, clock=world.clock, log=world.facts)
    assert await store.select(Query(kind=RowKind.PROCESS)) == ()
    await store.aclose()


def test_sigterm_ends_it(tmp_path: Path) -> None:
    """With the interpreter's own signal handling, and without a traceback."""
    told: list[ReadyFacts] = []

    def ready(facts: ReadyFacts) -> None:
        told.append(facts)
        os.kill(os.getpid(), signal.SIGTERM)

    daemon.run(start_in(tmp_path), on_ready=ready)
    assert told[0].channels == ("terminal",)


@pytest.mark.parametrize("name", ["{directory}/manager@1", "@zeroclaw@{pid}"])
def test_a_service_manager_is_told_once_it_is_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """So `systemctl start` waits for that, and fails if the configuration has a fault (P10)."""
    address = name.format(directory=tmp_path, pid=os.getpid())
    monkeypatch.setenv("NOTIFY_SOCKET", address)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(f"\0{address[1:]}" if name.startswith("@") else address)
        manager.setblocking(False)
        daemon.run(start_in(tmp_path), on_ready=lambda _facts: os.kill(os.getpid(), signal.SIGTERM))
        assert manager.recv(64) == b"READY=1"


def test_a_service_manager_is_told_as_long_as_the_loop_turns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So it ends and restarts a daemon that hangs (`WatchdogSec=`)."""
    heard: list[bytes] = []
    monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "manager"))
    monkeypatch.setenv("WATCHDOG_USEC", "20000")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "manager"))

        def listen() -> None:
            heard.extend(manager.recv(64) for _ in range(4))
            os.kill(os.getpid(), signal.SIGTERM)

        listener = Thread(target=listen)
        listener.start()
        daemon.run(start_in(tmp_path), on_ready=lambda _facts: None)
        listener.join()
    assert heard == [b"READY=1", *[b"WATCHDOG=1"] * 3]


def test_a_service_manager_that_is_gone_does_not_end_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "gone"))
    daemon.run(start_in(tmp_path), on_ready=lambda _facts: os.kill(os.getpid(), signal.SIGTERM))


def test_a_reload_that_was_wished_while_it_started_is_made_good(tmp_path: Path) -> None:
    """A signal that came before anybody listened is a wish like any other."""
    reread: list[str] = []

    def again() -> Start:
        reread.append("again")
        os.kill(os.getpid(), signal.SIGTERM)
        raise ConfigError(("nothing is right",))

    hangup = Hangup(has_terminal=lambda: False, ignored=False)
    hangup.keep()
    signal.raise_signal(signal.SIGHUP)
    start = replace(start_in(tmp_path), reread=again)
    daemon.run(start, on_ready=lambda _facts: None, hangup=hangup)
    assert reread == ["again"]


async def _open_read_only(directory: Path, *, clock: Clock, log: Log) -> Store:
    """The real store, until something is to be written."""
    await asyncio.to_thread(directory.mkdir, parents=True, exist_ok=True)
    store = MemoryStore(clock=clock)

    def refuse(commit: Commit) -> None:
        raise StoreUnusable("read only")

    store.before = refuse
    return store


async def test_a_store_that_fails_ends_it_with_one_error(tmp_path: Path) -> None:
    """Not with a group of them: it is what a person reads (P10)."""
    start = await asyncio.to_thread(start_in, tmp_path)
    ready = asyncio.Event()
    hooks = Hooks(on_ready=lambda _facts: ready.set(), stop=asyncio.Event())
    asked = asyncio.Event()

    async def ask() -> None:
        await ready.wait()
        lines = await connect(start.places.data)
        await lines.send({"call": "halt"})
        await lines.receive()
        await lines.aclose()
        asked.set()

    failing = Openers(store=_open_read_only)
    async with asyncio.TaskGroup() as group:
        group.create_task(ask())
        with pytest.raises(StoreUnusable, match="read only"):
            await daemon.serve(start, hooks, failing)
        await asked.wait()


# --- the end while a person is waited for ---------------------------------------------------------


def is_over(world: World) -> bool:
    return "stopped" in world.facts.events()


async def test_a_stop_does_not_wait_for_a_person(world: World) -> None:
    """The grace time is for what is at work; the card is good after the next start (P5)."""
    world.model.will(POKE)
    async with world.running() as house:
        await house.say("poke it", "ben")
        await house.stop()
        assert is_over(world)
    async with world.running() as house:
        await house.press()
        assert world.poke.runs == [{}]
        assert house.texts("ben")[-1] == "ok"


async def test_a_stop_waits_for_what_is_at_work_beside_a_question(world: World) -> None:
    """Every other turn gets its time (P1)."""
    held = asyncio.Event()
    world.model.will(POKE, (held, *says("done")))
    async with world.running() as house:
        await house.say("poke it")
        await house.say("hello", "ben")
        await house.stop()
        assert not is_over(world)
        assert not house.services.ingress.open
        held.set()
        await house.settle()
        assert house.texts("ben") == ["done"]
        assert is_over(world)


async def test_a_turn_that_comes_to_a_question_is_waited_for_until_then(world: World) -> None:
    """The card is put before the end, not after the next start (P5)."""
    held = asyncio.Event()
    world.model.will((held, *POKE))
    async with world.running() as house:
        await house.say("poke it")
        await house.stop()
        assert not is_over(world)
        held.set()
        await house.settle()
        assert house.card().calls[0].tool == "poke"
        assert is_over(world)


async def test_a_question_that_is_not_put_yet_is_put_before_the_end(world: World) -> None:
    """However long that takes others: a turn only stores its question (P5)."""
    may_be_put = asyncio.Event()

    async def slowly(writes: tuple[Write, ...]) -> None:
        if any(isinstance(write, Put) and write.kind is RowKind.OUTBOX for write in writes):
            await may_be_put.wait()

    world.store.meanwhile = slowly
    world.model.will(POKE)
    async with world.running() as house:
        await house.say("poke it")
        await house.stop()
        assert not is_over(world)
        may_be_put.set()
        await house.settle()
        assert house.card().calls[0].tool == "poke"
        assert is_over(world)


async def test_a_card_that_is_on_its_way_arrives_before_the_end(world: World) -> None:
    """Else it might stand there twice after the next start (P5)."""
    arrives = asyncio.Event()

    async def slowly(call: Call) -> None:
        if call.name == "ask":
            await arrives.wait()

    world.model.will(POKE)
    async with world.running() as house:
        world.platforms["chat"].before = slowly
        await house.say("poke it")
        await house.stop()
        assert not is_over(world)
        arrives.set()
        await house.settle()
        assert is_over(world)


async def test_what_new_began_does_not_wait_for_the_question_of_the_old(world: World) -> None:
    """No turn starts any more, so there is nothing to wait for (P2)."""
    world.model.will(POKE)
    async with world.running() as house:
        await house.say("poke it", "ben", room="lobby")
        await house.say("/new", "cleo", room="lobby")
        await house.say("hello", "cleo", room="lobby")
        await house.stop()
        assert is_over(world)
    async with world.running() as house:
        await house.press()
        assert house.texts(room="lobby")[-2:] == ["ok", "ok"]
