"""Reads what the sections show; every read is bounded, whatever is in the store."""

from collections.abc import Iterable
from datetime import date

from zeroclaw.channel import TranscriptItem
from zeroclaw.clock import made_at
from zeroclaw.console.approvals import RequestView
from zeroclaw.console.audit import Chain, Numbered
from zeroclaw.console.chain_checks import ChainChecker
from zeroclaw.console.context import ConsoleContext
from zeroclaw.console.conversations import ConversationSummary, FilledWindow, State
from zeroclaw.console.frame import PageState
from zeroclaw.console.grants import GrantView
from zeroclaw.console.people import PeopleView
from zeroclaw.context.composer import RequestOwner
from zeroclaw.conversation.inbox import INBOX, Opening, PersonMessage
from zeroclaw.conversation.turn_row import TURNS
from zeroclaw.delivery import rows
from zeroclaw.delivery.rows import OUTBOX
from zeroclaw.envelope import ConversationId, is_off_the_record
from zeroclaw.errors import RecordUnreadable
from zeroclaw.gate import audit
from zeroclaw.gate.approval import APPROVALS, Approval, number_of
from zeroclaw.gate.grant import GRANTS, Grant, describe
from zeroclaw.host.answers import Used
from zeroclaw.inbound import pairing
from zeroclaw.inbound.anchors import STREAM
from zeroclaw.inbound.commands.reports import filled, shares_shown
from zeroclaw.inbound.conversations import CONVERSATIONS, Conversation, conversation_of
from zeroclaw.inbound.pairing import STRANGERS
from zeroclaw.inbound.transcript import Page
from zeroclaw.limits.usage import first_day, used_since
from zeroclaw.store import LogKind, Row, readable_of
from zeroclaw.text.language import ENGLISH
from zeroclaw.turn.titles import TITLES, title_of
from zeroclaw.value import replace

MOST_OPEN = 500
"""Most open approval requests and grants that are read."""
MOST_COUNTED = 200
"""Most waiting things counted for every page; larger counts are shown as this."""
ENDED = 20
"""Ended approval requests that are shown."""
LOOKED_BACK = 5
"""Pages of the outbox that are searched for their cards."""
OUTBOX_PAGE = 200
A_PAGE = 25
"""Conversations, or chains, per page."""
SAID = 60
"""Rows of a conversation per page."""
ENTRIES = 50
"""Entries of a chain per page."""
DAYS = 30
"""Days of usage that are shown."""
LATELY = 8
"""Newest inbox rows of a conversation that tell its writers and its state."""


class ConsoleReader:
    """Reads for the console; the daemon has one."""

    def __init__(self, context: ConsoleContext, chains: ChainChecker) -> None:
        """Store the dependencies."""
        self._context = context
        self._inbound = context.inbound
        self._store = context.inbound.store
        self._chains = chains

    async def page_state(self, told: str) -> PageState:
        """Return what every page shows; `told` is the result of the last form."""
        asked = await self._store.count(APPROVALS.where(state="pending"))
        waiting = {"approvals": asked, "people": len(await self._strangers())}
        return PageState(waiting=waiting, halted=self._inbound.policy.halted_by, told=told)

    # --- approvals, grants, people -------------------------------------------------------------

    async def waiting(self) -> tuple[RequestView, ...]:
        """Return the open approval requests, nearest deadline first."""
        found = await self._store.select(APPROVALS.where(state="pending", limit=MOST_OPEN))
        read = map(self._inbound.in_force, readable_of(found, APPROVALS.of))
        ordered = sorted(read, key=lambda one: (one.deadline_at, one.card, one.order))
        return tuple([await self._asked(one) for one in ordered])

    async def ended(self) -> tuple[RequestView, ...]:
        """Return the approval requests that ended recently, newest end first.

        Their keys are not ordered by time, so they are found through their cards in the outbox.
        """
        keys: dict[str, None] = {}
        before = ""
        for _ in range(LOOKED_BACK):
            page = await self._store.select(
                OUTBOX.where(after=before, newest_first=True, limit=OUTBOX_PAGE)
            )
            for item in readable_of(page, OUTBOX.of):
                if isinstance(item, rows.ApprovalCard):
                    keys.update(dict.fromkeys(item.approvals))
            if len(page) < OUTBOX_PAGE or len(keys) > ENDED + MOST_COUNTED:
                break
            before = page[-1].key
        read = [await self._store.get(APPROVALS.kind, key) for key in keys]
        known = readable_of((row for row in read if row is not None), APPROVALS.of)
        over = [one for one in known if one.at is not None]
        ended = [one for one in over if not is_off_the_record(one.conversation)]
        ended.sort(key=lambda one: (str(one.at), one.action), reverse=True)
        return tuple([await self._asked(one) for one in ended[:ENDED]])

    async def _asked(self, one: Approval) -> RequestView:
        return RequestView(
            approval=one,
            where=await self._where(one.conversation),
            number=number_of(one, self._context.chat.key()),
        )

    async def _where(self, conversation: str) -> str:
        found = await conversation_of(self._store, conversation)
        return "" if found is None else found.address.in_words()

    async def grants(self) -> tuple[GrantView, ...]:
        """Return the grants in force, the first to end first."""
        now = self._inbound.clock.now()
        found = await self._store.select(GRANTS.where(limit=MOST_OPEN))
        read = readable_of(found, GRANTS.of)
        holding = sorted((one for one in read if now < one.until), key=lambda one: one.until)
        return tuple([await self._granted(one) for one in holding])

    async def _granted(self, one: Grant) -> GrantView:
        line = self._inbound.redact(describe(one, "en"))
        return GrantView(grant=one, line=line, where=await self._where(one.conversation))

    async def people(self) -> PeopleView:
        """Return all known people."""
        config = self._inbound.settings.config
        return PeopleView(
            waiting=await self._strangers(),
            known=self._inbound.people.stored,
            configured=config.people,
            allowed=[
                (name, one.allowed_users) for name, one in config.channels.items() if one.enabled
            ],
            local=self._inbound.people.local,
        )

    async def _strangers(self) -> tuple[pairing.Stranger, ...]:
        now = self._inbound.clock.now()
        found = await self._store.select(STRANGERS.where(state="waiting", limit=MOST_COUNTED))
        read = readable_of(found, STRANGERS.of)
        is_open = (one for one in read if pairing.is_open(one, now))
        return tuple(sorted(is_open, key=lambda one: one.asked_at))

    # --- conversations -------------------------------------------------------------------------

    async def at_work(self) -> tuple[tuple[ConversationSummary, ...], int]:
        """Return a page of the conversations with an open turn, newest first, and their number."""
        turns = await self._store.select(TURNS.where(state="open", newest_first=True, limit=A_PAGE))
        found = [
            await self.summary(row.conversation) for row in turns if row.conversation is not None
        ]
        count = await self._store.count(TURNS.where(state="open"))
        return tuple(one for one in found if one is not None), count - found.count(None)

    async def conversations(self, after: str) -> tuple[tuple[ConversationSummary, ...], str]:
        """Return a page of conversations after an id, newest first, and the `after` of the next page."""
        found = await self._store.select(
            CONVERSATIONS.where(after=after, newest_first=True, limit=A_PAGE + 1)
        )
        shown = found[:A_PAGE]
        told = [await self._summary(one) for one in readable_of(shown, CONVERSATIONS.of)]
        return tuple(told), shown[-1].key if len(found) > A_PAGE else ""

    async def summary(self, conversation: ConversationId) -> ConversationSummary | None:
        """Return one conversation; None if there is none with this id."""
        found = await conversation_of(self._store, conversation)
        return None if found is None else await self._summary(found)

    async def transcript(self, conversation: ConversationId, before: str) -> Page:
        """Return a page of what was said."""
        if is_off_the_record(conversation):
            return Page(items=(), before="")
        part = await self._context.transcript.part(conversation, before=before, limit=SAID)
        return replace(part, items=tuple(map(self._redacted, part.items)))

    async def window_estimate(self, conversation: ConversationId) -> FilledWindow | None:
        """Estimate the next request, assuming its last writer writes again; None if nobody has."""
        inbox = await self._store.select(
            INBOX.where(conversation=conversation, newest_first=True, limit=1)
        )
        if not inbox:
            return None
        newest = INBOX.of(inbox[0])
        whose = RequestOwner(
            conversation=conversation, principal=newest.principal, address=newest.address
        )
        found = await filled(self._store, self._context.sources, whose)
        words, rows = shares_shown(found, ENGLISH)
        return FilledWindow(words=words, rows=rows, tokens=found.tokens, window=found.window)

    def _redacted(self, one: TranscriptItem) -> TranscriptItem:
        # The stored words of people are not redacted.
        return replace(one, text=self._inbound.redact(one.text))

    async def _summary(self, one: Conversation) -> ConversationSummary:
        store, here = self._store, one.id
        inbox = await store.select(INBOX.where(conversation=here, newest_first=True, limit=LATELY))
        outbox = await store.select(OUTBOX.where(conversation=here, newest_first=True, limit=1))
        queued = await store.count(INBOX.where(conversation=here, state="queued"))
        journal = await store.last(LogKind.JOURNAL, here)
        audited = await store.last(LogKind.AUDIT, here)
        names = dict.fromkeys(one.principal.label for one in readable_of(inbox, INBOX.of))
        newest = max((row.key for row in (*inbox[:1], *outbox)), default="")
        return ConversationSummary(
            id=here,
            address=one.address,
            started_at=one.started_at,
            people=tuple(names),
            last_at=made_at(newest) if newest else None,
            state=await self._state(here, inbox, is_queued=queued > 0),
            entries=0 if journal is None else journal.sequence,
            audited=0 if audited is None else audited.sequence,
            queued=queued,
            title=await self._title(here),
        )

    async def _title(self, here: ConversationId) -> str:
        """Return a conversation's title, or its first message if it has none."""
        if is_off_the_record(here):
            return ""
        given = await TITLES.get(self._store, here)
        if given is not None and given.text:
            return given.text
        first = await self._store.select(INBOX.where(conversation=here, limit=LATELY))
        asked = (one.content for one in readable_of(first, INBOX.of))
        said = next((one.text for one in asked if isinstance(one, PersonMessage)), "")
        return title_of(self._inbound.redact(said))

    async def _state(self, here: ConversationId, inbox: Iterable[Row], *, is_queued: bool) -> State:
        if await self._store.select(APPROVALS.where(conversation=here, state="pending", limit=1)):
            return "waiting for approval"
        if await self._store.select(TURNS.where(conversation=here, state="open", limit=1)):
            return "running"
        if is_queued:
            return "queued"
        states = readable_of(inbox, lambda row: row.state if _has_ended(row) else "")
        return "failed" if next(filter(None, states), "") == "failed" else "idle"

    # --- usage ---------------------------------------------------------------------------------

    async def usage(self) -> tuple[date, date, tuple[Used, ...]]:
        """Return the first and last day that are shown, and the usage between them."""
        now = self._inbound.clock.now()
        first = first_day(now, DAYS)
        return first, now.date(), await used_since(self._store, first)

    # --- audit ---------------------------------------------------------------------------------

    async def streams(self, *, last: int = 0, before: str = "") -> tuple[str, ...]:
        """Return the names of the chains, newest conversation first.

        The daemon's own sorts after every id, and so comes first. For the parameters see
        `Logs.streams`.
        """
        return (await self._store.streams(LogKind.AUDIT, last=last, before=before))[::-1]

    async def chain(self, stream: str) -> Chain | None:
        """Return one chain; None if there is none with this name."""
        last = await self._store.last(LogKind.AUDIT, stream)
        if last is None:
            return None
        where = await self._where(stream)
        return Chain(
            stream=stream,
            where="the daemon's own" if stream == STREAM else where,
            is_conversation=bool(where),
            last=last.sequence,
            check=self._chains.check_of(stream, last.sequence),
        )

    async def entries(self, stream: str, before: int) -> tuple[Numbered, ...]:
        """Return a page of entries with smaller numbers than `before`, newest first."""
        found = await self._store.read(
            LogKind.AUDIT, stream, after=max(0, before - 1 - ENTRIES), limit=ENTRIES
        )
        return tuple(
            Numbered(sequence=one.sequence, written=_read(one.body))
            for one in reversed(found)
            if one.sequence < before
        )


def _has_ended(row: Row) -> bool:
    """Whether the row is a message whose turn is over."""
    is_over = row.state not in ("queued", "control", "taken")
    return is_over and isinstance(INBOX.of(row).content, Opening)


def _read(body: bytes) -> audit.Written | None:
    try:
        return audit.read(body)
    except RecordUnreadable:
        return None
