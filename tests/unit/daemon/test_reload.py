"""Reload of the configuration while the daemon runs."""

import asyncio
import errno
import os
from pathlib import Path

import pytest

from tests.fakes.house import House, World
from tests.fakes.house_parts import CHAT, CONFIG, PEOPLE, checked_of, part_of
from tests.fakes.scripted_model import LOOK, POKE, says
from zeroclaw.channel import Channel, ChannelContext
from zeroclaw.config.model import (
    ApprovalSettings,
    ChannelSettings,
    PolicySettings,
    ProviderSettings,
    RuntimeSettings,
)
from zeroclaw.daemon.config_check import ANSWERS, SUMMARISES, ChannelPart, CheckedConfig
from zeroclaw.daemon.foundation import Start
from zeroclaw.daemon.reload import NO_FILE, Reloaded, Reloader, replaced_secrets
from zeroclaw.errors import ConfigError, Refused
from zeroclaw.inbound.identity import Person, person_put
from zeroclaw.inbound.live_config import LiveConfig
from zeroclaw.store import RowKind
from zeroclaw.tools.loading.skill import Skill
from zeroclaw.value import replace

NO_POKING: dict[str, object] = {
    "id": "calm",
    "effect": "deny",
    "principals": ["anyone"],
    "actions": ["tool:poke"],
}


def without(person: str) -> dict[str, ChannelSettings]:
    """The channel's settings without this person."""
    stay = tuple(user for user in CHAT.allowed_users if user != person)
    return {"chat": CHAT.model_copy(update={"allowed_users": stay})}


async def reload(house: House) -> tuple[object, object]:
    """Reload the configuration; return what is in force now, and what waits for a restart."""
    answer = await house.ask("reload")
    return answer.get("live"), answer.get("waiting")


# --- the policy ----------------------------------------------------------------------------------


async def test_a_waiting_call_still_needs_its_answer_after_a_reload(world: World) -> None:
    """The open request stays; later calls run without one."""
    world.model.will(POKE, POKE, says("poked"))
    async with world.running() as house:
        await house.say("poke it", "ben")
        world.configure(autonomy="full")
        assert await reload(house) == (["autonomy"], [])
        assert world.poke.runs == []
        await house.press()
        assert world.poke.runs == [{"a": 1}, {"a": 1}]


async def test_a_halt_survives_a_reload(world: World) -> None:
    """So does a revocation."""
    async with world.running() as house:
        await house.say("/halt")
        await house.ask("pair", words="revoke ben")
        world.configure(autonomy="full")
        await reload(house)
        assert {"halt.active", "revoked.people", "full.declared"} <= {
            statement.id for statement in house.services.policy().statements
        }
        assert await house.say("hello", "ben") == await house.say("hello", "mallory")


# --- people --------------------------------------------------------------------------------------


async def test_a_removed_persons_turns_are_stopped(world: World) -> None:
    """As if an operator had revoked them: the answer, the messages behind it, the open request."""
    world.model.will(POKE)
    async with world.running() as house:
        await house.say("poke it", "ben")
        await house.say("and again", "ben")
        world.configure(channels=without("ben"))
        await reload(house)
        assert house.endings() == [("stopped", "the configuration")]
        assert await house.states("queued", "taken") == []
        assert len(house.texts("ben")) == 3  # two say that it waits, and one that it ended
        assert await house.rows(RowKind.TURN, "open") == ()
        await house.press()
        assert world.poke.runs == []


async def test_a_removed_persons_grants_end(world: World) -> None:
    """Other people keep their grants."""
    world.model.will(POKE, says("done"), POKE, says("done"))
    async with world.running() as house:
        await house.say("poke it", "ben")
        await house.press("for_a_time")
        await house.say("poke it", "cleo")
        await house.press("for_a_time")
        world.configure(channels=without("ben"))
        await reload(house)
        (grant,) = await house.rows(RowKind.GRANT)
        assert b"chat:cleo" in grant.body


async def test_a_kill_before_the_stop_leaves_nothing_running_after_the_start(world: World) -> None:
    """The next process reads the same file, and ends the same."""
    world.model.will((*says("Once upon")[:1], asyncio.Event()))
    async with world.running() as house:
        await house.say("a story", "ben")
    world.configure(channels=without("ben"))
    async with world.running() as house:
        assert await house.states() == ["stopped", "answered"]
        assert await house.rows(RowKind.TURN, "open") == ()
        assert len(world.model.requests) == 1


async def test_a_removed_role_no_longer_counts(world: World) -> None:
    """Even in a running turn: the last check reads the person's current roles."""
    only_ada: dict[str, object] = {**NO_POKING, "principals": ["person:ada"]}
    world.configure(autonomy="full", people=PEOPLE[1:])
    release = asyncio.Event()
    world.look.hold = release
    world.model.will(LOOK, POKE, says("no"))
    async with world.running() as house:
        await house.say("look, then poke", "ada")
        world.configure(people=PEOPLE, policy=PolicySettings(statement=(only_ada,)))
        assert await reload(house) == (["people", "policy.statement"], [])
        release.set()
        await house.settle()
        assert world.poke.runs == []


async def test_pairing_decisions_survive_a_reload(world: World) -> None:
    """People admitted by an operator stay admitted; a reload is about the configuration."""
    dora = Person(id="chat:dora", display="", state="admitted", by="Ada", at=world.clock.now())
    await world.store.write(person_put(dora))
    async with world.running() as house:
        world.configure(channels=without("ben"))
        await reload(house)
        await house.say("hello", "dora")
        assert house.texts("dora") == ["ok"]


# --- limits --------------------------------------------------------------------------------------


async def test_new_limits_apply_to_later_turns(world: World) -> None:
    """The timeout of requests, the queue limit, and what is shown during a turn."""
    world.model.will(POKE)
    async with world.running() as house:
        world.configure(
            approvals=ApprovalSettings(timeout_s=60.0),
            runtime=RuntimeSettings(backlog=1, prompt="You are a parrot."),
            channels={"chat": CHAT.model_copy(update={"stream": False})},
        )
        live, waiting = await reload(house)
        assert (live, waiting) == (
            ["runtime.backlog", "runtime.prompt", "approvals.timeout_s", "channels.chat.stream"],
            [],
        )
        await house.say("poke it", "ben")
        await house.say("one", "ben")
        await house.say("two", "ben")
        assert await house.states() == ["taken", "queued", "failed"]
        assert "You are a parrot." in str(world.model.requests[0].messages[0].content)
        await house.advance(61)
        assert house.endings() == [("expired", "")]


# --- settings that need a restart -----------------------------------------------------------------


async def test_settings_that_need_a_restart_are_named_and_stay(world: World) -> None:
    """Each time, until the restart; the other settings are applied all the same."""
    async with world.running() as house:
        world.configure(
            autonomy="readonly",
            provider=ProviderSettings(attempts=2),
            channels={"chat": CHAT, "more": ChannelSettings(kind="chat")},
        )
        world.add_platform("more")
        assert await reload(house) == (["autonomy"], ["provider.attempts", "channels.more"])
        assert await reload(house) == ([], ["provider.attempts", "channels.more"])
        assert (await house.ask("status"))["restart_for"] == ["provider.attempts", "channels.more"]
        assert house.parts.settings.config.provider == ProviderSettings()
        assert list(house.parts.settings.config.channels) == ["chat"]
        world.configure(provider=ProviderSettings(), channels={"chat": CHAT})
        assert await reload(house) == ([], [])
        assert (await house.ask("status"))["restart_for"] == []


def test_a_changed_secret_waits_for_a_restart_too() -> None:
    """The reference is the same, its value was replaced. A new channel is named anyway."""
    before, after = checked_with("old", "chat"), checked_with("new", "chat", "more")
    assert replaced_secrets(before, before) == ()
    assert replaced_secrets(before, after) == (
        "provider.api_key",
        "compaction.provider.api_key",
        "channels.chat.password",
    )


async def test_a_reload_names_the_secrets_that_wait(world: World) -> None:
    """Once each, even if the key changed as well as its value."""
    async with world.running() as house:
        start = house.parts.start
        keys = ("provider.api_key", "provider.attempts")

        def with_secrets(value: str, attempts: int) -> Start:
            secrets = dict.fromkeys(keys, value)
            provider = ProviderSettings(attempts=attempts)
            return replace(
                start,
                config=world.config.model_copy(update={"provider": provider}),
                checked=replace(start.checked, secrets=secrets),
                places=replace(start.places, config=Path("/config.toml")),
            )

        old = replace(with_secrets("old", 3), reread=lambda: with_secrets("new", 2))
        parts = replace(house.parts, start=old)
        reloaded = await Reloader(parts, house.services.revocation).reload()
        assert reloaded.waiting == ("provider.attempts", "provider.api_key")


def checked_with(secret: str, *channels: str) -> CheckedConfig:
    """A configuration whose every secret is this one."""

    def part(name: str) -> ChannelPart:
        return part_of(name, local=False, make=no_adapter)

    config = CONFIG.model_copy(update={"channels": dict.fromkeys(channels, CHAT)})
    keys = (
        f"{ANSWERS}.api_key",
        f"{SUMMARISES}.api_key",
        *(f"channels.{channel}.password" for channel in channels),
    )
    return replace(checked_of(config, part), secrets=dict.fromkeys(keys, secret))


def no_adapter(_context: ChannelContext) -> Channel:
    raise AssertionError


# --- no change ------------------------------------------------------------------------------------


async def test_a_fault_changes_nothing(world: World) -> None:
    """All or nothing: valid settings in the same file are not applied (P10)."""
    async with world.running() as house:
        world.configure(
            autonomy="full", policy=PolicySettings(statement=({**NO_POKING, "effect": "maybe"},))
        )
        answer = await house.ask("reload")
        assert [name for name, value in answer.items() if value] == ["faults"]
        assert house.parts.settings.config.autonomy == "supervised"
        assert "reload_refused" in world.facts.events()


async def test_an_os_error_changes_nothing_either(world: World) -> None:
    """A path of the file counts from a directory that was removed, say (P10)."""

    def refused() -> Start:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))

    async with world.running() as house:
        parts = replace(house.parts, start=replace(house.parts.start, reread=refused))
        with pytest.raises(ConfigError, match="can't be read again: no such file or directory"):
            await Reloader(parts, house.services.revocation).reload()
        assert "reload_refused" in world.facts.events()


async def test_without_a_file_a_reload_says_so(world: World) -> None:
    """The answer says what to do (P10); a removed file does not mean the defaults."""
    async with world.running() as house:
        start = house.parts.start
        world.configure(autonomy="full")
        gone = replace(start.reread(), places=replace(start.places, config=None))
        parts = replace(house.parts, start=replace(start, reread=lambda: gone))
        with pytest.raises(Refused, match=NO_FILE):
            await Reloader(parts, house.services.revocation).reload()
        assert house.parts.settings.config.autonomy == "supervised"
        house.services.reloader.foundation = parts
        house.hooks.reload.set()
        await house.settle()
        await house.say("one")
        assert house.texts()[-1] == "ok"


async def test_a_signal_reloads_too(world: World) -> None:
    """The log has the outcome, a fault too; the daemon goes on."""
    async with world.running() as house:
        world.configure(policy=PolicySettings(statement=({"id": "x"},)))
        house.hooks.reload.set()
        await house.settle()
        world.configure(
            policy=PolicySettings(), autonomy="full", provider=ProviderSettings(attempts=2)
        )
        house.hooks.reload.set()
        await house.settle()
        logged = [(event, fields) for event, fields in world.facts.seen if "reload" in event]
        assert [event for event, _ in logged] == ["reload_refused", "reloaded"]
        assert logged[-1][1] == {"now": "autonomy", "needs_a_restart": "provider.attempts"}


async def test_a_detected_provider_is_no_change(world: World) -> None:
    """The file still says `kind = "auto"`, whatever the start detected."""
    detected = ProviderSettings(kind="openai", base_url="http://127.0.0.1:1/v1", model="m")
    async with world.running() as house:
        read = house.parts.start.reread
        undetected = world.config.model_copy(update={"provider": ProviderSettings(kind="auto")})
        start = replace(
            house.parts.start,
            config=world.config.model_copy(update={"provider": detected}),
            written=undetected,
            reread=lambda: replace(
                read(), config=undetected.model_copy(update={"autonomy": "full"})
            ),
        )
        rooms, settings = house.services, LiveConfig(start.config, ())
        parts = replace(house.parts, start=start, settings=settings)
        reloading = Reloader(parts, rooms.revocation)
        assert await reloading.reload() == Reloaded(
            file=f"{world.path}/config.toml", live=("autonomy",)
        )
        assert await reloading.reload() == Reloaded(file=f"{world.path}/config.toml")
        assert (settings.config.provider, settings.config.autonomy) == (detected, "full")


async def test_skills_are_reloaded_from_the_same_folder(world: World) -> None:
    """Another folder waits for a restart, since the old one is closed to tools."""
    skill = Skill(name="tides", description="When to sail.", text="", folder=Path("/s/tides"))
    async with world.running() as house:
        read = house.parts.start.reread
        start, settings = house.parts.start, house.parts.settings
        fresh = replace(read(), checked=replace(start.checked, skills=(skill,)))
        moved = replace(fresh, places=replace(start.places, skills=Path("/other")))
        rooms = house.services
        for now, skills in ((moved, ()), (fresh, (skill,))):
            again = replace(house.parts, start=replace(start, reread=lambda now=now: now))
            reloader = Reloader(again, rooms.revocation)
            await reloader.reload()
            assert settings.skills == skills
            assert tuple(rooms.offers.skills()) == skills
