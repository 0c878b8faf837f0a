"""The daemon from its start to its end."""

import asyncio
import os
import signal
import socket
import ssl
import sys
from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import pytest

from tests.fakes.house import World
from tests.fakes.house_parts import places_in
from tests.fakes.installed import install
from tests.fakes.memory_store import MemoryStore
from tests.fakes.scripted_channel import Call, Hang
from tests.fakes.scripted_model import LOOK, asks_for, says
from zeroclaw import daemon
from zeroclaw.channel import Log
from zeroclaw.clock import Clock
from zeroclaw.codec import encode
from zeroclaw.config.model import Config, RuntimeSettings
from zeroclaw.config.validate import parse
from zeroclaw.daemon import life
from zeroclaw.daemon.config_check import check
from zeroclaw.daemon.foundation import Openers, ReadyFacts, Start
from zeroclaw.daemon.life import Hooks
from zeroclaw.envelope import ConversationId
from zeroclaw.errors import ConfigError, PortInUse, ProviderUnreachable, StoreUnusable, ungrouped
from zeroclaw.events import Event
from zeroclaw.gate import receipt_keys
from zeroclaw.host.control import connect
from zeroclaw.host.hangup import Hangup
from zeroclaw.host.processes import Reaped
from zeroclaw.inbound.live_config import KEY
from zeroclaw.store import Commit, DurablePoint, LogKind, Put, Query, RowKind, Store, Write
from zeroclaw.stores.sqlite import open_store
from zeroclaw.tool import Spawned
from zeroclaw.value import replace

POKE = asks_for(("poke", "{}"))


@pytest.fixture(autouse=True)
def own_switch_interval() -> Iterator[None]:
    """Restore the switch interval, which a daemon in this process shortens for all threads."""
    before = sys.getswitchinterval()
    yield
    sys.setswitchinterval(before)


# --- the start -----------------------------------------------------------------------------------


async def test_a_start_reports_what_is_running(world: World) -> None:
    """The model, the channels and a halt, once."""
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


async def test_a_halt_ended_by_an_earlier_release_stays_ended(world: World) -> None:
    """That release left an empty row."""
    await world.store.write(Put(kind=RowKind.SWITCH, key=KEY, body=b"", state="off"))
    async with world.running() as house:
        await house.say("one")
        assert house.texts() == ["ok"]
    assert [facts.halted for facts in world.ready] == [""]


@pytest.mark.parametrize(("kind", "key"), [(RowKind.SWITCH, KEY), (RowKind.PERSON, "chat:ben")])
async def test_a_damaged_halt_or_person_ends_the_start(
    world: World, kind: RowKind, key: str
) -> None:
    """It may be of a person who was revoked; the line says what to do (P4, P10)."""
    await world.store.write(Put(kind=kind, key=key, body=b"{", state="on"))
    remedy = "put a backup in place: `zeroclaw restore --force BACKUP`"
    with (
        pytest.raises(StoreUnusable, match=f"a person or a halt is damaged .*; {remedy}"),
        ungrouped(),
    ):
        async with world.running():
            pass


@pytest.mark.slow
async def test_more_open_conversations_than_a_page_are_all_resumed(world: World) -> None:
    """Every conversation with pending work is opened (P1)."""
    many = 1001
    waiting = tuple(
        Put(kind=RowKind.INBOX, key=f"i{n}", body=b"", conversation=conversation(n), state="queued")
        for n in range(many)
    )
    await world.halt("Ada")
    await world.store.write(*waiting)
    async with world.running() as house:
        assert all(house.services.mailboxes.is_failing(conversation(n)) for n in range(many))


def conversation(number: int) -> ConversationId:
    return ConversationId(f"c{number}")


# --- the end -------------------------------------------------------------------------------------


async def test_a_stop_with_nothing_to_do_is_immediate(world: World) -> None:
    """Ingress closes, and the audit is anchored."""
    world.model.will(LOOK)
    async with world.running() as house:
        await house.say("look")
        await house.stop()
        assert "stopped" in world.facts.events()
        assert "daemon" in await world.store.streams(LogKind.AUDIT)


async def test_a_hanging_platform_does_not_block_the_shutdown(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Posts that it has not accepted by then wait for the next start (P9)."""
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
    """As `/halt` does, in the caller's name."""
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


async def test_status_is_json(world: World) -> None:
    """For the command line; pairing requests are only counted (P4)."""
    async with world.running() as house:
        await house.say("hello", "mallory")
        report = await house.ask("status")
        assert report["dropped"] == {"chat": 1}
        assert report["model"] == "scripted"
        assert report["login_url"] == ""


async def test_status_counts_failures_of_the_model_and_the_platform(world: World) -> None:
    """The status shows an operator why people get no answer (P10)."""
    world.model.will((ProviderUnreachable("`h:9` can't be reached"),))
    async with world.running() as house:
        await house.say("hello")
        world.platforms["chat"].will("send", Hang())
        await house.say("/whoami", "ben")
        report = await house.ask("status")
        assert (report["failures"], report["unsent"]) == (1, 1)


async def test_a_failing_watcher_changes_nothing(world: World) -> None:
    """Its exceptions stop nothing (P9, S0-52)."""

    def break_down(_event: Event) -> None:
        raise RuntimeError("oops")

    async with world.running() as house:
        house.services.bus.subscribe(break_down)
        await house.say("hello")
        assert house.texts() == ["ok"]


# --- over real parts ------------------------------------------------------------------------------


def start_in(directory: Path, more: str = "[channels.web]\nenabled = false\n") -> Start:
    """A start with a terminal and a script, over real files."""
    script = directory / "script.toml"
    script.write_text('otherwise = "hello"\n')
    config: Config = parse(
        f'provider = {{kind = "scripted", script = "{script}"}}\n'
        f"tools = {{shell = {{enabled = false}}}}\n{more}"
        "[channels.terminal]\n"
    )
    return Start(
        config=config,
        checked=check(config, {}),
        places=places_in(directory),
        version="1",
        reread=lambda: start_in(directory, more),
    )


async def test_the_daemon_runs_over_real_parts_until_it_is_stopped(tmp_path: Path) -> None:
    """The control socket answers while it runs, and everything is closed after it."""
    start = await asyncio.to_thread(start_in, tmp_path)
    ready, stop = asyncio.Event(), asyncio.Event()
    hooks = Hooks(on_ready=lambda _facts: ready.set(), stop=stop)
    async with asyncio.TaskGroup() as group:
        group.create_task(daemon.serve(start, hooks, Openers()))
        await ready.wait()
        lines = await connect(start.places.data)
        await lines.send({"call": "status"})
        status = await lines.receive()
        await lines.aclose()
        stop.set()
    assert status is not None
    assert status["model"] == "scripted"


async def test_a_start_that_fails_adds_no_receipt_key(tmp_path: Path) -> None:
    """A service manager that restarts it for days would add one every few seconds."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        listener = f"[channels.web]\n[listener]\nport = {other.getsockname()[1]}\n"
        start = await asyncio.to_thread(start_in, tmp_path, listener)
        hooks = Hooks(on_ready=lambda _facts: None, stop=asyncio.Event())
        with pytest.raises(PortInUse):
            await daemon.serve(start, hooks, Openers())
    assert not (start.places.data / receipt_keys.FILE).exists()


@pytest.mark.parametrize(("tools", "variable"), [("", "/dev/null"), ("other = other:tools", None)])
async def test_a_package_of_another_author_finds_the_environment_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tools: str, variable: str | None
) -> None:
    """One that made a client, as it was opened while aiohttp was imported, trusted nobody (P10)."""
    (tmp_path / "other.py").write_text("def tools():\n    return ()\n")
    install(tmp_path, monkeypatch, f"[zeroclaw.tools]\n{tools}\n")
    (tmp_path / "002c0b4f.0").touch()
    paths = ssl.DefaultVerifyPaths("", "", "CERT_FILE", "", "CERT_DIRECTORY", str(tmp_path))
    monkeypatch.setattr(ssl, "get_default_verify_paths", lambda: paths)
    seen: list[str | None] = []
    monkeypatch.setattr(life, "load_library", lambda: seen.append(os.environ.get("CERT_FILE")))
    start = await asyncio.to_thread(start_in, tmp_path)
    [part] = start.checked.channels
    remote = replace(part, manifest=replace(part.manifest, local_operator=False))
    start = replace(start, checked=replace(start.checked, channels=(remote,)))
    stop = asyncio.Event()
    await daemon.serve(start, Hooks(on_ready=lambda _facts: stop.set(), stop=stop), Openers())
    assert seen == [variable]


@pytest.mark.parametrize(("ended", "left"), [("gone", 0), ("killed", 0), ("alive", 1)])
async def test_leftover_processes_of_an_earlier_run_are_cleared(
    world: World, monkeypatch: pytest.MonkeyPatch, ended: Reaped, left: int
) -> None:
    """Once they are killed, or found gone; the next start tries again to kill others (P3)."""

    def reap(_: Spawned) -> Reaped:
        return ended

    monkeypatch.setattr(life, "reap", reap)
    start = await asyncio.to_thread(start_in, world.path)
    store = await open_store(start.places.data, clock=world.clock, log=world.facts)
    missing = Spawned(pgid=2**22 + 1, start_ticks=1, boot="another")
    row = Put(kind=RowKind.PROCESS, key="a", body=encode(missing))
    await store.commit(Commit(point=DurablePoint.HOUSEKEEPING, writes=(row,)))
    await store.aclose()
    stop = asyncio.Event()
    stop.set()
    await daemon.serve(start, Hooks(on_ready=lambda _facts: None, stop=stop), Openers())
    store = await open_store(start.places.data, clock=world.clock, log=world.facts)
    assert len(await store.select(Query(kind=RowKind.PROCESS))) == left
    await store.aclose()


def test_sigterm_ends_it(tmp_path: Path) -> None:
    """With the interpreter's own signal handling, and without a traceback."""
    started: list[ReadyFacts] = []

    def ready(facts: ReadyFacts) -> None:
        started.append(facts)
        os.kill(os.getpid(), signal.SIGTERM)

    daemon.run(start_in(tmp_path), on_ready=ready)
    assert started[0].channels == ("terminal",)


@pytest.mark.parametrize("name", ["{directory}/manager@1", "@zeroclaw@{pid}"])
def test_the_service_manager_is_notified_when_the_daemon_is_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """So `systemctl start` waits for it, and fails if the configuration has a fault (P10)."""
    address = name.format(directory=tmp_path, pid=os.getpid())
    monkeypatch.setenv("NOTIFY_SOCKET", address)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(f"\0{address[1:]}" if name.startswith("@") else address)
        manager.setblocking(False)
        daemon.run(start_in(tmp_path), on_ready=lambda _facts: os.kill(os.getpid(), signal.SIGTERM))
        assert manager.recv(64) == b"READY=1"


def test_the_watchdog_is_notified_while_the_loop_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So systemd restarts a daemon that hangs (`WatchdogSec=`)."""
    datagrams: list[bytes] = []
    monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "manager"))
    monkeypatch.setenv("WATCHDOG_USEC", "20000")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "manager"))

        def listen() -> None:
            datagrams.extend(manager.recv(64) for _ in range(4))
            os.kill(os.getpid(), signal.SIGTERM)

        listener = Thread(target=listen)
        listener.start()
        daemon.run(start_in(tmp_path), on_ready=lambda _facts: None)
        listener.join()
    assert datagrams == [b"READY=1", *[b"WATCHDOG=1"] * 3]


def test_a_missing_service_manager_does_not_end_the_daemon(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "gone"))
    daemon.run(start_in(tmp_path), on_ready=lambda _facts: os.kill(os.getpid(), signal.SIGTERM))


def test_a_reload_requested_during_the_start_is_performed(tmp_path: Path) -> None:
    """A signal that arrives before the handler's first use counts too."""
    reread: list[str] = []

    def again() -> Start:
        reread.append("again")
        os.kill(os.getpid(), signal.SIGTERM)
        raise ConfigError(("nothing is right",))

    hangup = Hangup()
    hangup.keep()
    signal.raise_signal(signal.SIGHUP)
    start = replace(start_in(tmp_path), reread=again)
    daemon.run(start, on_ready=lambda _facts: None, hangup=hangup)
    assert reread == ["again"]


async def _open_read_only(directory: Path, *, clock: Clock, log: Log) -> Store:
    """The real store, which refuses the first write."""
    await asyncio.to_thread(directory.mkdir, parents=True, exist_ok=True)
    store = MemoryStore(clock=clock)

    def refuse(commit: Commit) -> None:
        raise StoreUnusable("read only")

    store.before = refuse
    return store


async def test_a_store_that_fails_ends_it_with_one_error(tmp_path: Path) -> None:
    """Not an exception group, since a person reads it (P10)."""
    start = await asyncio.to_thread(start_in, tmp_path)
    ready = asyncio.Event()
    hooks = Hooks(on_ready=lambda _facts: ready.set(), stop=asyncio.Event())
    requested = asyncio.Event()

    async def ask() -> None:
        await ready.wait()
        lines = await connect(start.places.data)
        await lines.send({"call": "halt"})
        await lines.receive()
        await lines.aclose()
        requested.set()

    failing = Openers(store=_open_read_only)
    async with asyncio.TaskGroup() as group:
        group.create_task(ask())
        with pytest.raises(StoreUnusable, match="read only"):
            await daemon.serve(start, hooks, failing)
        await requested.wait()


# --- the end while a request is open ---------------------------------------------------------


def is_over(world: World) -> bool:
    return "stopped" in world.facts.events()


async def test_a_stop_does_not_wait_for_an_open_request(world: World) -> None:
    """The grace time is for running turns; the card stays valid after the next start (P5)."""
    world.model.will(POKE)
    async with world.running() as house:
        await house.say("poke it", "ben")
        await house.stop()
        assert is_over(world)
    async with world.running() as house:
        await house.press()
        assert world.poke.runs == [{}]
        assert house.texts("ben")[-1] == "ok"


async def test_a_stop_waits_for_other_turns_beside_an_open_request(world: World) -> None:
    """Every other turn gets the grace time (P1)."""
    is_released = asyncio.Event()
    world.model.will(POKE, (is_released, *says("done")))
    async with world.running() as house:
        await house.say("poke it")
        await house.say("hello", "ben")
        await house.stop()
        assert not is_over(world)
        assert not house.services.ingress.open
        is_released.set()
        await house.settle()
        assert house.texts("ben") == ["done"]
        assert is_over(world)


async def test_a_stop_waits_for_a_turn_until_it_makes_a_request(world: World) -> None:
    """The card is posted before the end, not after the next start (P5)."""
    is_released = asyncio.Event()
    world.model.will((is_released, *POKE))
    async with world.running() as house:
        await house.say("poke it")
        await house.stop()
        assert not is_over(world)
        is_released.set()
        await house.settle()
        assert house.card().calls[0].tool == "poke"
        assert is_over(world)


async def test_a_request_is_stored_before_the_end(world: World) -> None:
    """Even if its commit is slow: a turn only stores its request (P5)."""
    may_be_put = asyncio.Event()

    async def commit_slowly(writes: tuple[Write, ...]) -> None:
        if any(isinstance(write, Put) and write.kind is RowKind.OUTBOX for write in writes):
            await may_be_put.wait()

    world.store.meanwhile = commit_slowly
    world.model.will(POKE)
    async with world.running() as house:
        await house.say("poke it")
        await house.stop()
        assert not is_over(world)
        may_be_put.set()
        await house.settle()
        assert house.card().calls[0].tool == "poke"
        assert is_over(world)


async def test_a_card_being_sent_arrives_before_the_end(world: World) -> None:
    """Otherwise it might be posted twice after the next start (P5)."""
    arrives = asyncio.Event()

    async def ask_slowly(call: Call) -> None:
        if call.name == "ask":
            await arrives.wait()

    world.model.will(POKE)
    async with world.running() as house:
        world.platforms["chat"].before = ask_slowly
        await house.say("poke it")
        await house.stop()
        assert not is_over(world)
        arrives.set()
        await house.settle()
        assert is_over(world)


async def test_a_stop_after_new_does_not_wait_for_the_old_request(world: World) -> None:
    """No further turn starts, so there is nothing to wait for (P2)."""
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
