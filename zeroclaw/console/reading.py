"""Reads the data of the sections; every read is bounded, whatever the store contains."""

from collections.abc import Iterable
from datetime import date
from itertools import islice

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
from zeroclaw.inbound.commands.reports import filled, window_shares
from zeroclaw.inbound.conversations import CONVERSATIONS, Conversation
from zeroclaw.inbound.pairing import PAIRINGS
from zeroclaw.inbound.transcript import Page
from zeroclaw.limits.usage import first_day, used_since
from zeroclaw.store import LogKind, Row, readable_of
from zeroclaw.text.language import ENGLISH
from zeroclaw.turn.titles import TITLES, title_of
from zeroclaw.value import replace

MAX_OPEN = 500
"""Most open approval requests and grants that are read."""
MAX_COUNTED = 200
"""Most pairing requests that are counted for every page; a larger count is shown as this."""
MAX_ENDED = 20
"""Ended approval requests that are shown."""
OUTBOX_ROWS = 1_000
"""Newest rows of the outbox that are searched for their cards."""
PAGE = 25
"""Conversations, or chains, per page."""
LINES = 60
"""Rows of a conversation per page."""
ENTRIES = 50
"""Entries of a chain per page."""
USAGE_DAYS = 30
"""Days of usage that are shown."""
RECENT = 8
"""Newest inbox rows of a conversation, from which its writers and state are read."""


class ConsoleReader:
    """Reads for the console; the daemon has one."""

    def __init__(self, context: ConsoleContext, chains: ChainChecker) -> None:
        """Store the dependencies."""
        self._context = context
        self._inbound = context.inbound
        self._store = context.inbound.store
        self._chains = chains

    async def page_state(self, result: str) -> PageState:
        """Return the state that every page shows; `result` is that of the last form."""
        pending = await self._store.count(APPROVALS.where(state="pending"))
        waiting = {"approvals": pending, "people": len(await self._strangers())}
        return PageState(waiting=waiting, halted=self._inbound.policy.halted_by, result=result)

    # --- approvals, grants, people -------------------------------------------------------------

    async def waiting(self) -> tuple[RequestView, ...]:
        """Return the open approval requests, nearest deadline first."""
        page = await self._store.select(APPROVALS.where(state="pending", limit=MAX_OPEN))
        requests = map(self._inbound.in_force, readable_of(page, APPROVALS.of))
        by_deadline = sorted(requests, key=lambda row: (row.deadline_at, row.card, row.order))
        return tuple([await self._request_view(request) for request in by_deadline])

    async def ended(self) -> tuple[RequestView, ...]:
        """Return the approval requests that ended recently, newest end first.

        Their keys are not ordered by time, so they are found through their cards in the outbox.
        """
        page = await self._store.select(OUTBOX.where(newest_first=True, limit=OUTBOX_ROWS))
        items = readable_of(page, OUTBOX.of)
        cards = (item for item in items if isinstance(item, rows.ApprovalCard))
        keys = dict.fromkeys(key for card in cards for key in card.approvals)
        newest = islice(keys, MAX_ENDED + MAX_COUNTED)
        requests = filter(None, [await APPROVALS.find(self._store, key) for key in newest])
        ended = [request for request in requests if request.at is not None]
        shown = [request for request in ended if not is_off_the_record(request.conversation)]
        shown.sort(key=lambda request: (str(request.at), request.action), reverse=True)
        return tuple([await self._request_view(request) for request in shown[:MAX_ENDED]])

    async def _request_view(self, request: Approval) -> RequestView:
        return RequestView(
            approval=request,
            where=await self._chat_of(request.conversation),
            number=number_of(request, self._context.chat.key()),
        )

    async def _chat_of(self, conversation: str) -> str:
        stored = await CONVERSATIONS.find(self._store, conversation)
        return "" if stored is None else stored.address.in_words()

    async def grants(self) -> tuple[GrantView, ...]:
        """Return the grants in force, the first to end first."""
        now = self._inbound.clock.now()
        page = await self._store.select(GRANTS.where(limit=MAX_OPEN))
        stored = readable_of(page, GRANTS.of)
        in_force = sorted((row for row in stored if now < row.until), key=lambda row: row.until)
        return tuple([await self._grant_view(grant) for grant in in_force])

    async def _grant_view(self, grant: Grant) -> GrantView:
        line = self._inbound.redact(describe(grant, "en"))
        return GrantView(grant=grant, line=line, where=await self._chat_of(grant.conversation))

    async def people(self) -> PeopleView:
        """Return all known people."""
        config = self._inbound.settings.config
        return PeopleView(
            waiting=await self._strangers(),
            known=self._inbound.people.stored,
            configured=config.people,
            allowed=[
                (name, channel.allowed_users)
                for name, channel in config.channels.items()
                if channel.enabled
            ],
            local=self._inbound.people.local,
        )

    async def _strangers(self) -> tuple[pairing.PairingRequest, ...]:
        now = self._inbound.clock.now()
        page = await self._store.select(PAIRINGS.where(state="waiting", limit=MAX_COUNTED))
        stored = readable_of(page, PAIRINGS.of)
        waiting = (stranger for stranger in stored if pairing.is_open(stranger, now))
        return tuple(sorted(waiting, key=lambda stranger: stranger.asked_at))

    # --- conversations -------------------------------------------------------------------------

    async def at_work(self) -> tuple[tuple[ConversationSummary, ...], int]:
        """Return a page of the conversations with an open turn, newest first, and their number."""
        turns = await self._store.select(TURNS.where(state="open", newest_first=True, limit=PAGE))
        summaries = [
            await self.summary(row.conversation) for row in turns if row.conversation is not None
        ]
        count = await self._store.count(TURNS.where(state="open"))
        return tuple(filter(None, summaries)), count - summaries.count(None)

    async def conversations(self, after: str) -> tuple[tuple[ConversationSummary, ...], str]:
        """Return a page of conversations after an id, newest first, and the `after` of the next page."""
        query = CONVERSATIONS.where(after=after, newest_first=True, limit=PAGE + 1)
        page = await self._store.select(query)
        shown = page[:PAGE]
        summaries = [await self._summary(row) for row in readable_of(shown, CONVERSATIONS.of)]
        return tuple(summaries), shown[-1].key if len(page) > PAGE else ""

    async def summary(self, conversation: ConversationId) -> ConversationSummary | None:
        """Return one conversation; None if there is none with this id."""
        stored = await CONVERSATIONS.find(self._store, conversation)
        return None if stored is None else await self._summary(stored)

    async def transcript(self, conversation: ConversationId, before: str) -> Page:
        """Return a page of a conversation's transcript."""
        if is_off_the_record(conversation):
            return Page(items=(), before="")
        page = await self._context.transcript.part(conversation, before=before, limit=LINES)
        # The store keeps people's words unredacted.
        items = tuple(replace(it, text=self._inbound.redact(it.text)) for it in page.items)
        return replace(page, items=items)

    async def window_estimate(self, conversation: ConversationId) -> FilledWindow | None:
        """Estimate the next request, as if its last writer wrote again; None without messages."""
        query = INBOX.where(conversation=conversation, newest_first=True, limit=1)
        inbox = await self._store.select(query)
        if not inbox:
            return None
        newest = INBOX.of(inbox[0])
        owner = RequestOwner(
            conversation=conversation, principal=newest.principal, address=newest.address
        )
        found = await filled(self._store, self._context.sources, owner)
        summary, shares = window_shares(found, ENGLISH)
        return FilledWindow(words=summary, rows=shares, tokens=found.tokens, window=found.window)

    async def _summary(self, conversation: Conversation) -> ConversationSummary:
        store, id_ = self._store, conversation.id
        inbox = await store.select(INBOX.where(conversation=id_, newest_first=True, limit=RECENT))
        outbox = await store.select(OUTBOX.where(conversation=id_, newest_first=True, limit=1))
        queued = await store.count(INBOX.where(conversation=id_, state="queued"))
        journal = await store.last(LogKind.JOURNAL, id_)
        audited = await store.last(LogKind.AUDIT, id_)
        names = dict.fromkeys(message.principal.label for message in readable_of(inbox, INBOX.of))
        newest = max((row.key for row in (*inbox[:1], *outbox)), default="")
        return ConversationSummary(
            id=id_,
            address=conversation.address,
            started_at=conversation.started_at,
            people=tuple(names),
            last_at=made_at(newest) if newest else None,
            state=await self._state(id_, inbox, is_queued=queued > 0),
            entries=0 if journal is None else journal.sequence,
            audited=0 if audited is None else audited.sequence,
            queued=queued,
            title=await self._title(id_),
        )

    async def _title(self, id_: ConversationId) -> str:
        """Return a conversation's title, or its first message if it has none."""
        if is_off_the_record(id_):
            return ""
        title = await TITLES.get(self._store, id_)
        if title is not None and title.text:
            return title.text
        first = await self._store.select(INBOX.where(conversation=id_, limit=RECENT))
        contents = (message.content for message in readable_of(first, INBOX.of))
        text = next((entry.text for entry in contents if isinstance(entry, PersonMessage)), "")
        return title_of(self._inbound.redact(text))

    async def _state(self, id_: ConversationId, inbox: Iterable[Row], *, is_queued: bool) -> State:
        if await self._store.select(APPROVALS.where(conversation=id_, state="pending", limit=1)):
            return "waiting for approval"
        if await self._store.select(TURNS.where(conversation=id_, state="open", limit=1)):
            return "running"
        if is_queued:
            return "queued"
        states = readable_of(inbox, lambda row: row.state if _has_ended(row) else "")
        return "failed" if next(filter(None, states), "") == "failed" else "idle"

    # --- usage ---------------------------------------------------------------------------------

    async def usage(self) -> tuple[date, date, tuple[Used, ...]]:
        """Return the first and last day that are shown, and the usage between them."""
        now = self._inbound.clock.now()
        first = first_day(now, USAGE_DAYS)
        return first, now.date(), await used_since(self._store, first)

    # --- audit ---------------------------------------------------------------------------------

    async def streams(self, *, last: int = 0, before: str = "") -> tuple[str, ...]:
        """Return the names of the chains, newest conversation first.

        The daemon's own chain sorts after every id, and so comes first. For the parameters see
        `Logs.streams`.
        """
        return (await self._store.streams(LogKind.AUDIT, last=last, before=before))[::-1]

    async def chain(self, stream: str) -> Chain | None:
        """Return one chain; None if there is none with this name."""
        last = await self._store.last(LogKind.AUDIT, stream)
        if last is None:
            return None
        where = await self._chat_of(stream)
        return Chain(
            stream=stream,
            where="the daemon's own" if stream == STREAM else where,
            is_conversation=bool(where),
            last=last.sequence,
            check=self._chains.check_of(stream, last.sequence),
        )

    async def entries(self, stream: str, before: int) -> tuple[Numbered, ...]:
        """Return a page of entries with smaller numbers than `before`, newest first."""
        records = await self._store.read(
            LogKind.AUDIT, stream, after=max(0, before - 1 - ENTRIES), limit=ENTRIES
        )
        return tuple(
            Numbered(sequence=record.sequence, written=_read_entry(record.body))
            for record in reversed(records)
            if record.sequence < before
        )


def _has_ended(row: Row) -> bool:
    """Whether the row is a message whose turn is over."""
    is_over = row.state not in ("queued", "control", "taken")
    return is_over and isinstance(INBOX.of(row).content, Opening)


def _read_entry(body: bytes) -> audit.Written | None:
    try:
        return audit.read(body)
    except RecordUnreadable:
        return None
