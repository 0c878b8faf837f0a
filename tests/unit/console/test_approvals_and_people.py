"""Approvals, grants and people, as the console shows them."""

from datetime import timedelta

from tests.unit.console.parsed import faults
from tests.unit.console.rows import (
    AT,
    CONVERSATION,
    HOSTILE,
    PATHS,
    approval,
    full_page,
    grant,
    pairing_request,
    person,
)
from zeroclaw.config.model import PersonSettings
from zeroclaw.console.approvals import MAX_ROWS, RequestView, approvals
from zeroclaw.console.grants import MAX_ROWS as MAX_GRANTS
from zeroclaw.console.grants import GrantView, grants
from zeroclaw.console.people import MAX_ROWS as MAX_KNOWN
from zeroclaw.console.people import PeopleView, people
from zeroclaw.gate.scope import Scope


def test_a_request_shows_the_whole_call_and_takes_every_answer() -> None:
    """As its card does: the requester, chat, reason, hash and deadline (P5)."""
    scope = Scope(tool="shell", resources=("sandbox:workspace",), is_exact=True, for_s=3600)
    request = RequestView(approval=approval(scope=scope), where="chat/ann", number=7)
    page = full_page("approvals", approvals(PATHS, [request], []))
    card = page.by_id("card-01A")
    assert faults(page) == []
    assert card.every("pre")[0].text == '{"command": "echo </pre><b>"}'
    assert f"7 shell run echo {HOSTILE}" in card.words
    assert "supervised.effects asks" in card.words
    assert "“For a time” allows exactly this call for 1 hour" in card.words
    assert "01234567" in card.words
    assert "asked byann (\"Ann script alert('x') /script\")" in card.text
    assert card.links() == {"chat/ann": f"/console/conversations/{CONVERSATION}"}
    assert card.every("time")[0].attributes["data-deadline"] == "2026-01-01T12:15:00+00:00"
    answer, reason = card.every("form")
    assert [part.attributes["value"] for part in answer.every("button")] == [
        "once",
        "for_a_time",
        "deny",
    ]
    assert answer.fields() == {"token": "the-token", "approval": "secret-a"}
    assert reason.fields() == {"token": "the-token", "approval": "secret-a", "reason": ""}
    assert reason.every("button")[0].attributes["value"] == "deny_with_reason"


def test_only_offered_answers_have_a_button() -> None:
    """A call without resources can't be granted for a time; another chat's number is not shown."""
    request = approval(choices=("once", "deny", "deny_with_reason"))
    page = full_page("approvals", approvals(PATHS, [RequestView(approval=request, where="")], []))
    assert [b.words for b in page.by_id("card-01A").every("button")] == [
        "Approve once",
        "Deny",
        "Deny",
    ]
    assert page.by_id("call-01A").words.startswith("shell")
    assert CONVERSATION in page.by_id("card-01A").links()


def test_requests_beyond_the_limit_are_listed_later() -> None:
    many = [RequestView(approval=approval(f"n{n}"), where="") for n in range(MAX_ROWS + 2)]
    page = full_page("approvals", approvals(PATHS, many, []))
    assert len(page.ids("card-")) == MAX_ROWS
    assert "2 more come up" in page.by_id("waiting").words


def test_ended_requests_show_outcome_and_approver() -> None:
    denied = approval("d", state="denied", by=HOSTILE, reason="<i>no</i>", at=AT)
    expired = approval("e", state="expired", at=AT)
    outcomes = [
        RequestView(approval=denied, where="chat/ann"),
        RequestView(approval=expired, where=""),
    ]
    page = full_page("approvals", approvals(PATHS, [], outcomes))
    assert faults(page) == []
    assert f"by {HOSTILE} · 2026-01-01 12:00 UTC" in page.by_id("ended-01D").words
    assert page.by_id("ended-01D").every("q")[0].text == "<i>no</i>"
    assert page.by_id("ended-01E").words.startswith("expired shell")
    assert "by" not in page.by_id("ended-01E").every("summary")[0].words.split()
    assert "Nothing waits for you" in page.by_id("waiting").words


def test_an_empty_section_says_what_it_will_list() -> None:
    faces = PeopleView(waiting=[], known=[], configured=[], allowed=[], local=["web"])
    for section, main, text in (
        ("approvals", approvals(PATHS, [], []), "No request has ended recently."),
        ("grants", grants(PATHS, []), "Nothing is granted"),
        ("people", people(PATHS, faces), "No pairing requests."),
    ):
        page = full_page(section, main)
        assert text in page.by_id("main").words
        assert faults(page) == []


def test_a_grant_is_revoked_by_its_id() -> None:
    views = [GrantView(grant=grant(), line="`write_file` on `file:/srv/<b>`", where="chat/ann")]
    views += [GrantView(grant=grant("h"), line="x", where="")]
    page = full_page("grants", grants(PATHS, views))
    row = page.by_id("grant-01G")
    assert faults(page) == []
    assert "write_file on file:/srv/<b>" in row.words
    assert "for person:ann in chat/ann" in row.words
    assert row.every("form")[0].fields() == {"token": "the-token", "revoke": "01G"}
    assert CONVERSATION in page.by_id("grant-01H").links()


def test_grants_and_people_beyond_the_limit_are_counted() -> None:
    views = [GrantView(grant=grant(f"g{n}"), line="x", where="") for n in range(MAX_GRANTS + 1)]
    assert "1 more are not shown" in full_page("grants", grants(PATHS, views)).words
    faces = PeopleView(
        waiting=[],
        known=[person(id=f"chat:{n}") for n in range(MAX_KNOWN + 3)],
        configured=[],
        allowed=[],
        local=[],
    )
    assert "3 more; zeroclaw pair list" in full_page("people", people(PATHS, faces)).words


def test_a_pairing_request_is_answered_by_code_or_by_id() -> None:
    """The sender chose the name, so the id is shown beside it."""
    faces = PeopleView(waiting=[pairing_request()], known=[], configured=[], allowed=[], local=[])
    page = full_page("people", people(PATHS, faces))
    by_code, by_id = page.by_id("strangers").every("form")
    assert faults(page) == []
    assert by_code.fields() == {"token": "the-token", "do": "approve", "who": ""}
    assert by_id.fields() == {"token": "the-token", "who": "chat:4711"}
    assert [part.attributes["value"] for part in by_id.every("button")] == ["approve", "deny"]
    assert "chat:4711 (\"script alert('x') /script\")" in page.by_id("asking").words
    assert "secret-s" not in page.by_id("main").text


def test_known_people_can_be_revoked_or_admitted_again() -> None:
    """A revocation overrides the configuration, so a revoked person has no revoke button."""
    faces = PeopleView(
        waiting=[],
        known=[
            person(),
            person("revoked", id="person:ben", roles=()),
            person(id="person:ann", roles=()),
        ],
        configured=[
            PersonSettings(name="ann", ids=("chat:ann", "mail:ann"), roles=("operator",)),
            PersonSettings(name="ben"),
        ],
        allowed=[("chat", ("ann", "ben")), ("mail", ()), ("open", ("*",)), ("web", ())],
        local=["web"],
    )
    page = full_page("people", people(PATHS, faces))
    assert faults(page) == []
    assert "in" in page.by_id("known-chat:7").words.split()
    assert page.by_id("known-chat:7").every("button")[0].attributes["value"] == "revoke"
    assert page.by_id("known-person:ben").every("button")[0].attributes["value"] == "approve"
    assert page.by_id("person-ann").every("form")[0].fields()["who"] == "person:ann"
    assert "operator" in page.by_id("person-ann").words
    assert page.by_id("person-ben").every("form") == []
    assert "ann ben" in page.by_id("channel-chat").words
    assert "nobody by name" in page.by_id("channel-mail").words
    assert "everybody" in page.by_id("channel-open").words
    assert page.ids("channel-web") == []
    assert "web" in page.by_id("local-web").words


def test_a_request_shows_the_deadline_of_its_row() -> None:
    later = approval(deadline_at=AT + timedelta(hours=2))
    page = full_page("approvals", approvals(PATHS, [RequestView(approval=later, where="")], []))
    assert "until 2026-01-01 14:00 UTC" in page.by_id("card-01A").words
