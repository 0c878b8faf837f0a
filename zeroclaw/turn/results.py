"""The result of a call as the model reads it: redacted, capped, fenced as data, with a receipt.

The order is fixed: redact → spell out invisible characters → cap (a blob keeps the whole output,
redacted and spelled out) → fence → defang → receipt. A thread redacts long text slice by slice, and
conversations take turns, so a hostile megabyte delays neither the event loop nor another
conversation's result.
"""

import hashlib
import time
from collections.abc import Mapping
from datetime import datetime
from functools import partial

from zeroclaw.config.model import CurrentConfig
from zeroclaw.errors import ToolFailed
from zeroclaw.foreign import Raised, place_of
from zeroclaw.gate import audit, receipt
from zeroclaw.gate.action import Action, Frozen, freeze
from zeroclaw.gate.receipt_keys import Keys
from zeroclaw.gate.verdict import encodable
from zeroclaw.gate.wording import head_of
from zeroclaw.host.executors import FairShare
from zeroclaw.message import ToolMessage, ToolOutcome
from zeroclaw.redact import Redaction, Redactor
from zeroclaw.store import PutBlob
from zeroclaw.text import catalogue
from zeroclaw.text.escape import escape_for_model
from zeroclaw.text.language import ENGLISH, Language
from zeroclaw.tool import ToolFile, ToolOutput
from zeroclaw.tools import fenced
from zeroclaw.turn.entries import CallFinished
from zeroclaw.turn.kept_results import id_of
from zeroclaw.value import Struct, Value, field, replace

LONGEST_CHARS = 1_000_000
"""Longest output that is redacted and kept whole. 50 MB would take minutes, and exceed the store's
limit; of a longer output only both ends are read."""
AT_ONCE_CHARS = 2_048
"""Longest text that is redacted on the event loop; the worst such text takes a few milliseconds."""
SLICE_CHARS = 1_024
"""Slice that is redacted in one go in a thread. While it computes, the event loop waits half a
millisecond each time it wakes up (`SWITCH_S`)."""
GAP_S = 0.0005
"""Seconds that the thread sleeps after each slice. It computes a fifth of the time, so the event
loop, waking dozens of times during a call, is hardly delayed. A text of 240 kB takes 0.16 s."""
TURN_CHARS = 16_384
"""Characters redacted for one conversation before another one gets its turn."""
SEAM_CHARS = 65_536
"""Characters dropped at each side of a cut: half a secret could be there. No secret that the daemon
reads from a file is longer."""

AUDITED: Mapping[ToolOutcome, audit.Kind] = {
    "ok": audit.Kind.EXECUTED,
    "failed": audit.Kind.FAILED,
    "denied": audit.Kind.DENIED,
    "cancelled": audit.Kind.CANCELLED,
    "unknown": audit.Kind.UNKNOWN,
}
OUTCOMES: Mapping[audit.Kind, ToolOutcome] = {kind: outcome for outcome, kind in AUDITED.items()}


class TimedOut(Value):
    """A run that exceeded its tool's time limit."""

    after_s: float


class CallEnd(Value):
    """The end of a call, with all records of it.

    Attributes:
        finished: The journal's entry.
        blob: The whole redacted output if it was capped, else None.
        files: Files that go to the chat with it.
    """

    finished: CallFinished
    audited: audit.Entry
    blob: PutBlob | None = None
    files: tuple[ToolFile, ...] = ()


def call_end(
    call: Frozen,
    signed: tuple[ToolMessage, str],
    outcome: ToolOutcome,
    at: datetime,
    *,
    by: str = "",
    detail: str = "",
) -> CallEnd:
    """Return the end of a gated call, with its entry in the audit.

    Args:
        call: The call.
        signed: Its result and receipt.
        outcome: How it ended.
        at: When.
        by: For the audit: the person or part that ended it, if the run did not.
        detail: For the audit.
    """
    (result, token), action = signed, call.action
    entry = audit.Entry(
        kind=AUDITED[outcome],
        at=at,
        action=action.id,
        tool=action.tool,
        hash=call.hash,
        by=by,
        detail=detail,
        receipt=token,
    )
    finished = CallFinished(action=action.id, result=result, outcome=outcome, at=at, receipt=token)
    return CallEnd(finished=finished, audited=entry)


class Results(Struct, eq=False, kw_only=True):
    """Makes results; the daemon has one.

    Attributes:
        settings: The live configuration, for the length that the model reads.
        reader: The tool that reads the rest of a capped result, or empty.
        share: Runs the slow part; each conversation has at most one place.
    """

    keys: Keys
    redactor: Redactor
    settings: CurrentConfig
    reader: str = ""
    share: FairShare = field(default_factory=lambda: FairShare("results", at_once=2))

    async def of_run(
        self,
        action: Action,
        returned: ToolOutput | Raised | TimedOut,
        at: datetime,
        *,
        language: Language = ENGLISH,
    ) -> CallEnd:
        """Return the result of a run; `language` is its person's."""
        match returned:
            case ToolOutput(text=text, is_error=is_error, files=files):
                outcome: ToolOutcome = "failed" if is_error else "ok"
                excerpt, blob, note = await self._cap(action.conversation, text)
                content = f"{head_of(action.tool, note)}{fenced(excerpt)}"
                return self._sign(action, outcome, content, at, blob=blob, files=files)
            case Raised(error=ToolFailed()):
                text, blob, note = await self._cap(action.conversation, returned.line)
                content = f"`{action.tool}` failed: {text}{note}"
                return self._sign(action, "failed", content, at, blob=blob)
            case Raised(error=error):
                fault = f"a fault in the tool's own code, it {returned.line}{place_of(error)}"
                return self._sign(action, "failed", f"`{action.tool}` failed: {fault}", at)
            case TimedOut(after_s=after_s):
                text = f"`{action.tool}` was stopped: it took longer than {after_s:g} s"
                duration = catalogue.SECONDS.about(number=f"{after_s:g}")
                note = catalogue.CALL_TOOK_TOO_LONG.to(language, tool=action.tool, time=duration)
                return self._sign(action, "failed", text, at, detail="timeout", for_people=note)

    def _sign(
        self,
        action: Action,
        outcome: ToolOutcome,
        text: str,
        at: datetime,
        *,
        blob: PutBlob | None = None,
        detail: str = "",
        for_people: str = "",
        files: tuple[ToolFile, ...] = (),
    ) -> CallEnd:
        fields = receipt.fields_of(action, outcome, encodable(receipt.defang(text)))
        signed = receipt.signed(self.keys.current, fields, at, for_people=for_people)
        end = call_end(freeze(action), signed, outcome, at, detail=detail)
        return replace(end, blob=blob, files=files)

    async def _cap(self, conversation: str, text: str) -> tuple[str, PutBlob | None, str]:
        """Return the redacted text, the blob of the whole, and a note on invisible characters.

        If the text is too long, its head and its tail remain; else there is no blob.
        """
        if len(text) <= AT_ONCE_CHARS:
            return self._cut(text, self.redactor.redact(text), "the whole is")
        if len(text) <= LONGEST_CHARS:
            whole, keeping = await self._redact(conversation, text), "the whole is"
        else:
            half = LONGEST_CHARS // 2
            head = (await self._redact(conversation, text[:half]))[:-SEAM_CHARS]
            tail = (await self._redact(conversation, text[-half:]))[SEAM_CHARS:]
            dropped = len(text) - 2 * (half - SEAM_CHARS)
            whole = f"{head}\n… about {dropped} characters dropped …\n{tail}"
            keeping = "its ends are"
        return await self.share.run(conversation, lambda: self._cut(text, whole, keeping))

    def _cut(self, text: str, redacted: str, keeping: str) -> tuple[str, PutBlob | None, str]:
        whole, count = escape_for_model(redacted)
        note = f"; invisible characters in it, spelled out as ⟨U+…⟩: {count:,}" if count else ""
        cap_chars = self.settings.config.runtime.result_chars
        if len(whole) <= cap_chars:
            return whole, None, note
        body = whole.encode(errors="replace")
        blob = PutBlob(digest=hashlib.sha256(body).hexdigest(), body=body)
        half = cap_chars // 2
        left_out = f"{max(len(whole), len(text)) - 2 * half} characters left out"
        hint = f"; read on with `{self.reader}` and this id" if self.reader else ""
        middle = f"\n… {left_out}; {keeping} kept as `{id_of(blob)}`{hint} …\n"
        return f"{whole[:half]}{middle}{whole[-half:]}", blob, note

    async def _redact(self, conversation: str, text: str) -> str:
        state, parts = Redaction(), list[str]()
        for start in range(0, len(text), TURN_CHARS):
            part = text[start : start + TURN_CHARS]
            state, safe = await self.share.run(conversation, partial(self._feed, state, part))
            parts.append(safe)
        return "".join(parts) + self.redactor.flush(state)

    def _feed(self, state: Redaction, part: str) -> tuple[Redaction, str]:
        """Redact the next part of a text; blocks its thread, and sleeps most of the time."""
        parts = list[str]()
        for start in range(0, len(part), SLICE_CHARS):
            state, safe = self.redactor.feed(state, part[start : start + SLICE_CHARS])
            parts.append(safe)
            time.sleep(GAP_S)
        return state, "".join(parts)
