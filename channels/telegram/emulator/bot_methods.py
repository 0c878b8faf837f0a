"""The methods about the bot itself, and the one that answers a press."""

import re

from channels.telegram.emulator import shapes
from channels.telegram.emulator.account import Account, Toast
from channels.telegram.emulator.chats import Instant
from channels.telegram.emulator.refusals import bad_request
from channels.telegram.emulator.wire import Parameters, is_object, text_of

LONGEST_TOAST = 200
ANSWERED_WITHIN_S = 30.0
"""Seconds that a press can be answered. The Bot API states no limit; apps give up about then."""
_COMMAND = re.compile(r"[a-z0-9_]{1,32}")
_MAX_COMMANDS = 100
_LONGEST_DESCRIPTION = 256
PROFILE = {"setmyname": "name", "setmydescription": "description",
           "setmyshortdescription": "short_description"}  # fmt: skip


def get_me(account: Account, _parameters: Parameters, _now: Instant) -> object:
    """Do `getMe`."""
    return {
        **shapes.user(account.bot),
        "can_join_groups": True,
        "can_read_all_group_messages": not account.privacy,
        "supports_inline_queries": False,
        "can_connect_to_business": False,
        "has_main_web_app": False,
        "has_topics_enabled": False,
    }


def set_my_commands(account: Account, parameters: Parameters, _now: Instant) -> object:
    """Do `setMyCommands`."""
    try:
        commands = parameters.json_array("commands") or []
    except ValueError as error:
        raise bad_request("can't parse commands JSON object") from error
    if len(commands) > _MAX_COMMANDS:
        raise bad_request("BOT_COMMANDS_TOO_MUCH")
    for item in commands:
        if not is_object(item) or not _COMMAND.fullmatch(text_of(item, "command").lstrip("/")):
            raise bad_request("BOT_COMMAND_INVALID")
        if not 1 <= len(text_of(item, "description")) <= _LONGEST_DESCRIPTION:
            raise bad_request("BOT_COMMAND_DESCRIPTION_INVALID")
    account.commands[_scope(parameters)] = commands
    return True


def get_my_commands(account: Account, parameters: Parameters, _now: Instant) -> object:
    """Do `getMyCommands`."""
    return account.commands.get(_scope(parameters), [])


def delete_my_commands(account: Account, parameters: Parameters, _now: Instant) -> object:
    """Do `deleteMyCommands`."""
    account.commands.pop(_scope(parameters), None)
    return True


def _scope(parameters: Parameters) -> str:
    """Return a menu's scope and language as one key, `default` for none."""
    try:
        scope = parameters.json_object("scope") or {}
    except ValueError as error:
        raise bad_request("can't parse BotCommandScope JSON object") from error
    parts = [text_of(scope, "type") or "default", str(scope.get("chat_id", ""))]
    return ":".join(part for part in [*parts, parameters.text("language_code")] if part)


def set_profile(method: str, account: Account, parameters: Parameters, _now: Instant) -> object:
    """Do `setMyName`, `setMyDescription` or `setMyShortDescription`."""
    name = PROFILE[method]
    account.profile[name] = parameters.text(name)
    return True


def answer_callback_query(account: Account, parameters: Parameters, now: Instant) -> object:
    """Do `answerCallbackQuery`: works once, until the app gives up."""
    press = account.presses.get(parameters.text("callback_query_id"))
    if len(parameters.text("text")) > LONGEST_TOAST:
        raise bad_request("MESSAGE_TOO_LONG")
    is_old = press is not None and now.at - press.at > ANSWERED_WITHIN_S
    if press is None or press.toast is not None or is_old:
        raise bad_request("query is too old and response timeout expired or query ID is invalid")
    press.toast = Toast(
        text=parameters.text("text"),
        alert=parameters.flag("show_alert"),
        url=parameters.text("url"),
    )
    return True


def get_file(account: Account, parameters: Parameters, _now: Instant) -> object:
    """Do `getFile`."""
    return account.files.get(parameters)
