"""Shows who wants in, who is in, and who was revoked, with what can be done about it.

Pure. A name on a platform is chosen by whoever bears it; the id beside it is what decides.
"""

from collections.abc import Sequence

from zeroclaw.config.model import PersonSettings
from zeroclaw.console.frame import Place, button, form
from zeroclaw.console.markup import (
    Html,
    coded,
    deadline,
    empty,
    instant,
    joined,
    listing,
    panel,
    pill,
    tag,
)
from zeroclaw.inbound.identity import Known
from zeroclaw.inbound.pairing import ALPHABET, CODE_CHARS, Stranger
from zeroclaw.value import Value

MOST_SHOWN = 200


class Faces(Value):
    """All who are known.

    Attributes:
        waiting: Strangers whose question is open, oldest first.
        known: What was decided about people while the daemon ran.
        configured: `[[people]]`.
        allowed: The sender ids that each channel admits; `*` for everybody.
        local: The channels whose every sender is the operator.
    """

    waiting: Sequence[Stranger]
    known: Sequence[Known]
    configured: Sequence[PersonSettings]
    allowed: Sequence[tuple[str, tuple[str, ...]]]
    local: Sequence[str]


def people(place: Place, faces: Faces) -> Html:
    """Return the section."""
    return joined(
        (
            _waiting(place, faces.waiting),
            _decided(place, faces.known),
            _configured(place, faces),
        )
    )


# --- who wants in --------------------------------------------------------------------------------


def _waiting(place: Place, waiting: Sequence[Stranger]) -> Html:
    if not waiting:
        nothing = empty(
            "Nobody wants in.",
            coded(
                'With `pairing = "code"` on a channel, a stranger who writes in private gets a code'
                " and stands here; let in whoever tells you the same code."
            ),
        )
        return panel("Want in", nothing, id_="strangers")
    rows = (_stranger(place, one) for one in waiting[:MOST_SHOWN])
    field = tag(
        "input",
        type="text",
        id="code",
        name="who",
        required=True,
        minlength=CODE_CHARS,
        maxlength=CODE_CHARS + 2,
        pattern=f" ?[{ALPHABET}{ALPHABET.lower()}]{{{CODE_CHARS}}} ?",
        autocomplete="off",
        autocapitalize="characters",
        spellcheck="false",
        placeholder="8 characters",
    )
    by_code = form(
        place,
        "people",
        tag("label", "The code that somebody tells you", for_="code"),
        tag("span", field, button("Let in", look="yes"), class_="together"),
        label="let in by code",
        do="approve",
    )
    return panel("Want in", by_code, listing(*rows, id_="asking"), id_="strangers")


def _stranger(place: Place, one: Stranger) -> Html:
    return tag(
        "li",
        tag(
            "div",
            tag("h3", tag("bdi", one.label)),
            tag(
                "p",
                "asked ",
                instant(one.asked_at),
                " · ",
                deadline(one.deadline_at),
                class_="aside",
            ),
        ),
        form(
            place,
            "people",
            button("Let in", name="do", value="approve"),
            button("Deny", name="do", value="deny", look="no"),
            label=f"answer {one.label}",
            who=one.identity,
        ),
        id=f"stranger-{one.code_hash[:16]}",
        class_="line",
    )


# --- who was let in or revoked -------------------------------------------------------------------


def _decided(place: Place, known: Sequence[Known]) -> Html:
    if not known:
        nothing = empty(
            "Nobody was let in or revoked since the configuration was written.",
            coded("`zeroclaw pair` and `/pair` in a chat do the same as this page."),
        )
        return panel("Let in and revoked", nothing, id_="decided")
    rows = (_known(place, one) for one in known[:MOST_SHOWN])
    more = len(known) - MOST_SHOWN
    note = tag("p", coded(f"{more} more; `zeroclaw pair list` shows all."), class_="note")
    return panel(
        "Let in and revoked",
        listing(*rows, id_="known"),
        *([note] if more > 0 else []),
        id_="decided",
    )


def _known(place: Place, one: Known) -> Html:
    is_in = one.state == "admitted"
    roles = [pill(role, "quiet") for role in one.roles]
    act = button("Revoke", name="do", value="revoke", look="no")
    if not is_in:
        act = button("Let in again", name="do", value="approve")
    return tag(
        "li",
        tag(
            "div",
            tag(
                "h3",
                pill("in" if is_in else "revoked", "good" if is_in else "bad"),
                " ",
                tag("code", one.id),
                " ",
                tag("bdi", f'"{one.display}"' if one.display else ""),
                *(node for role in roles for node in (" ", role)),
            ),
            tag("p", "by ", tag("bdi", one.by), " · ", instant(one.at), class_="aside"),
        ),
        form(place, "people", act, label=f"decide about {one.id}", who=one.id),
        id=f"known-{one.id}",
        class_="line",
    )


# --- who the configuration knows -----------------------------------------------------------------


def _configured(place: Place, faces: Faces) -> Html:
    out = {one.id for one in faces.known if one.state == "revoked"}
    rows = [_person(place, one, out=f"person:{one.name}" in out) for one in faces.configured]
    rows += [_channel(name, ids) for name, ids in faces.allowed if name not in faces.local]
    rows += [
        tag(
            "li",
            tag(
                "div",
                tag("h3", "Whoever holds the login of ", tag("code", name)),
                tag("p", "the operator, from this machine", class_="aside"),
            ),
            id=f"local-{name}",
        )
        for name in faces.local
    ]
    note = tag(
        "p",
        coded("These stand in the configuration: `[[people]]` and `allowed_users`."),
        class_="note",
    )
    return panel("Configured", listing(*rows, id_="configured"), note, id_="configuration")


def _person(place: Place, one: PersonSettings, *, out: bool) -> Html:
    ids = [tag("code", id_) for id_ in one.ids]
    act = form(
        place,
        "people",
        button("Revoke", name="do", value="revoke", look="no"),
        label=f"revoke {one.name}",
        who=f"person:{one.name}",
    )
    return tag(
        "li",
        tag(
            "div",
            tag(
                "h3",
                one.name,
                *(node for role in one.roles for node in (" ", pill(role, "quiet"))),
                *([" ", pill("revoked", "bad")] if out else []),
            ),
            tag("p", *(node for id_ in ids for node in (id_, " ")), class_="aside"),
        ),
        *([] if out else [act]),
        id=f"person-{one.name}",
        class_="line",
    )


def _channel(name: str, ids: tuple[str, ...]) -> Html:
    listed = [tag("code", one) for one in ids[:MOST_SHOWN]]
    said = "everybody" if "*" in ids else "nobody by name" if not ids else ""
    return tag(
        "li",
        tag(
            "div",
            tag("h3", "Let in on ", tag("code", name)),
            tag("p", said, *(node for one in listed for node in (one, " ")), class_="aside"),
        ),
        id=f"channel-{name}",
    )
