"""Checks the receipts in the model's answer: looks them up, then verifies them (P7).

The lookup finds a receipt among the results of this conversation, and verifies it against its call.
If a summary has replaced the result, or the result was removed, the audit still shows that the
receipt was issued; if an answer contains such a receipt, the lookup verifies it against the whole
journal while that is kept. It checks each receipt once, before a request is sent, so that the screen
can look it up without waiting.
"""

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import compress
from operator import attrgetter, not_
from types import MappingProxyType

from zeroclaw.envelope import ActionId, CheckedReceipt, ConversationId
from zeroclaw.errors import RecordUnreadable
from zeroclaw.foreign import Raised, call_now
from zeroclaw.gate import audit, receipt, receipt_screen
from zeroclaw.gate.action import ACTIONS, Action, Frozen
from zeroclaw.gate.receipt import PREFIX_PLAIN
from zeroclaw.gate.receipt_keys import Keys
from zeroclaw.gate.verdict import encodable
from zeroclaw.message import AssistantMessage, Message, ToolCall, ToolMessage
from zeroclaw.redact import Redactor
from zeroclaw.store import LogKind, Logs, Rows, read_all
from zeroclaw.text import catalogue
from zeroclaw.text.escape import escape_invisible, shortened
from zeroclaw.text.language import ENGLISH, Language
from zeroclaw.tool import Tool, line_of
from zeroclaw.turn.context import TurnContext
from zeroclaw.turn.journal import History, IssuedReceipt
from zeroclaw.turn.results import OUTCOMES
from zeroclaw.turn.session import read_history

_TOKEN = attrgetter("token")
MAX_SUMMARY_CHARS = 160
MANY_ENTRIES = 128
"""Longest audit that is searched on the event loop, which takes about a millisecond."""

Results = Mapping[str, tuple[ToolCall, str]]
"""The signed values, by receipt: the call, and the text above the receipt."""


class ReceiptLookup:
    """Looks up the receipts of one conversation."""

    def __init__(self, turn: TurnContext) -> None:
        """Start with the verdicts of the session's earlier turns."""
        self._services, self._session, self._gated = turn.services, turn.session, turn.gated
        self._verdicts = turn.session.verdicts
        self._replacement = catalogue.RECEIPT_BELOW.to(turn.language)

    def lookup(self, token: str) -> CheckedReceipt | None:
        """Return what a token proves, None if this conversation never issued it."""
        return self._verdicts.get(token)

    async def refresh(self) -> None:
        """Check the receipts that were issued since the last call."""
        if self._session.audit_is_longer:
            try:
                recorded = await recorded_in(self._services.store, self._session.conversation)
            except RecordUnreadable:
                recorded = {}  # a damaged audit proves nothing, and the chat continues
            self._session.audit_is_longer = False  # not before: a stop may come while it is read
            self._session.recorded |= recorded.keys() - self._verdicts.keys()
            self._verdicts.update(recorded | self._verdicts)
        history = self._session.history
        tokens = map(_TOKEN, history.receipts)
        is_known = map(self._verdicts.__contains__, tokens)
        if unchecked := [*compress(history.receipts, map(not_, is_known))]:
            self._verdicts.update(await self._checked(unchecked, history))

    async def _verify(self, tokens: Collection[str]) -> None:
        """Verify receipts known only from the audit; reads the whole journal, once for each."""
        unverified = self._session.recorded.intersection(tokens)
        if not unverified:
            return
        self._session.recorded -= unverified
        try:
            history = await read_history(
                self._services.store, self._session.conversation, whole=True
            )
        except RecordUnreadable:
            return  # the audit's verdict stays
        # If retention or an erasure removed the turn, the journal has no receipt: the audit's verdict stays.
        receipts = [issued for issued in history.receipts if issued.token in unverified]
        self._verdicts.update(await self._checked(receipts, history))

    async def _checked(
        self, receipts: Iterable[IssuedReceipt], history: History
    ) -> dict[str, CheckedReceipt | None]:
        receipts = [*receipts]
        tokens = frozenset(issued.token for issued in receipts)
        conversation, messages = self._session.conversation, history.messages
        results = await self._services.sources.run_sized(
            conversation, messages, lambda: signed_results(messages, tokens)
        )
        return {
            issued.token: await verdict_of(
                self._services.store,
                self._services.results.keys,
                conversation,
                issued,
                results,
                summary=self._summary,
                gated=self._gated,
            )
            for issued in receipts
        }

    async def take_out(self, text: str) -> tuple[str, tuple[CheckedReceipt, ...]]:
        """Return a text as people read it, and the receipts that it contained."""
        if PREFIX_PLAIN in text:
            await self.refresh()
            await self._verify(receipt.find_tokens(text))
        return receipt_screen.take_out(text, self.lookup, self._replacement)

    def without_receipts(self, text: str) -> str:
        """Return a text as people read it while it is being written: a draft proves nothing yet."""
        return receipt_screen.take_out(text, self.lookup, self._replacement)[0]

    def _summary(self, action: Action) -> str:
        """Return the tool's own line about a call, as on its card."""
        redactor, tool = self._services.gate.redactor, self._services.gate.tools.get(action.tool)
        line = None if tool is None else line_about(tool, action, ENGLISH, redactor)
        safe = escape_invisible(receipt.defang(redactor.redact(line or "")))
        return shortened(safe, MAX_SUMMARY_CHARS)


def line_about(tool: Tool, action: Action, language: Language, redactor: Redactor) -> str | None:
    """Return a tool's line about a call; None if it fails, or if the call holds a known secret.

    A tool cuts its line, which may then show a part of a secret that no search finds.
    """
    if redactor.finds(action.canonical_arguments, known_only=True):
        return None
    line = call_now(lambda: line_of(tool, action.arguments, language))
    return None if isinstance(line, Raised) else line


async def verdict_of(
    store: Rows,
    keys: Keys,
    conversation: ConversationId,
    issued: IssuedReceipt,
    results: Results,
    *,
    summary: Callable[[Action], str] = lambda _: "",
    gated: Mapping[ActionId, Frozen] = MappingProxyType({}),
) -> CheckedReceipt | None:
    """Return what an issued receipt proves; None if it proves nothing.

    Args:
        store: The store of the call.
        keys: The keys to verify with.
        conversation: The conversation whose journal shows the receipt.
        issued: The receipt.
        results: The results of the same conversation, by receipt.
        summary: Returns a line about a call.
        gated: Calls that need not be read from the store.
    """
    pair = results.get(issued.token)
    if pair is None:
        return None
    call, text = pair
    frozen = None
    if issued.action is not None:  # a damaged call counts as one that is no longer stored
        frozen = gated.get(issued.action) or await ACTIONS.find(store, issued.action)
    action = None if frozen is None else frozen.action
    fields = receipt.Fields(
        conversation=conversation,
        action=issued.action or ActionId(""),
        tool=encodable(call.name),
        # A malformed call was never frozen; its receipt signs the model's own text.
        arguments=encodable(call.arguments) if action is None else action.canonical_arguments,
        outcome=issued.outcome,
        result=text,
    )
    signer = receipt.signer(keys.every, fields, issued.token)
    is_key_kept = (receipt.issued_at(issued.token) or 0) >= keys.since_s
    if signer is None and action is not None and is_key_kept:
        return None  # the stored result is not the one that was signed
    return CheckedReceipt(
        token=issued.token,
        tool=issued.tool,
        summary="" if action is None else summary(action),
        outcome=issued.outcome,
        at=issued.at,
        # Signed by an earlier process; where its key or the call is no longer stored, the record of
        # this conversation still shows that the receipt was issued.
        earlier=signer != keys.current,
    )


async def recorded_in(logs: Logs, conversation: str) -> dict[str, CheckedReceipt]:
    """Return the receipts in a conversation's audit, whether or not their results are kept.

    Raises:
        RecordUnreadable: The audit contains something that is not an entry.
    """
    bodies = [entry.body async for entry in read_all(logs, LogKind.AUDIT, conversation)]

    def read() -> dict[str, CheckedReceipt]:
        return {
            entry.receipt: CheckedReceipt(
                token=entry.receipt,
                tool=entry.tool,
                summary="",
                outcome=OUTCOMES[entry.kind],
                at=entry.at,
                earlier=True,
            )
            for entry in audit.issued(bodies)
        }

    return await asyncio.to_thread(read) if len(bodies) > MANY_ENTRIES else read()


def signed_results(messages: Sequence[Message], tokens: frozenset[str]) -> Results:
    """Return the results of a history by their receipts; calls and results pair by position.

    Searches from the end, where new results are, until every token in `tokens` is found.
    """
    results_by_token: dict[str, tuple[ToolCall, str]] = {}
    results: list[ToolMessage] = []  # of the answer before them, newest first
    for message in reversed(messages):
        if isinstance(message, ToolMessage):
            results.append(message)
        elif isinstance(message, AssistantMessage):
            pairs = [*zip(message.tool_calls, reversed(results), strict=False)]
            for call, result in reversed(pairs):
                text, token = receipt.detach(result.content)
                if token is not None:
                    results_by_token.setdefault(token, (call, text))
            results.clear()
            if results_by_token.keys() >= tokens:
                break
    return results_by_token
