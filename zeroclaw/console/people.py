"""Shows pairing requests, who was admitted, and who was revoked, with the possible actions.

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
from zeroclaw.inbound.identity import Known
from zeroclaw.inbound.pairing import ALPHABET, CODE_CHARS, Stranger
from zeroclaw.value import Value

MOST_SHOWN = 200


class PeopleView(Value):
    """All known people.

    Attributes:
        waiting: Strangers with an open pairing request, oldest first.
        known: People about whom was decided while the daemon ran.
        configured: The entries of `[[people]]`.
        allowed: The sender ids that each channel admits; `*` for everybody.
        local: The channels whose only sender is the operator.
    """

    waiting: Sequence[Stranger]
    known: Sequence[Known]
    configured: Sequence[PersonSettings]
    allowed: Sequence[tuple[str, tuple[str, ...]]]
    local: Sequence[str]


def people(place: ConsolePaths, view: PeopleView) -> Html:
    """Return the section."""
    return joined(
        (_waiting(place, view.waiting), _decided(place, view.known), _configured(place, view))
    )


# --- pairing requests ----------------------------------------------------------------------------


def _waiting(place: ConsolePaths, waiting: Sequence[Stranger]) -> Html:
    if not waiting:
        nothing = empty(
            "No pairing requests.",
            'With `pairing = "code"` on a channel, a stranger who writes in private gets a code'
            " and is listed here. Let in the person who tells you the same code.",
        )
        return panel("Pairing requests", nothing, id_="strangers")
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
        place,
        "people",
        tag("label", "The code that somebody tells you", for_="code"),
        tag("span", code, button("Let in", look="yes"), class_="together"),
        label="let in by code",
        do="approve",
    )
    rows = (_stranger(place, one) for one in waiting[:MOST_SHOWN])
    return panel("Pairing requests", by_code, listing(*rows, id_="asking"), id_="strangers")


def _stranger(place: ConsolePaths, one: Stranger) -> Html:
    return line(
        (tag("bdi", one.label),),
        ("asked ", instant(one.asked_at), " · ", deadline(one.deadline_at)),
        form(
            place,
            "people",
            button("Let in", name="do", value="approve"),
            button("Deny", name="do", value="deny", look="no"),
            label=f"answer {one.label}",
            who=one.identity,
        ),
        id_=f"stranger-{one.code_hash[:16]}",
    )


# --- admitted and revoked people -----------------------------------------------------------------


def _decided(place: ConsolePaths, known: Sequence[Known]) -> Html:
    nothing = empty(
        "Nobody was let in or revoked, apart from the configuration.",
        "`zeroclaw pair` and `/pair` in a chat do the same as this page.",
    )
    rest = "more; `zeroclaw pair list` shows all."
    rows = cut(partial(_known, place), known, MOST_SHOWN, rest, id_="known")
    return panel("Let in and revoked", *(rows or (nothing,)), id_="decided")


def _known(place: ConsolePaths, one: Known) -> Html:
    is_in = one.state == "admitted"
    act = button("Revoke", name="do", value="revoke", look="no")
    if not is_in:
        act = button("Let in again", name="do", value="approve")
    return line(
        (
            pill("in" if is_in else "revoked", "good" if is_in else "bad"),
            " ",
            tag("code", one.id),
            " ",
            tag("bdi", f'"{one.display}"' if one.display else ""),
            *_roles(one.roles),
        ),
        ("by ", tag("bdi", one.by), " · ", instant(one.at)),
        form(place, "people", act, label=f"decide about {one.id}", who=one.id),
        id_=f"known-{one.id}",
    )


def _roles(roles: Iterable[str]) -> Iterator[Node]:
    for role in roles:
        yield from (" ", pill(role, "quiet"))


# --- configured people ---------------------------------------------------------------------------


def _configured(place: ConsolePaths, view: PeopleView) -> Html:
    out = {one.id for one in view.known if one.state == "revoked"}
    rows = [_person(place, one, out=f"person:{one.name}" in out) for one in view.configured]
    rows += [_channel(name, ids) for name, ids in view.allowed if name not in view.local]
    rows += [
        line(
            ("Whoever holds the login of ", tag("code", name)),
            ("the operator, from this machine",),
            id_=f"local-{name}",
            class_=None,
        )
        for name in view.local
    ]
    note = tag(
        "p", coded("From the configuration: `[[people]]` and `allowed_users`."), class_="note"
    )
    return panel("Configured", listing(*rows, id_="configured"), note, id_="configuration")


def _person(place: ConsolePaths, one: PersonSettings, *, out: bool) -> Html:
    act = form(
        place,
        "people",
        button("Revoke", name="do", value="revoke", look="no"),
        label=f"revoke {one.name}",
        who=f"person:{one.name}",
    )
    revoked = (" ", pill("revoked", "bad")) if out else ()
    return line(
        (one.name, *_roles(one.roles), *revoked),
        codes(one.ids),
        *([] if out else [act]),
        id_=f"person-{one.name}",
    )


def _channel(name: str, ids: tuple[str, ...]) -> Html:
    said = "everybody" if "*" in ids else "nobody by name" if not ids else ""
    return line(
        ("Let in on ", tag("code", name)),
        (said, *codes(ids[:MOST_SHOWN])),
        id_=f"channel-{name}",
        class_=None,
    )
