"""What has changed in a configuration, and which of it a running daemon takes up.

`LIVE` and `RESTART` name every key there is. `*` stands for the name of a channel; the keys of a
channel's own kind are not named here, and wait for a restart. A list of tables, such as `people`,
is one key.
"""

from collections.abc import Iterator
from typing import TypeVar, cast

from pydantic import BaseModel

from zeroclaw.config.model import ChannelSettings, Config

Model = TypeVar("Model", bound=BaseModel)

LIVE = frozenset(
    {
        "approvals.approvers",
        "approvals.chat",
        "approvals.grant_s",
        "approvals.remind_share",
        "approvals.requester_may_answer",
        "approvals.timeout_s",
        "autonomy",
        "channels.*.allowed_users",
        "channels.*.collect_s",
        "channels.*.max_age_s",
        "channels.*.pairing",
        "channels.*.pairing_s",
        "channels.*.rate.conversation_burst",
        "channels.*.rate.conversation_per_minute",
        "channels.*.rate.daily_messages",
        "channels.*.rate.person_burst",
        "channels.*.rate.person_per_minute",
        "channels.*.stream",
        "channels.*.while_busy",
        "language",
        "limits.conversation_burst",
        "limits.conversation_per_minute",
        "limits.daily_messages",
        "limits.person_burst",
        "limits.person_per_minute",
        "people",
        "policy.ask_when_untrusted",
        "policy.statement",
        "retention.approvals_days",
        "retention.audit_days",
        "retention.blobs_days",
        "retention.max_disk_mb",
        "retention.messages_days",
        "runtime.backlog",
        "runtime.grace_s",
        "runtime.max_iterations",
        "runtime.max_session_tokens",
        "runtime.prompt",
        "runtime.result_chars",
    }
)
"""Policy, people and limits: rooms ask for these each time they need one."""

RESTART = frozenset(
    {
        # What is fetched is under way with the bounds that it began with.
        "attachments.max_bytes",
        "attachments.max_message_bytes",
        "attachments.max_per_message",
        "attachments.timeout_s",
        # A channel is made once; and whose conversation is whose would change in the middle of it.
        "channels.*.enabled",
        "channels.*.kind",
        "channels.*.scope",
        "data_dir",
        "listener.host",
        "listener.port",
        "provider.api_key",
        "provider.attempts",
        "provider.base_url",
        "provider.connect_s",
        "provider.context_tokens",
        "provider.kind",
        "provider.max_output_tokens",
        "provider.model",
        "provider.model_file",
        "provider.options",
        "provider.script",
        "provider.stall_s",
        "public.cert_file",
        "public.host",
        "public.key_file",
        "public.port",
        # Each process makes one key, and keeps or forgets the older ones as it begins.
        "receipts.keep_days",
        "runtime.call_timeout_s",
        "runtime.model_concurrency",
        "tools.attachments.enabled",
        "tools.attachments.memory_bytes",
        "tools.attachments.timeout_s",
        "tools.fetch.allow",
        "tools.fetch.enabled",
        "tools.fetch.max_bytes",
        "tools.fetch.max_redirects",
        "tools.fetch.ports",
        "tools.fetch.redirects",
        "tools.fetch.timeout_s",
        "tools.files.enabled",
        "tools.files.max_read_bytes",
        "tools.files.max_send_bytes",
        "tools.files.max_write_bytes",
        "tools.notes.enabled",
        "tools.notes.max_note_chars",
        "tools.notes.max_notes",
        "tools.results.enabled",
        "tools.shell.enabled",
        "tools.shell.memory_bytes",
        "tools.shell.network",
        "tools.shell.timeout_s",
        "tools.shell.without_sandbox",
        "tools.shell.workspace_bytes",
        "workspace_dir",
    }
)
"""What is opened once, as the daemon starts: places, sockets, the model, channels, tools."""


def is_live(key: str) -> bool:
    """Whether a running daemon takes up a change of this key, as `changed_keys` names it."""
    parts = key.split(".")
    if parts[0] == "channels" and len(parts) > 1:
        parts[1] = "*"
    return ".".join(parts) in LIVE


def changed_keys(before: Config, after: Config) -> tuple[str, ...]:
    """Return the keys that differ, in the order of the models.

    A channel that came or went is one key, such as `channels.mail`.
    """
    old, new = dict(_values(before)), dict(_values(after))
    moved = set(before.channels) ^ set(after.channels)
    keys = (*new, *(key for key in old if key not in new))
    differing = [key for key in keys if (key in old, old.get(key)) != (key in new, new.get(key))]
    return tuple(dict.fromkeys(_shortened(key, moved) for key in differing))


def merge_live(running: Config, fresh: Config) -> Config:
    """Return what runs, with the live keys of another configuration.

    A channel that only one of them has stays as it runs.
    """
    merged = _merged(running, fresh, "")
    channels = {
        name: _merged(settings, fresh.channels.get(name, settings), "channels.*.")
        for name, settings in running.channels.items()
    }
    return merged.model_copy(update={"channels": channels})


def _merged(running: Model, fresh: Model, path: str) -> Model:
    updates: dict[str, object] = {}
    for name in type(running).model_fields:
        mine = cast("object", getattr(running, name))
        theirs = cast("object", getattr(fresh, name))
        if isinstance(mine, BaseModel) and isinstance(theirs, BaseModel):
            updates[name] = _merged(mine, theirs, f"{path}{name}.")
        elif f"{path}{name}" in LIVE:
            updates[name] = theirs
    return running.model_copy(update=updates)


def _values(config: Config) -> Iterator[tuple[str, object]]:
    """Yield every key with its value; tables that are a key's value are not gone into."""
    yield from _of(config, "")
    for name, settings in config.channels.items():
        yield f"channels.{name}", None
        yield from _of(settings, f"channels.{name}.")


def _of(settings: BaseModel, path: str) -> Iterator[tuple[str, object]]:
    for name in type(settings).model_fields:
        value = cast("object", getattr(settings, name))
        if isinstance(value, BaseModel):
            yield from _of(value, f"{path}{name}.")
        elif f"{path}{name}" != "channels":
            yield f"{path}{name}", value
    if isinstance(settings, ChannelSettings):
        yield from ((f"{path}{name}", value) for name, value in settings.own().items())


def _shortened(key: str, moved: set[str]) -> str:
    parts = key.split(".")
    if parts[0] == "channels" and parts[1] in moved:
        return ".".join(parts[:2])
    return key
