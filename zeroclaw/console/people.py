"""Shows pairing requests, admitted and revoked people, with the possible actions.

Pure. People choose their names on a platform; only the id next to the name counts.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial

from zeroclaw.config.model import PersonSettings
from zeroclaw.console.frame import ConsolePaths, button, form
from zeroclaw.console.markup import (
    Html,
    Node,
    coded,
    codes,
    cut,
    deadline,
    empty,
    field,
    instant,
    joined,
    line,
    listing,
    panel,
    pill,
    tag,
)
from zeroclaw.inbound.identity import Person
from zeroclaw.inbound.pairing import ALPHABET, CODE_CHARS, PairingRequest
from zeroclaw.value import Value

MAX_ROWS = 200


class PeopleView(Value):
    """All known people.

    Attributes:
        waiting: Strangers with an open pairing request, oldest first.
        known: People who were admitted or revoked while the daemon ran.
        configured: The entries of `[[people]]`.
        allowed: The sender ids that each channel admits; `*` admits every sender.
        local: The channels whose only sender is the operator.
    """

    waiting: Sequence[PairingRequest]
    known: Sequence[Person]
    configured: Sequence[PersonSettings]
    allowed: Sequence[tuple[str, tuple[str, ...]]]
    local: Sequence[str]


def people(paths: ConsolePaths, view: PeopleView) -> Html:
    """Return the section."""
    decided, configured = _decided(paths, view.known), _configured(paths, view)
    return joined((_waiting(paths, view.waiting), decided, configured))


# --- pairing requests ----------------------------------------------------------------------------


def _waiting(paths: ConsolePaths, strangers: Sequence[PairingRequest]) -> Html:
    if not strangers:
        none_waiting = empty(
            "No pairing requests.",
            'With `pairing = "code"` on a channel, a stranger who writes in private gets a code'
            " and is listed here. Let in the person who tells you the same code.",
        )
        return panel("Pairing requests", none_waiting, id_="strangers")
    code = field(
        "code",
        name="who",
        required=True,
        minlength=CODE_CHARS,
        maxlength=CODE_CHARS + 2,
        pattern=f" ?[{ALPHABET}{ALPHABET.lower()}]{{{CODE_CHARS}}} ?",
        autocapitalize="characters",
        spellcheck="false",
        placeholder="8 characters",
    )
    by_code = form(
        paths,
        "people",
        tag("label", "The code that somebody tells you", for_="code"),
        tag("span", code, button("Let in", look="yes"), class_="together"),
        label="let in by code",
        do="approve",
    )
    rows = (_stranger(paths, stranger) for stranger in strangers)
    return panel("Pairing requests", by_code, listing(*rows, id_="asking"), id_="strangers")


def _stranger(paths: ConsolePaths, stranger: PairingRequest) -> Html:
    return line(
        (tag("bdi", stranger.label),),
        ("asked ", instant(stranger.asked_at), " · ", deadline(stranger.deadline_at)),
        form(
            paths,
            "people",
            button("Let in", name="do", value="approve"),
            button("Deny", name="do", value="deny", look="no"),
            label=f"answer {stranger.label}",
            who=stranger.identity,
        ),
        id_=f"stranger-{stranger.code_hash[:16]}",
    )


# --- admitted and revoked people -----------------------------------------------------------------


def _decided(paths: ConsolePaths, people: Sequence[Person]) -> Html:
    rest = "more; `zeroclaw pair list` shows all."
    rows = cut(partial(_known, paths), people, MAX_ROWS, rest, id_="known")
    if not people:
        rows = empty(
            "Nobody was let in or revoked, apart from the configuration.",
            "`zeroclaw pair` and `/pair` in a chat do the same as this page.",
        )
    return panel("Let in and revoked", rows, id_="decided")


def _known(paths: ConsolePaths, person: Person) -> Html:
    is_admitted = person.state == "admitted"
    action = button("Revoke", name="do", value="revoke", look="no")
    if not is_admitted:
        action = button("Let in again", name="do", value="approve")
    return line(
        (
            pill("in" if is_admitted else "revoked", "good" if is_admitted else "bad"),
            " ",
            tag("code", person.id),
            " ",
            tag("bdi", f'"{person.display}"' if person.display else ""),
            *_roles(person.roles),
        ),
        ("by ", tag("bdi", person.by), " · ", instant(person.at)),
        form(paths, "people", action, label=f"decide about {person.id}", who=person.id),
        id_=f"known-{person.id}",
    )


def _roles(roles: Iterable[str]) -> Iterator[Node]:
    for role in roles:
        yield from (" ", pill(role, "quiet"))


# --- configured people ---------------------------------------------------------------------------


def _configured(paths: ConsolePaths, view: PeopleView) -> Html:
    revoked_ids = {known.id for known in view.known if known.state == "revoked"}
    rows = [_person(paths, person, revoked_ids) for person in view.configured]
    rows += [_channel(name, ids) for name, ids in view.allowed if name not in view.local]
    rows += [
        line(
            ("Whoever holds the login of ", tag("code", name)),
            ("the operator, from this machine",),
            id_=f"local-{name}",
        )
        for name in view.local
    ]
    source = coded("From the configuration: `[[people]]` and `allowed_users`.")
    note = tag("p", source, class_="note")
    return panel("Configured", listing(*rows, id_="configured"), note, id_="configuration")


def _person(paths: ConsolePaths, person: PersonSettings, revoked_ids: set[str]) -> Html:
    is_revoked = f"person:{person.name}" in revoked_ids
    action = form(
        paths,
        "people",
        button("Revoke", name="do", value="revoke", look="no"),
        label=f"revoke {person.name}",
        who=f"person:{person.name}",
    )
    revoked = (" ", pill("revoked", "bad")) if is_revoked else ()
    return line(
        (person.name, *_roles(person.roles), *revoked),
        codes(person.ids),
        *([] if is_revoked else [action]),
        id_=f"person-{person.name}",
    )


def _channel(name: str, ids: tuple[str, ...]) -> Html:
    names = "everybody" if "*" in ids else "nobody by name" if not ids else ""
    return line(
        ("Let in on ", tag("code", name)), (names, *codes(ids[:MAX_ROWS])), id_=f"channel-{name}"
    )
