"""Identity: from a verified sender to a principal.

`allowed_users` and pairing admit, `[[people]]` identifies, only policy authorises, and revocation
overrides all three. Every sender on a local channel (the login link, the daemon's own uid) is the
operator.

The configuration names people; the rows here store the decisions of operators since, and each
person's choice of language:

    (no row) ──▶ admitted ◀──▶ revoked
"""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Literal

from zeroclaw.channel import ChannelManifest
from zeroclaw.config.model import Config
from zeroclaw.envelope import Principal, Sender
from zeroclaw.json_fields import whole
from zeroclaw.store import Delete, Put, RowKind, Rows, Write
from zeroclaw.table import Column, Stays, Table, json_codec
from zeroclaw.text import catalogue
from zeroclaw.text.language import Language
from zeroclaw.value import Value

OPERATOR = "operator"
CONFIGURATION = catalogue.BY_CONFIGURATION.en
"""Stands in place of a name when the configuration no longer admits a person."""
_LOCAL = (f"role:{OPERATOR}", f"person:{OPERATOR}")


class Person(Value, stored_as="Known"):
    """An operator's decision about a person.

    Attributes:
        id: As `Principal.id`; also the row's key.
        display: The name people see.
        state: `admitted` always applies to one sender of one channel, `<channel>:<sender id>`;
            `revoked` may apply to a person of the configuration with all their ids.
        by: The name of the operator who decided.
        at: When.
        roles: Their roles in the policy, `operator` for the first one.
        ids: The ids that a person of the configuration had when they were revoked. These stay
            revoked under any later name.
    """

    id: str
    display: str
    state: Literal["admitted", "revoked"]
    by: str
    at: datetime
    roles: tuple[str, ...] = ()
    ids: tuple[str, ...] = ()


PEOPLE = Table(
    kind=RowKind.PERSON,
    codec=json_codec(Person),
    columns=frozenset({Column.STATE}),
    keeps=Stays(until="an operator takes back a decision about a person of the configuration"),
)


def person_put(person: Person) -> Put:
    """Return the write that records a decision."""
    return PEOPLE.put(person.id, person, state=person.state)


class LanguageChoice(Value, stored_as="Chosen"):
    """A person's choice of language.

    Attributes:
        person: As `Principal.id`; also the row's key.
        language: Their language from now on.
    """

    person: str
    language: Language


LANGUAGE_CHOICES = Table(
    kind=RowKind.LANGUAGE,
    codec=json_codec(LanguageChoice),
    columns=frozenset(),
    keeps=Stays(until="the person chooses another one"),
    person=lambda row: row.key,
)


class People:
    """The people of the configuration, and those admitted or revoked since.

    The caller that commits a row must report it to `learn_from_writes`.

    Attributes:
        local: The channels on which every sender is the operator, best one first.
        version: Grows with each change of the admitted people.
    """

    def __init__(self, config: Config, channels: Mapping[str, ChannelManifest]) -> None:
        """Index the people of a configuration, with the manifests of its channels."""
        self._channels = channels
        local = [name for name, manifest in channels.items() if manifest.local_operator]
        # The page stores messages while it is closed, so it comes before the terminal.
        self.local = tuple(sorted(local, key=lambda name: config.kind_of(name) != "web"))
        self._chosen: dict[str, Language] = {}
        self._stored: dict[str, Person] = {}
        self._revoked: Mapping[str, Person] = {}
        self.version = 0
        self.apply_config(config)

    def apply_config(self, config: Config) -> None:
        """Apply a configuration with the same channels; the stored people stay."""
        self.version += 1
        self.language: Language = config.language
        self._people = config.people
        self._configured_languages: dict[str, Language] = {
            f"person:{person.name}": person.language for person in self._people if person.language
        }
        self._named = {identity: person for person in self._people for identity in person.ids}
        self._allowed = {
            name: frozenset(settings.allowed_users) for name, settings in config.channels.items()
        }

    def spelled(self, channel: str, sender: str) -> str:
        """Return a sender's id, as a person typed it, in the platform's spelling.

        Empty if it can't be an id.
        """
        manifest = self._channels.get(channel)
        return sender if manifest is None else manifest.spelled(sender)

    async def load(self, rows: Rows) -> None:
        """Load the stored people and languages; once, before the first event."""
        self.learn(*[person async for person in PEOPLE.all(rows)])
        async for chosen in LANGUAGE_CHOICES.readable(rows):
            self._chosen[chosen.person] = chosen.language

    def learn(self, *stored: Person) -> None:
        """Apply stored decisions about people."""
        self._stored.update({person.id: person for person in stored})
        self._index()

    def _index(self) -> None:
        """Index the revocations by each id that a person has or had; the oldest of several.

        The index is replaced as a whole: a thread of the gate may be reading it.
        """
        self.version += 1
        revoked = [row for row in self._stored.values() if row.state == "revoked"]
        self._revoked = {id_: row for row in reversed(revoked) for id_ in (row.id, *row.ids)}

    def language_of(self, id: str) -> Language:  # noqa: A002  as `Principal.id`
        """Return a person's language: their choice, else the configured one, else the default."""
        return self._chosen.get(id, self._configured_languages.get(id, self.language))

    def learn_from_writes(self, writes: Iterable[Write]) -> bool:
        """Apply a commit's writes about people.

        Returns:
            Whether they changed the admitted people.
        """
        before = self.version
        for write in writes:
            match write:
                case Put(kind=RowKind.LANGUAGE):
                    self._chosen[write.key] = LANGUAGE_CHOICES.of(write).language
                case Delete(kind=RowKind.LANGUAGE):
                    self._chosen.pop(write.key, None)
                case Put(kind=RowKind.PERSON):
                    self.learn(PEOPLE.of(write))
                case Delete(kind=RowKind.PERSON):
                    self._stored.pop(write.key, None)
                    self._index()
                case _:
                    pass
        return self.version != before

    @property
    def stored(self) -> tuple[Person, ...]:
        """All stored people, by id."""
        return tuple(person for _, person in sorted(self._stored.items()))

    @property
    def revoked(self) -> frozenset[str]:
        """The ids of all revoked people."""
        return frozenset(self._revoked)

    def revoked_by(self, id: str) -> str:  # noqa: A002  as `Principal.id`
        """Return the name of the operator who revoked this person; empty if they are not revoked."""
        found = self._revoked.get(id)
        return "" if found is None else found.by

    def revoked_as(self, id: str) -> str:  # noqa: A002  as `Principal.id`
        """Return the id that a person was revoked under; empty if they are not revoked."""
        found = self._revoked.get(id)
        return "" if found is None else found.id

    def ids_of(self, id: str) -> tuple[str, ...]:  # noqa: A002  as `Principal.id`
        """Return the ids that the configuration gives to one of its people, else none."""
        return tuple(id_ for id_, person in self._named.items() if id == f"person:{person.name}")

    def excluded_by(self, principal: Principal) -> str:
        """Return the name of the operator who excluded a person who was once admitted; empty for none.

        The configuration excludes a person if it no longer admits the id that they wrote with. If
        it no longer has their channel, that decides nothing, and they are not excluded.
        """
        by = self.revoked_by(principal.id)
        is_known_of = principal.channel in self._allowed
        is_out = is_known_of and self.identified(principal.identity) is None
        return by or (CONFIGURATION if is_out else "")

    def id_excluded_by(self, id: str) -> str:  # noqa: A002  as `Principal.id`
        """Return the same for an id alone, as in grants; an id that no sender can have is excluded."""
        by = self.revoked_by(id)
        if by or id == f"person:{OPERATOR}":
            return by
        may = any(
            (channel := identity_parts(identity)[0]) not in self._allowed
            or channel in self.local
            or self._is_allowed(identity)
            or self._admitted(identity) is not None
            for identity in (self.ids_of(id) if id.startswith("person:") else (id,))
        )
        return "" if may else CONFIGURATION

    def identified(self, identity: str) -> Principal | None:
        """Return the principal of `<channel>:<sender id>`; None if they are not admitted now."""
        channel, sender = identity_parts(identity)
        return self.admit(channel, Sender(id=sender, verified=True))

    def by_now(self, principal: Principal) -> Principal:
        """Return a person's current principal: the configuration may have named them since."""
        sender = Sender(id=principal.sender, verified=True, display=principal.display)
        return self.admit(principal.channel, sender) or principal

    def is_revoked(self, identity: str) -> bool:
        """Whether this sender was revoked, by their own id or as a person with several."""
        return not self._revoked.keys().isdisjoint((identity, self._principal_id(identity)))

    def id_of(self, text: str) -> str:
        """Return the id of the person that an operator names; empty for none.

        Args:
            text: `ann` or `person:ann` for people of the configuration, `<channel>:<sender id>` for
                everyone; a sender whom the configuration names is that person, with all their ids.
        """
        name = text.removeprefix("person:")
        if any(person.name == name for person in self._people):
            return f"person:{name}"
        channel, _, sender = text.partition(":")
        if channel not in self._allowed or channel in self.local:
            return ""
        spelled = self.spelled(channel, sender)
        return self._principal_id(f"{channel}:{spelled}") if spelled else ""

    def is_configured(self, id: str) -> bool:  # noqa: A002  as `Principal.id`
        """Whether the configuration alone admits this person."""
        return any(map(self._is_allowed, self.ids_of(id) or (id,)))

    def admit(self, channel: str, sender: Sender) -> Principal | None:
        """Return the sender's principal, None for a stranger (P4).

        A sender whose id the platform does not verify is a stranger.
        """
        id_ = f"{channel}:{sender.id}"
        is_in = channel in self.local or (
            (self._admitted(id_) or self._is_allowed(id_)) and not self.is_revoked(id_)
        )
        return self.principal(channel, sender) if sender.verified and is_in else None

    def admits(self, channel: str, sender: str) -> bool:
        """Whether a sender whose id the platform has verified is admitted."""
        return self.admit(channel, Sender(id=sender, verified=True)) is not None

    def principal(self, channel: str, sender: Sender) -> Principal:
        """Return the principal of a sender, admitted or not."""
        local, identity = channel in self.local, f"{channel}:{sender.id}"
        person, stored = self._named.get(identity), self._admitted(identity)
        stored_roles = stored.roles if stored else ()
        if person is not None and not (local and self.is_revoked(identity)):
            id_, name = f"person:{person.name}", person.name
            roles = frozenset((*person.roles, *stored_roles, *((OPERATOR,) if local else ())))
        elif local:
            id_, name, roles = f"person:{OPERATOR}", OPERATOR, frozenset({OPERATOR})
        else:
            id_, name, roles = identity, sender.id, frozenset(stored_roles)
        return Principal(
            id=id_,
            roles=roles,
            channel=channel,
            sender=sender.id,
            # Actions are hashed as UTF-8, which has no unpaired surrogates.
            display=whole(sender.display) or name,
            language=self.language_of(id_),
        )

    def contacts(self, names: Iterable[str]) -> tuple[Principal, ...]:
        """Return the people that a policy names, under each id that they have; local channels last.

        Args:
            names: `role:operator`, `person:ann`, or a principal without a name, `telegram:7`.
        """
        wanted = frozenset(names)

        def is_named(id_: str, roles: Iterable[str]) -> bool:
            return not wanted.isdisjoint({id_, *(f"role:{role}" for role in roles)})

        people = (
            person for person in self._people if is_named(f"person:{person.name}", person.roles)
        )
        nameless = sorted(wanted - set(self._named))
        paired = (row for row in self.stored if row.state == "admitted" and is_named("", row.roles))
        identities = (
            *(id_ for person in people for id_ in person.ids),
            *(id_ for id_ in nameless if identity_parts(id_)[0] in self._allowed),
            *(row.id for row in paired),
        )
        reachable = (identity for identity in identities if not self.is_revoked(identity))
        channels = () if wanted.isdisjoint(_LOCAL) else self.local
        local = (f"{channel}:{OPERATOR}" for channel in channels)
        return tuple(
            self.principal(channel, Sender(id=sender, verified=True))
            for channel, sender in map(identity_parts, dict.fromkeys((*reachable, *local)))
        )

    def operators(self) -> tuple[Principal, ...]:
        """Return the operators under each of their ids: people first, then the local channels."""
        return self.contacts((f"role:{OPERATOR}",))

    def can_be_reached(self, channels: Iterable[str]) -> bool:
        """Whether an admitted operator can be reached on one of these channels, except local ones."""
        far = frozenset(channels) - frozenset(self.local)
        return any(
            operator.channel in far and self.identified(operator.identity) is not None
            for operator in self.operators()
        )

    def _is_allowed(self, identity: str) -> bool:
        channel, sender = identity_parts(identity)
        allowed = self._allowed.get(channel, frozenset())
        return sender in allowed or "*" in allowed

    def _admitted(self, identity: str) -> Person | None:
        found = self._stored.get(identity)
        return found if found is not None and found.state == "admitted" else None

    def _principal_id(self, identity: str) -> str:
        person = self._named.get(identity)
        return identity if person is None else f"person:{person.name}"


def identity_parts(identity: str) -> tuple[str, str]:
    """Return the channel and the sender id of `<channel>:<sender id>`."""
    channel, _, sender = identity.partition(":")
    return channel, sender
