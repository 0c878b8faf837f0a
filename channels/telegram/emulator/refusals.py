"""How the Bot API refuses: an error code and Telegram's own words.

The sentences are Telegram's, as bots read and compare them; sources are the public source of the Bot
API server and what it answered in public bug reports, read 2026-11.
"""

from collections.abc import Mapping


class Refused(Exception):
    """A call that is answered with `ok: false`.

    Attributes:
        code: `error_code`, which is also the HTTP status.
        description: What stands in the answer, with its prefix.
        parameters: `retry_after` or `migrate_to_chat_id`, where there is one.
    """

    def __init__(
        self, code: int, description: str, parameters: Mapping[str, int] | None = None
    ) -> None:
        """Hold the answer."""
        super().__init__(description)
        self.code = code
        self.description = description
        self.parameters: Mapping[str, int] = parameters or {}


def bad_request(why: str, **parameters: int) -> Refused:
    """Return a refusal for what can't be done as asked."""
    return Refused(400, f"Bad Request: {why}", parameters)


def unauthorized() -> Refused:
    """Return the refusal of a token that is not this bot's."""
    return Refused(401, "Unauthorized")


def forbidden(why: str) -> Refused:
    """Return a refusal by a person or a group."""
    return Refused(403, f"Forbidden: {why}")


def not_found() -> Refused:
    """Return the refusal of a method that does not exist."""
    return Refused(404, "Not Found")


def conflict(why: str) -> Refused:
    """Return a refusal because somebody else takes the updates."""
    return Refused(409, f"Conflict: {why}")


def too_many(retry_after_s: int) -> Refused:
    """Return a refusal for calling too often."""
    description = f"Too Many Requests: retry after {retry_after_s}"
    return Refused(429, description, {"retry_after": retry_after_s})


def can_not_parse(why: str) -> Refused:
    """Return the refusal of a text whose markup is wrong."""
    return bad_request(f"can't parse entities: {why}")
