"""Registers the bot's slash commands with Discord."""

from collections.abc import Mapping

from channels._remote.fields import Json, inner, objects, text
from channels.discord.decode import ARGUMENTS, ASK, QUESTION
from channels.discord.rest import Rest
from zeroclaw import ChannelContext, Language, Menu, ZeroclawError

_TEXT = 3  # Application Command Option Type: STRING


async def offer(rest: Rest, application: str, context: ChannelContext) -> None:
    """Register the commands if they differ from the registered ones; failures are only logged."""
    menu, log = context.menu, context.log
    if not menu.everyone or not application:
        return
    path, commands = f"/applications/{application}/commands", api_commands(menu)
    try:
        registered = objects({"all": await rest.read(f"{path}?with_localizations=true")}, "all")
        if sorted(map(_essence, registered)) == sorted(map(_essence, commands)):
            return
        await rest.call("PUT", path, commands)
        log("menu_set", commands=len(commands))
    except ZeroclawError as error:
        log("menu_not_set", reason=str(error), level="warning")


def api_commands(menu: Menu) -> list[dict[str, object]]:
    """Return the commands in the API's form: `/ask` first, then the bot's own."""
    question = _option(QUESTION, menu.ask, is_required=True)
    typed = _option(ARGUMENTS, menu.typed, is_required=False)
    commands = [(ASK, menu.ask, question), *((c.name, c.does, typed) for c in menu.everyone)]
    return [
        {"name": name, **_described(does), "options": [option]} for name, does, option in commands
    ]


def _option(name: str, does: Mapping[Language, str], *, is_required: bool) -> dict[str, object]:
    return {"type": _TEXT, "name": name, "required": is_required, **_described(does)}


def _described(does: Mapping[Language, str]) -> dict[str, object]:
    return {"description": does["en"], "description_localizations": {"de": does["de"]}}


def _essence(command: Json) -> tuple[str, ...]:
    """Return the parts of a command to compare; Discord adds other fields."""
    german = text(inner(command, "description_localizations"), "de")
    fixed = (text(command, "name"), german, text(command, "description"))
    return (*fixed, *(text(option, "name") for option in objects(command, "options")))
