"""Telegram shows the commands as a menu: everybody's, and the operators' in their own chats."""

from pathlib import Path
from typing import cast

import pytest

from channels.telegram.emulator import Refuse
from tests.journeys.telegram.bot import Bot, bot

pytestmark = pytest.mark.slow


def menu(here: Bot, scope: str) -> dict[str, str]:
    listed = here.telegram.account.commands.get(scope, [])
    found = cast("list[dict[str, str]]", listed)
    return {one["command"]: one["description"] for one in found}


async def test_the_menu_is_there_in_both_languages_and_set_once(tmp_path: Path) -> None:
    """What only operators may use stands in their chats alone; a restart changes nothing."""
    async with bot(tmp_path) as here:
        olgas = f"chat:{here.olga.id}"
        await here.until(lambda: menu(here, f"{olgas}:de"))
        everyones = menu(here, "all_private_chats")
        assert everyones["help"] == "this list"
        assert menu(here, "all_private_chats:de")["help"] == "diese Liste"
        assert "halt" not in everyones
        assert set(menu(here, olgas)) > set(everyones)
        assert menu(here, f"{olgas}:de")["halt"] == "alles anhalten, bis /resume"
        assert not any("`" in does for does in everyones.values())
        await here.restart()
        await here.until(lambda: len(here.telegram.called("getMyCommands")) == 8)
        assert len(here.telegram.called("setMyCommands")) == 4


async def test_a_menu_that_is_refused_stops_nothing(tmp_path: Path) -> None:
    async with bot(tmp_path, start=False) as here:
        refused = Refuse(code=400, description="Bad Request: chat not found")
        here.telegram.will("setMyCommands", refused, times=None)
        await here.daemon.start()
        here.model.say("hello Ann")
        here.ann.says("hi")
        await here.expect(here.ann.chat, "hello Ann")
        assert all(call.refusal for call in here.telegram.called("setMyCommands"))
