"""Verifies the receipts in a text, over all conversations: for `zeroclaw receipts verify`."""

from zeroclaw.envelope import CheckedReceipt, ConversationId
from zeroclaw.errors import RecordUnreadable
from zeroclaw.gate import receipt
from zeroclaw.gate.audit import Intact
from zeroclaw.gate.receipt_keys import Keys
from zeroclaw.inbound.anchors import STREAM, verify_streams
from zeroclaw.store import LogKind, ReadableStore
from zeroclaw.turn.receipts import recorded_in, signed_results, verdict_of
from zeroclaw.turn.session import read_history
from zeroclaw.value import Struct

Receipts = dict[str, CheckedReceipt | None]
"""By token; None if the receipt does not match its result, or can't be checked."""


class ReceiptVerifier(Struct, eq=False):
    """Looks up receipts in every conversation; slow, because it reads all journals."""

    store: ReadableStore
    keys: Keys

    async def verify(self, text: str) -> list[dict[str, object]]:
        """Return a verdict for each receipt of a text, in order, as plain JSON."""
        tokens = receipt.find_tokens(text)
        issued, damaged = await self._issued(frozenset(tokens))
        removed = await self._removed(frozenset(tokens) - set(issued), damaged=damaged)
        return [_as_json(token, issued.get(token), removed) for token in tokens]

    async def _issued(self, tokens: frozenset[str]) -> tuple[Receipts, bool]:
        """Return the receipts found in journals, and whether a journal is damaged.

        A receipt whose result does not match is None.
        """
        found: Receipts = {}
        damaged = False
        for stream in await self.store.streams(LogKind.JOURNAL):
            if len(found) == len(tokens):
                break
            try:
                found |= await self._issued_in(ConversationId(stream), tokens)
            except RecordUnreadable:
                damaged = True
        return found, damaged

    async def _issued_in(self, conversation: ConversationId, tokens: frozenset[str]) -> Receipts:
        history = await read_history(self.store, conversation, whole=True)
        receipts = [entry for entry in history.receipts if entry.token in tokens]
        issued = frozenset(entry.token for entry in receipts)
        results = signed_results(history.messages, issued)
        return {
            entry.token: await verdict_of(self.store, self.keys, conversation, entry, results)
            for entry in receipts
        }

    async def _removed(self, tokens: frozenset[str], *, damaged: bool) -> Receipts:
        """Return the receipts whose results can't be read, according to an intact audit chain.

        None for a receipt that a damaged chain or journal has, or may have.
        """
        found: Receipts = dict.fromkeys(tokens if damaged else ())
        chains: dict[str, Receipts] = {}
        for stream in await self.store.streams(LogKind.AUDIT) if tokens else ():
            if stream == STREAM:  # the daemon's own chain has no receipts
                continue
            try:
                recorded = await recorded_in(self.store, stream)
            except RecordUnreadable:
                found = dict.fromkeys(tokens) | found
                continue
            if matches := tokens & recorded.keys():
                chains[stream] = {token: recorded[token] for token in matches}
        verdicts = await verify_streams(self.store, tuple(chains)) if chains else ()
        for receipts, verdict in zip(chains.values(), verdicts, strict=True):
            found |= receipts if isinstance(verdict, Intact) else dict.fromkeys(receipts)
        return found


def _as_json(token: str, issued: CheckedReceipt | None, removed: Receipts) -> dict[str, object]:
    checked = issued or removed.get(token)
    if checked is None:
        verdict = "unchecked" if token in removed else "false"
        return {"token": token, "verdict": verdict, "tool": "", "outcome": "", "at": ""}
    valid = "earlier" if checked.earlier else "valid"
    verdict = "removed" if issued is None else valid
    facts = {"tool": checked.tool, "outcome": checked.outcome, "at": checked.at.isoformat()}
    return {"token": token, "verdict": verdict, **facts}
