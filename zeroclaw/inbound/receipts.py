"""Which receipts in a text are true, over all conversations: for `zeroclaw receipts verify`."""

from dataclasses import dataclass

from zeroclaw.envelope import ConversationId
from zeroclaw.gate import receipt
from zeroclaw.gate.audit import Intact
from zeroclaw.gate.receipt_keys import Keys
from zeroclaw.gate.receipt_screen import Earlier, Forged, Valid, Verdict
from zeroclaw.inbound.anchors import verified
from zeroclaw.store import LogKind, Store
from zeroclaw.turn.receipts import recorded_in, signed_results, verdict_of
from zeroclaw.turn.session import read_history


@dataclass(frozen=True, slots=True)
class Removed:
    """It was given out for a call whose result is kept no longer; the audit says so."""

    recorded: Earlier


class Receipts:
    """Looks receipts up in every conversation; reads all journals, so it takes its time."""

    def __init__(self, store: Store, keys: Keys) -> None:
        """Hold where results are kept, and what they were signed with."""
        self._store = store
        self._keys = keys

    async def verify(self, text: str) -> list[dict[str, object]]:
        """Return a verdict for each receipt of a text, in order, as plain JSON."""
        tokens = receipt.find_tokens(text)
        verdicts = await self._verdicts(frozenset(tokens))
        removed = await self._removed(frozenset(tokens) - set(verdicts))
        return [_as_json(token, (verdicts | removed).get(token, Forged())) for token in tokens]

    async def _verdicts(self, tokens: frozenset[str]) -> dict[str, Verdict]:
        found: dict[str, Verdict] = {}
        for stream in await self._store.streams(LogKind.JOURNAL):
            if len(found) == len(tokens):
                break
            history = await read_history(self._store, stream)
            results = signed_results(history.messages)
            for one in history.receipts:
                if one.token in tokens:
                    found[one.token] = await verdict_of(
                        self._store, self._keys, ConversationId(stream), one, results
                    )
        return found

    async def _removed(self, tokens: frozenset[str]) -> dict[str, Removed]:
        """Return those whose results are gone, by an audit whose chain is whole."""
        found: dict[str, Removed] = {}
        for stream in await self._store.streams(LogKind.AUDIT) if tokens else ():
            known = await recorded_in(self._store, stream)
            mine = {token: Removed(known[token]) for token in tokens & set(known)}
            if mine and isinstance(await verified(self._store, stream), Intact):
                found |= mine
        return found


def _as_json(token: str, verdict: Verdict | Removed) -> dict[str, object]:
    match verdict:
        case Removed(recorded=Earlier(tool=tool, outcome=outcome, at=at)):
            return _row(token, "removed", tool, outcome, at.isoformat())
        case Valid(tool=tool, outcome=outcome, at=at):
            return _row(token, "valid", tool, outcome, at.isoformat())
        case Earlier(tool=tool, outcome=outcome, at=at):
            return _row(token, "earlier", tool, outcome, at.isoformat())
        case Forged():
            return _row(token, "false", "", "", "")


def _row(token: str, verdict: str, tool: str, outcome: str, at: str) -> dict[str, object]:
    return {"token": token, "verdict": verdict, "tool": tool, "outcome": outcome, "at": at}
