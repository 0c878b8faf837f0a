"""Makes the menu of commands of a channel: those that the policy lets its people use (pure)."""

from collections.abc import Iterable
from datetime import datetime

from zeroclaw.envelope import Principal
from zeroclaw.gate.conditions import Query
from zeroclaw.gate.policy import PolicySet
from zeroclaw.inbound.commands.registry import COMMANDS
from zeroclaw.inbound.identity import OPERATOR, Seat
from zeroclaw.menu import Menu, MenuEntry
from zeroclaw.text.language import LANGUAGES


def menu_of(channel: str, policy: PolicySet, operators: Iterable[Seat], now: datetime) -> Menu:
    """Return the menu of a channel.

    Args:
        channel: Its name.
        policy: The one in force.
        operators: Where operators can be reached, on any channel.
        now: For statements that hold at some times only.
    """
    return Menu(
        everyone=_entries(channel, frozenset(), policy, now),
        operators=_entries(channel, frozenset({OPERATOR}), policy, now),
        operator_senders=tuple(
            dict.fromkeys(seat.sender for seat in operators if seat.channel == channel)
        ),
    )


def _entries(
    channel: str, roles: frozenset[str], policy: PolicySet, now: datetime
) -> tuple[MenuEntry, ...]:
    # Somebody whom no statement names, in a chat of their own; what is theirs they may always see.
    somebody = Principal(id=f"{channel}:", roles=roles, channel=channel, sender="")
    return tuple(
        MenuEntry(
            name=name,
            does={one: told.does.to(one).replace("`", "") for one in LANGUAGES},
        )
        for name, told in COMMANDS.items()
        if policy.decide(
            Query(principal=somebody, action=f"command:{name}", now=now, direct=True, own=True)
        ).effect
        == "allow"
    )
