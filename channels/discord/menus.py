"""Registers the bot's slash commands with Discord."""

from collections.abc import Mapping, Sequence

from channels._remote.fields import Json, inner, objects, text
from channels.discord.decode import ARGUMENTS, ASK, QUESTION
from channels.discord.rest import Rest
from zeroclaw import ChannelContext, Language, Menu, ZeroclawError

MAX_COMMANDS = 100
MAX_DESCRIPTION_CHARS = 100
"""Application Command Structure, read 2026-11."""
_TEXT = 3  # Application Command Option Type: STRING


async def offer(rest: Rest, application: str, context: ChannelContext) -> None:
    """Register the commands if they differ from the registered ones; a failure is only logged."""
    menu, log = context.menu, context.log
    if not menu.everyone or not application:
        return
    path, wanted = f"/applications/{application}/commands", listed(menu)
    try:
        found = objects({"found": await rest.read(f"{path}?with_localizations=true")}, "found")
        if sorted(map(_essence, found)) == sorted(map(_essence, wanted)):
            return
        await rest.call("PUT", path, wanted)
        log("menu_set", commands=len(wanted))
    except ZeroclawError as error:
        log("menu_not_set", why=str(error), level="warning")


def listed(menu: Menu) -> list[dict[str, object]]:
    """Return the commands in the API's form: `/ask` first, then the bot's own."""
    typed = _option(ARGUMENTS, menu.typed, is_required=False) if menu.typed else None
    commands = [_command(one.name, one.does, typed) for one in menu.everyone[: MAX_COMMANDS - 1]]
    if menu.ask:
        question = _option(QUESTION, menu.ask, is_required=True)
        commands.insert(0, _command(ASK, menu.ask, question))
    return commands


def _command(name: str, does: Mapping[Language, str], option: object) -> dict[str, object]:
    return {"name": name, **_described(does), "options": [option] if option else []}


def _option(name: str, does: Mapping[Language, str], *, is_required: bool) -> dict[str, object]:
    return {"type": _TEXT, "name": name, "required": is_required, **_described(does)}


def _described(does: Mapping[Language, str]) -> dict[str, object]:
    cut = {language: said[:MAX_DESCRIPTION_CHARS] for language, said in does.items()}
    return {"description": cut["en"], "description_localizations": {"de": cut["de"]}}


def _essence(command: Json) -> tuple[str, ...]:
    """Return the parts of a command to compare; Discord adds other fields."""
    options: Sequence[Json] = objects(command, "options")
    said = [text(inner(command, "description_localizations"), "de"), text(command, "description")]
    return (text(command, "name"), *said, *(text(one, "name") for one in options))
