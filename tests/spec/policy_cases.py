"""Small policies and queries about them, made so that every rule matters often."""

from datetime import UTC, datetime
from random import Random

from zeroclaw.envelope import Principal
from zeroclaw.gate.conditions import Query
from zeroclaw.gate.policy import Statement

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)

IDS = ("person:ann", "person:bob", "web:7", "role:operator", "channel:mail")
ROLES = ("operator", "family")
CHANNELS = ("web", "mail")
NAMES = ("anyone", "anyone", "anyone", "role:operator", "role:family", "channel:mail", *IDS[:3])
ACTIONS = ("tool:read", "tool:write", "command:stop")
ACTION_PATTERNS = ("*", "*", "tool:*", "tool:read", "tool:*e", "command:*")
RESOURCES = ("file:/a", "file:/a/b", "file:/c", "host:x:443", "sandbox:workspace")
GRANTS = (*RESOURCES, "host:*", "file:/a/*", "file:/a/**", "file:/**")
RESOURCE_PATTERNS = (
    "*",
    "file:/a",
    "file:/a/*",
    "file:*",
    "host:*:443",
    "file:/*b*",
    "sandbox:w",
    "file:/a/b/*",
)

Case = tuple[list[Statement], Query]


def draw_case(random: Random, resources: tuple[str, ...] = GRANTS) -> Case:
    """Return a policy and a query; hypothesis shrinks it when it is handed its own `random`."""
    count = random.randrange(6)
    statements = [_statement(random, f"s{number}") for number in range(count)]
    return statements, _query(random, resources)


def _statement(random: Random, name: str) -> Statement:
    conditions = {"own": random.random() < 0.5, "channel_is_direct": random.random() < 0.5}
    return Statement(
        id=name,
        effect=random.choice(("allow", "allow", "ask", "deny")),
        principals=_some(random, NAMES, 1),
        actions=_some(random, ACTION_PATTERNS, 1),
        resources=_some(random, RESOURCE_PATTERNS, 0),
        when={name: conditions[name] for name in _some(random, ("own", "channel_is_direct"), 0)},
    )


def _query(random: Random, pool: tuple[str, ...]) -> Query:
    return Query(
        principal=Principal(
            id=random.choice(IDS),
            roles=frozenset(_some(random, ROLES, 0)),
            channel=random.choice(CHANNELS),
            sender="7",
        ),
        action=random.choice(ACTIONS),
        now=NOW,
        resources=random.choice((None, (), *[_some(random, pool, 1)] * 4)),
        direct=random.choice((True, False, None)),
        own=random.choice((True, False, None)),
    )


def _some(random: Random, pool: tuple[str, ...], least: int) -> tuple[str, ...]:
    return tuple(random.sample(pool, random.randint(least, 2)))
