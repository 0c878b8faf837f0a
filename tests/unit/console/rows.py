"""What the sections' tests show: the console's paths, and rows of each kind."""

from datetime import UTC, datetime, timedelta

from tests.unit.console.parsed import Part, parsed
from zeroclaw.console.frame import ConsolePaths, PageState, page
from zeroclaw.console.markup import Html
from zeroclaw.envelope import ActionId, Address, ApprovalId, ConversationId, Principal, TurnId
from zeroclaw.gate.approval import Approval, Numbered
from zeroclaw.gate.grant import Grant
from zeroclaw.inbound.identity import Person
from zeroclaw.inbound.pairing import PairingRequest
from zeroclaw.value import replace

AT = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)
PATHS = ConsolePaths(root="/console", chat="/web/", log_out="/logout", token="the-token")
HOSTILE = "<script>alert('x')</script>"
ANN = Principal(
    id="person:ann", roles=frozenset(), channel="chat", sender="ann", display=f"Ann {HOSTILE}"
)
ADDRESS = Address(channel="chat", account="bot", chat="ann", direct=True)
CONVERSATION = ConversationId("01HERE")


def full_page(section: str, *main: Html) -> Part:
    """A section's page, parsed."""
    return parsed(page(PATHS, section, PageState(waiting={}), *main).decode())


def approval(name: str = "a", **changes: object) -> Approval:
    row = Approval(
        id=ApprovalId(f"secret-{name}"),
        action=ActionId(f"01{name.upper()}"),
        action_hash="0123456789abcdef" * 4,
        tool="shell",
        conversation=CONVERSATION,
        turn=TurnId("01TURN"),
        requester=ANN,
        approvers=("role:operator",),
        summary=f"run `echo {HOSTILE}`",
        arguments='{"command": "echo </pre><b>"}',
        why="`supervised.effects` asks",
        card=f"card-{name}",
        deadline_at=AT + timedelta(minutes=15),
        numbers=(Numbered(place="chat/bot/olga/", number=7),),
    )
    return replace(row, **changes)


def grant(name: str = "g") -> Grant:
    return Grant(
        id=f"01{name.upper()}",
        conversation=CONVERSATION,
        tool="write_file",
        resources=("file:/srv/a",),
        arguments_hash=None,
        granted_by="Olga",
        until=AT + timedelta(hours=1),
        holder="person:ann",
    )


def pairing_request(name: str = HOSTILE) -> PairingRequest:
    return PairingRequest(
        id=ApprovalId("secret-s"),
        channel="chat",
        sender="4711",
        display=name,
        address=ADDRESS,
        salt="00",
        code_hash="ab" * 32,
        asked_at=AT,
        deadline_at=AT + timedelta(hours=1),
    )


def person(state: str = "admitted", **changes: object) -> Person:
    row = Person(
        id="chat:7", display=HOSTILE, state="admitted", by="Olga", at=AT, roles=("editor",)
    )
    return replace(row, state=state, **changes)
