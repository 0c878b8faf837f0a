"""Who is this: admission's answer to a platform's claim.

`allowed_users` admits, `[[people]]` identifies, and only policy authorises. Whoever reaches a
local channel (the login link, the daemon's own uid) is the operator.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from zeroclaw.config import PersonSettings
from zeroclaw.envelope import Principal, Sender

OPERATOR = "operator"
_LOCAL = (f"role:{OPERATOR}", f"person:{OPERATOR}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Seat:
    """Where a person can be reached: a sender id on a channel.

    Attributes:
        person: Whose it is, as `Principal.id`.
    """

    person: str
    channel: str
    sender: str


class People:
    """The people of the configuration; immutable."""

    def __init__(
        self,
        people: tuple[PersonSettings, ...],
        *,
        allowed: Mapping[str, tuple[str, ...]],
        local: tuple[str, ...],
    ) -> None:
        """Index them.

        Args:
            people: As configured.
            allowed: The sender ids that each channel admits; `*` admits everybody.
            local: The channels whose every sender is the operator, best one first.
        """
        self._known = {identity: person for person in people for identity in person.ids}
        self._people = people
        self._allowed = {name: frozenset(ids) for name, ids in allowed.items()}
        self._local = local

    @property
    def local(self) -> tuple[str, ...]:
        """The channels whose every sender is the operator, best one first."""
        return self._local

    def admit(self, channel: str, sender: Sender) -> Principal | None:
        """Return who this is, None for a stranger (P4).

        A platform that doesn't vouch for the id makes everybody a stranger.
        """
        local = channel in self._local
        allowed = self._allowed.get(channel, frozenset())
        if not sender.verified or not (local or sender.id in allowed or "*" in allowed):
            return None
        person = self._known.get(f"{channel}:{sender.id}")
        if person is not None:
            roles = frozenset((*person.roles, *((OPERATOR,) if local else ())))
            return Principal(
                id=f"person:{person.name}",
                roles=roles,
                channel=channel,
                sender=sender.id,
                display=sender.display or person.name,
            )
        if local:
            return Principal(
                id=f"person:{OPERATOR}",
                roles=frozenset({OPERATOR}),
                channel=channel,
                sender=sender.id,
                display=sender.display or OPERATOR,
            )
        return Principal(
            id=f"{channel}:{sender.id}",
            roles=frozenset(),
            channel=channel,
            sender=sender.id,
            display=sender.display or sender.id,
        )

    def seats(self, names: Iterable[str]) -> tuple[Seat, ...]:
        """Return where those are reached that a policy names: people, then the local channels.

        Args:
            names: `role:operator`, `person:ann`, or a principal without a name, `telegram:7`.
        """
        wanted = frozenset(names)
        known = [
            Seat(person=f"person:{person.name}", channel=channel, sender=sender)
            for person in self._people
            if not wanted.isdisjoint(
                {f"person:{person.name}", *(f"role:{r}" for r in person.roles)}
            )
            for channel, _, sender in (identity.partition(":") for identity in person.ids)
        ]
        nameless = [
            Seat(person=f"{channel}:{sender}", channel=channel, sender=sender)
            for channel, _, sender in (
                name.partition(":") for name in sorted(wanted - set(self._known))
            )
            if channel in self._allowed
        ]
        here = [
            Seat(person=f"person:{OPERATOR}", channel=channel, sender=OPERATOR)
            for channel in self._local
            if not wanted.isdisjoint(_LOCAL)
        ]
        taken = {(seat.channel, seat.sender) for seat in known}
        free = (seat for seat in here if (seat.channel, seat.sender) not in taken)
        return (*known, *nameless, *free)

    def operators(self) -> tuple[Seat, ...]:
        """Return where operators can be reached: people first, then the local channels."""
        return self.seats((f"role:{OPERATOR}",))
