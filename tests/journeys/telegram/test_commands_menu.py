"""Telegram shows the commands as a menu: everybody's, and the operators' in their own chats."""

from pathlib import Path
from typing import cast

import pytest

from channels.telegram.emulator import Refuse
from tests.journeys.telegram.bot import Bot, bot

pytestmark = pytest.mark.slow


def menu(world: Bot, scope: str) -> dict[str, str]:
    listed = world.telegram.account.commands.get(scope, [])
    found = cast("list[dict[str, str]]", listed)
    return {command["command"]: command["description"] for command in found}


async def test_the_menu_is_there_in_both_languages_and_set_once(tmp_path: Path) -> None:
    """Operators' commands stand in their chats alone; a restart changes nothing."""
    async with bot(tmp_path) as world:
        olgas = f"chat:{world.olga.id}"
        await world.until(lambda: menu(world, f"{olgas}:de"))
        everyones = menu(world, "all_private_chats")
        assert everyones["help"] == "this list"
        assert menu(world, "all_private_chats:de")["help"] == "diese Liste"
        assert "halt" not in everyones
        assert set(menu(world, olgas)) > set(everyones)
        assert menu(world, f"{olgas}:de")["halt"] == "alles anhalten, bis /resume"
        assert not any("`" in does for does in everyones.values())
        await world.restart()
        await world.until(lambda: len(world.telegram.called("getMyCommands")) == 8)
        assert len(world.telegram.called("setMyCommands")) == 4


async def test_a_menu_that_is_refused_stops_nothing(tmp_path: Path) -> None:
    async with bot(tmp_path, start=False) as world:
        refused = Refuse(code=400, description="Bad Request: chat not found")
        world.telegram.will("setMyCommands", refused, times=None)
        await world.daemon.start()
        world.model.say("hello Ann")
        world.ann.says("hi")
        await world.expect(world.ann.chat, "hello Ann")
        assert all(call.refusal for call in world.telegram.called("setMyCommands"))
