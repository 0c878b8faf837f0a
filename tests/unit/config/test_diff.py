"""Which changed keys of a configuration a running daemon applies."""

from collections.abc import Iterator

import pytest
from pydantic import BaseModel

from zeroclaw.config.diff import LIVE, changed_keys, is_live, merge_live
from zeroclaw.config.model import ChannelSettings, Config
from zeroclaw.config.validate import parse

BEFORE = """
autonomy = "supervised"
[provider]
kind = "openai"
base_url = "http://127.0.0.1:1/v1"
model = "one"
[[people]]
name = "ann"
ids = ["chat:ann"]
[channels.chat]
allowed_users = ["ann", "ben"]
room = "blue"
[channels.mail]
"""
AFTER = """
autonomy = "full"
[provider]
kind = "openai"
base_url = "http://127.0.0.1:1/v1"
model = "two"
options = { seed = 1 }
[[people]]
name = "ann"
ids = ["chat:ann"]
roles = ["operator"]
[runtime]
backlog = 7
[channels.chat]
allowed_users = ["ann"]
room = "red"
colour = "warm"
scope = "person"
[channels.page]
kind = "telegram"
"""


LIVE_KEYS = frozenset(
    {
        "approvals.approvers",
        "approvals.chat",
        "approvals.grant_s",
        "approvals.remind_share",
        "approvals.requester_may_answer",
        "approvals.timeout_s",
        "autonomy",
        "budget.conversation_tokens",
        "budget.conversation_usd",
        "budget.day_tokens",
        "budget.day_usd",
        "budget.person_day_tokens",
        "budget.person_day_usd",
        "budget.prices",
        "budget.turn_tokens",
        "budget.turn_usd",
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
        "compaction.enabled",
        "compaction.model",
        "compaction.threshold",
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
        "runtime.eager_tools",
        "runtime.max_iterations",
        "runtime.max_repeats",
        "runtime.prompt",
        "runtime.result_chars",
        "runtime.titles",
        "runtime.tool_execution",
        "runtime.warn_repeats",
    }
)


def keys_of(model: type[BaseModel], path: str = "") -> Iterator[str]:
    """Every key of a model, including those of its tables."""
    for name, field in model.model_fields.items():
        inner = field.annotation
        if isinstance(inner, type) and issubclass(inner, BaseModel):
            yield from keys_of(inner, f"{path}{name}.")
        elif f"{path}{name}" == "channels":
            yield from keys_of(ChannelSettings, "channels.*.")
        else:
            yield f"{path}{name}"


def test_only_these_keys_are_applied_by_a_reload() -> None:
    """The models mark each key; a change of a mark needs a change here too."""
    assert LIVE == LIVE_KEYS
    assert {key for key in keys_of(Config) if is_live(key)} == LIVE_KEYS


def test_equal_configurations_do_not_differ() -> None:
    """The same text parsed twice is equal, and so is an explicit default."""
    assert changed_keys(parse(BEFORE), parse(BEFORE)) == ()
    assert changed_keys(parse(""), parse('autonomy = "supervised"')) == ()


def test_each_changed_key_is_named() -> None:
    """An added or removed channel is one key, and so is a list of people."""
    assert changed_keys(parse(BEFORE), parse(AFTER)) == (
        "autonomy",
        "provider.model",
        "provider.options",
        "runtime.backlog",
        "people",
        "channels.chat.allowed_users",
        "channels.chat.scope",
        "channels.chat.room",
        "channels.chat.colour",
        "channels.page",
        "channels.mail",
    )


@pytest.mark.parametrize(
    ("key", "live"),
    [
        ("autonomy", True),
        ("people", True),
        ("policy.statement", True),
        ("channels.chat.allowed_users", True),
        ("channels.chat.scope", False),
        ("channels.chat.room", False),
        ("channels.chat", False),
        ("provider.model", False),
        ("channels.autonomy", False),
        ("no_such_key", False),
    ],
)
def test_an_unmarked_key_waits_for_a_restart(key: str, live: bool) -> None:
    """So do the keys of a channel's own kind, whatever their names."""
    assert is_live(key) is live


def test_keys_that_wait_for_a_restart_keep_their_running_value() -> None:
    """All other keys are applied; the keys that still differ are those that wait."""
    running, fresh = parse(BEFORE), parse(AFTER)

    merged = merge_live(running, fresh)

    assert [key for key in changed_keys(merged, fresh) if is_live(key)] == []
    assert changed_keys(running, merged) == tuple(
        key for key in changed_keys(running, fresh) if is_live(key)
    )
    assert list(merged.channels) == ["web", "terminal", "chat", "mail"]
    assert merged.channels["chat"].own() == {"room": "blue"}
    assert (merged.provider, merged.people) == (running.provider, fresh.people)
