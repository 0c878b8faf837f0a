"""What a URL in markup becomes: a link, a mention of a person, an emoji, a time, or nothing."""

import re
from urllib.parse import parse_qs, urlsplit

from channels.telegram.emulator.entities import Entity
from channels.telegram.emulator.wire import whole

_SCHEMES = ("http", "https", "ton", "tonsite", "tg")
_HOST = re.compile(r"[^\s/?#@]+\.[^\s/?#@.]{2,}|localhost|\d{1,3}(?:\.\d{1,3}){3}", re.IGNORECASE)


def link(url: str, offset: int, length: int) -> Entity | None:
    """Return the entity of `[text](url)`; None if the URL is invalid, so that only the text stays."""
    parts = urlsplit(url.strip()) if _can_be_split(url) else None
    if parts is None:
        return None
    if parts.scheme == "tg" and parts.netloc == "user":
        person = whole(parse_qs(parts.query).get("id", ["0"])[0])
        user = (("user", {"id": person, "is_bot": False, "first_name": str(person)}),)
        return Entity(type="text_mention", offset=offset, length=length, extra=user)
    normalized = _normalized(url.strip())
    if not normalized:
        return None
    return Entity(type="text_link", offset=offset, length=length, extra=(("url", normalized),))


def special(url: str, offset: int, length: int) -> Entity | None:
    """Return the entity of `![text](url)`, a custom emoji or a time; None for anything else."""
    parts = urlsplit(url.strip()) if _can_be_split(url) else None
    if parts is None or parts.scheme != "tg":
        return None
    query = parse_qs(parts.query)
    if parts.netloc == "emoji":
        emoji = (("custom_emoji_id", query.get("id", [""])[0]),)
        return Entity(type="custom_emoji", offset=offset, length=length, extra=emoji)
    if parts.netloc == "time":
        fields: tuple[tuple[str, object], ...] = (
            ("date_time_format", query.get("format", [""])[0]),
            ("unix_time", whole(query.get("unix", ["0"])[0])),
        )
        return Entity(type="date_time", offset=offset, length=length, extra=fields)
    return None


def _can_be_split(url: str) -> bool:
    try:
        urlsplit(url.strip())
    except ValueError:  # such as an unclosed bracket of an IPv6 address
        return False
    return True


def _normalized(url: str) -> str:
    """Return a URL in Telegram's form, with scheme and path; empty if it is invalid."""
    scheme, found, rest = url.partition("://")
    if not found:
        scheme, rest = "http", url
    if scheme.lower() not in _SCHEMES:
        return ""
    host = re.split(r"[/?#]", rest, maxsplit=1)[0]
    if scheme.lower() != "tg" and _HOST.fullmatch(host.rpartition(":")[0] or host) is None:
        return ""
    return f"{scheme.lower()}://{rest}" + ("" if len(host) < len(rest) else "/")
