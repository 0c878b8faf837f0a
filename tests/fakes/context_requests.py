"""Requests to context providers, for tests."""

from datetime import UTC, datetime

from zeroclaw.context_provider import ContextRequest
from zeroclaw.envelope import Address, ConversationId, Principal

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
HERE = ConversationId("01C")


def context_request(
    person: str = "Sam", *, has_tools: bool = False, group: bool = False
) -> ContextRequest:
    """Return a request for a person's turn in a chat on Telegram."""
    return ContextRequest(
        conversation=HERE,
        principal=Principal(
            id="person:sam", roles=frozenset(), channel="telegram", sender="1", display=person
        ),
        address=Address(channel="telegram", account="bot", chat="1", direct=not group),
        now=NOW,
        has_tools=has_tools,
    )
