"""A grant covers what was granted, for as long as it was granted, and nothing else."""

from datetime import UTC, datetime, timedelta

import pytest

from zeroclaw.envelope import ActionId, ConversationId, Principal, TurnId
from zeroclaw.errors import StoreUnusable
from zeroclaw.gate.action import Action, propose
from zeroclaw.gate.approval import Numbered
from zeroclaw.gate.conditions import ToolFacts
from zeroclaw.gate.grant import (
    Grant,
    covers,
    decode,
    describe,
    encode,
    grant_for,
    is_called,
    name_in,
    to_delete,
    to_put,
)
from zeroclaw.store import Delete, RowKind
from zeroclaw.value import replace

UNTIL = datetime(2026, 11, 21, 13, 0, tzinfo=UTC)
NOW = UNTIL - timedelta(microseconds=1)
WRITES = ToolFacts(effects=frozenset({"write"}), risk="medium", declared=True)
RUNS = ToolFacts(effects=frozenset({"exec"}), risk="high", declared=True)


def action(
    *resources: str, tool: str = "write", text: str = "x", conversation: str = "c"
) -> Action:
    return propose(
        id=ActionId("01ACTION"),
        conversation=ConversationId(conversation),
        principal=Principal(id="web:1", roles=frozenset(), channel="web", sender="1"),
        turn=TurnId("01TURN"),
        tool=tool,
        arguments={"text": text},
        resources=resources,
    )


A, B = "file:/w/a", "file:/w/b"
NOWHERE = replace(action(A), resources=None)


def grant(of: Action, facts: ToolFacts = WRITES) -> Grant:
    found = grant_for(of, facts, id="01GRANT", granted_by="Ann", until=UNTIL)
    assert found is not None
    return found


CASES = {
    "the same": (action(A, B), action(A, B), True),
    "other arguments": (action(A), action(A, text="y"), True),
    "less": (action(A, B), action(A), True),
    "more": (action(A), action(A, B), False),
    "nothing that has a name": (action(A), action(), False),
    "something instead of nothing": (action(), action(A), False),
    "nothing twice": (action(), action(), True),
    "unknown resources": (action(A), NOWHERE, False),
    "another tool": (action(A), action(A, tool="edit"), False),
    "another conversation": (action(A), action(A, conversation="d"), False),
}


@pytest.mark.parametrize("name", CASES)
def test_a_grant_covers_its_conversation_tool_and_resources(name: str) -> None:
    """No other place, tool or thing. P5."""
    granted, asked, expected = CASES[name]
    assert covers(grant(granted), asked, WRITES, NOW) == expected


def test_a_grant_ends() -> None:
    """At its end it is over. P5."""
    assert not covers(grant(action(A)), action(A), WRITES, UNTIL)


def test_a_grant_to_execute_binds_the_arguments() -> None:
    """The sandbox is the same whatever runs in it, so the command must be the same. P5."""
    granted = grant(action(A), RUNS)
    assert covers(granted, action(A), RUNS, NOW)
    assert not covers(granted, action(A, text="y"), RUNS, NOW)


def test_a_tool_that_began_to_execute_is_not_covered_by_an_older_grant() -> None:
    """A declaration that grew asks again; one that shrank stays bound."""
    assert not covers(grant(action(A)), action(A), RUNS, NOW)
    assert not covers(grant(action(A), RUNS), action(A, text="y"), WRITES, NOW)


def test_unknown_resources_are_never_granted() -> None:
    """What can't be named can't be granted. P5."""
    assert grant_for(NOWHERE, WRITES, id="g", granted_by="Ann", until=UNTIL) is None


def test_a_grant_is_stored_until_it_ends_or_is_revoked() -> None:
    """Grants are listed and revoked. P5."""
    granted = grant(action(A), RUNS)
    put = to_put(granted)
    assert decode(put.body) == granted
    assert decode(encode(granted)) == granted
    assert (put.kind, put.key, put.due_at, put.expect) == (RowKind.GRANT, "01GRANT", UNTIL, 0)
    assert to_delete(granted) == Delete(kind=RowKind.GRANT, key="01GRANT")
    with pytest.raises(StoreUnusable):
        decode(b"[]")


def test_a_grant_says_what_it_is() -> None:
    """One line each in a list."""
    assert describe(grant(action(A, B)), "en") == (
        "`write` on `file:/w/a`, `file:/w/b`, until 2026-11-21 13:00 UTC, by Ann"
    )
    bound = grant(action(), RUNS).arguments_hash
    assert bound is not None
    assert describe(grant(action(), RUNS), "en") == (
        f"`write` on nothing that has a name, with the arguments `{bound[:8]}` only, "
        "until 2026-11-21 13:00 UTC, by Ann"
    )
    assert describe(grant(action(*(f"file:/{number}" for number in range(8)))), "en").startswith(
        "`write` on `file:/0`, `file:/1`, `file:/2`, `file:/3`, `file:/4`, 3 more, until"
    )
    assert describe(grant(action("file:/`a\n- b")), "en").startswith(
        "`write` on `file:/'a - b`, until"
    )


def test_a_grant_is_called_by_its_number_or_by_its_id() -> None:
    """By the number of its call in the chats that were asked; elsewhere by its short id."""
    chat = Numbered(place="chat/a", number=3)
    one = replace(grant(action(A)), id="01ABCDEFGHJKMNPQRSTVWXYZ12", numbers=(chat,))
    assert (name_in(one, "chat/a"), name_in(one, "chat/b")) == ("3", "TVWXYZ12")
    for word in ("3", "TVWXYZ12", "tvwxyz12", one.id):
        assert is_called(one, word, "chat/a")
    for word in ("3", "4", "WXYZ12", ""):
        assert not is_called(one, word, "chat/b")
