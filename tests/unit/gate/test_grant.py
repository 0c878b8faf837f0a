"""A grant covers what was granted, for as long as it was granted, and nothing else."""

from datetime import UTC, datetime, timedelta
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zeroclaw.envelope import ActionId, ConversationId, Principal, TurnId, off_the_record
from zeroclaw.errors import StoreUnusable
from zeroclaw.gate.action import Action, propose
from zeroclaw.gate.conditions import ToolFacts
from zeroclaw.gate.grant import (
    GRANTS,
    Grant,
    covers,
    describe,
    grant_for,
    is_called,
    name_of,
    to_put,
)
from zeroclaw.gate.scope import scope_of
from zeroclaw.store import Delete, RowKind
from zeroclaw.tool import Effect
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


ANN = Principal(
    id="person:ann", roles=frozenset(), channel="web", sender="2", display="Ann (operator)"
)


def grant(of: Action, facts: ToolFacts = WRITES) -> Grant:
    scope = scope_of(of, facts, 3600)
    assert scope is not None
    at = UNTIL - timedelta(hours=1)
    return grant_for(of, scope, id="01GRANT", number=3, granter=ANN, at=at)


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
    granted, requested, expected = CASES[name]
    assert covers(grant(granted), requested, WRITES, NOW) == expected


def test_a_clock_that_was_set_back_makes_no_grant_longer() -> None:
    """Before the instant at which it was granted, it covers nothing; then what is left of it."""
    began = UNTIL - timedelta(hours=1)
    held, early = grant(action(A)), began - timedelta(microseconds=1)
    assert covers(held, action(A), WRITES, began)
    assert not covers(held, action(A), WRITES, early)
    assert covers(replace(held, since=None), action(A), WRITES, early)  # of an earlier release


FILES = tuple(f"file:/w/{name}" for name in "abcdef")
NAMED = st.sampled_from(
    [FILES, FILES[:1], FILES[:2], FILES[:5], ("host:*",), ("file:/w/*", "file:/w/a"), ()]
)


@st.composite
def two_calls(draw: st.DrawFn) -> tuple[Action, Action]:
    """One that is granted, and one that is asked for, which mostly touches some of the same."""
    touched = draw(NAMED)
    touches = {*touched[: draw(st.integers(0, 6))], *draw(st.sampled_from([(), (), ("x:1",)]))}
    tool, text = draw(st.sampled_from(["write", "write", "edit"])), draw(st.sampled_from("xyy"))
    return action(*touched), action(*sorted(touches), tool=tool, text=text)


EFFECTS = st.frozensets(st.sampled_from(get_args(Effect)))


@given(calls=two_calls(), effects=EFFECTS)
def test_what_is_offered_for_a_time_is_the_narrowest_of_use(
    calls: tuple[Action, Action], effects: frozenset[Effect]
) -> None:
    """The same call again, and none that touches more; with other arguments where the places say enough."""
    (granted, requested), facts = calls, ToolFacts(effects=effects, risk="medium", declared=True)
    touched, touches = {*(granted.resources or ())}, {*(requested.resources or ())}
    held = grant(granted, facts)
    assert covers(held, granted, facts, NOW)
    says_enough = 0 < len(touched) <= 5 and not any("*" in resource for resource in touched)
    may_vary = says_enough and "exec" not in effects
    assert covers(held, requested, facts, NOW) == (
        requested.tool == granted.tool
        and touches <= touched
        and bool(touches) == bool(touched)
        and (may_vary or requested.arguments == granted.arguments)
    )


def test_a_grant_ends() -> None:
    """At its end it is over. P5."""
    assert not covers(grant(action(A)), action(A), WRITES, UNTIL)


def test_a_grant_of_what_touches_nothing_binds_the_arguments() -> None:
    """Nothing that it names says what else would run; a row of before, unbound, covers no more. P5."""
    granted = grant(action())
    assert covers(granted, action(), WRITES, NOW)
    assert not covers(granted, action(text="y"), WRITES, NOW)
    assert not covers(replace(granted, arguments_hash=None), action(), WRITES, NOW)


def test_a_grant_names_files_as_its_card_did() -> None:
    scope = scope_of(action(A), WRITES, 3600, "/w")
    assert scope is not None
    granted = grant_for(action(A), scope, id="01GRANT", number=3, granter=ANN, at=NOW)
    assert describe(granted, "en").startswith("`write`: any content into `a`, until ")
    assert GRANTS.codec.decode(GRANTS.codec.encode(granted)) == granted


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
    assert scope_of(NOWHERE, WRITES, 3600) is None


def test_a_grant_is_stored_until_it_ends_or_is_revoked() -> None:
    """Grants are listed and revoked. P5."""
    granted = grant(action(A), RUNS)
    put = to_put(granted)
    assert GRANTS.codec.decode(put.body) == granted
    assert GRANTS.codec.decode(GRANTS.codec.encode(granted)) == granted
    assert (put.kind, put.key, put.due_at) == (RowKind.GRANT, "01GRANT", UNTIL)
    assert (put.conversation, put.state) == (granted.conversation, "open")
    assert GRANTS.delete(granted.id) == Delete(kind=RowKind.GRANT, key="01GRANT")
    with pytest.raises(StoreUnusable):
        GRANTS.codec.decode(b"[]")


def test_a_grant_says_what_it_lets_run() -> None:
    """One line each in a list, in the words that its card had. P5."""
    until = 'until 2026-11-21 13:00 UTC, by ann ("Ann (operator)")'
    assert describe(grant(action(A, B)), "en") == (
        f"`write`: any content into `/w/a`, `/w/b`, {until}"
    )
    bound = grant(action(), RUNS).arguments_hash
    assert bound is not None
    assert describe(grant(action(), RUNS), "en") == (
        f"`write`: exactly this command (`{bound[:8]}`), {until}"
    )
    private = replace(grant(action(A)), conversation=off_the_record("c"))
    assert describe(private, "en") == "`write`"  # lists are on the record


def test_a_grant_of_an_earlier_release_still_says_what_it_covers() -> None:
    """Its row has no effects and no number; its end stays where it was."""
    body = (
        b'{"is":"Grant","id":"01ABCDEFGHJKMNPQRSTVWXYZ12","conversation":"c","tool":"write",'
        b'"resources":["file:/0","file:/1","file:/2","file:/3","file:/4","file:/5"],'
        b'"arguments_hash":null,"granted_by":"Ann","until":"2026-11-21T13:00:00+00:00",'
        b'"holder":"web:1","granter":"person:ann","numbers":[{"is":"Numbered","place":"chat/a",'
        b'"number":3,"language":"en"}]}'
    )
    old = GRANTS.codec.decode(body)
    assert describe(old, "en") == (
        "`write`: any call on `/0`, `/1`, `/2`, `/3`, `/4`, 1 more, until 2026-11-21 13:00 UTC, "
        "by Ann"
    )
    assert name_of(old) == "TVWXYZ12"


def test_a_grant_has_one_name_everywhere() -> None:
    """Its number; the short id and the whole id mean it as well."""
    grant_ = replace(grant(action(A)), id="01ABCDEFGHJKMNPQRSTVWXYZ12")
    assert name_of(grant_) == "3"
    for word in ("3", "TVWXYZ12", "tvwxyz12", grant_.id):
        assert is_called(grant_, word)
    for word in ("4", "WXYZ12", ""):
        assert not is_called(grant_, word)
