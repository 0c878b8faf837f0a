"""The Bot API's refusals: an error code and Telegram's own wording.

The sentences are Telegram's, because bots compare them. They are from the public source of the Bot API
server and from its answers in public bug reports, read 2026-11.
"""

from collections.abc import Mapping


class Refused(Exception):
    """Raised to answer a call with `ok: false`.

    Attributes:
        code: `error_code`, which is also the HTTP status.
        description: The description with its prefix.
        parameters: `retry_after` or `migrate_to_chat_id`, if there is one.
    """

    def __init__(
        self, code: int, description: str, parameters: Mapping[str, int] | None = None
    ) -> None:
        """Take the parts of the answer."""
        super().__init__(description)
        self.code = code
        self.description = description
        self.parameters: Mapping[str, int] = parameters or {}


def bad_request(reason: str, **parameters: int) -> Refused:
    """Return the refusal of a call that can't be carried out."""
    return Refused(400, f"Bad Request: {reason}", parameters)


def unauthorized() -> Refused:
    """Return the refusal of a token that is not this bot's."""
    return Refused(401, "Unauthorized")


def forbidden(reason: str) -> Refused:
    """Return the refusal of a call that the bot is not allowed to make."""
    return Refused(403, f"Forbidden: {reason}")


def not_found() -> Refused:
    """Return the refusal of a method that does not exist."""
    return Refused(404, "Not Found")


def conflict(reason: str) -> Refused:
    """Return the refusal of a poll because updates are delivered elsewhere."""
    return Refused(409, f"Conflict: {reason}")


def too_many(retry_after_s: int) -> Refused:
    """Return the refusal of one call too many."""
    description = f"Too Many Requests: retry after {retry_after_s}"
    return Refused(429, description, {"retry_after": retry_after_s})


def can_not_parse(reason: str) -> Refused:
    """Return the refusal of a text with invalid markup."""
    return bad_request(f"can't parse entities: {reason}")
