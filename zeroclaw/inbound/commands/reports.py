"""What `/status`, `/usage` and `/context` show; they change nothing."""

from collections.abc import Callable, Mapping, Sequence

from zeroclaw.card_words import by_whom
from zeroclaw.context.composer import (
    Composer,
    RequestOwner,
    RequestRecord,
    RequestSources,
    WindowUsage,
)
from zeroclaw.conversation.inbox import INBOX
from zeroclaw.delivery.rows import OPEN_STATES, OUTBOX
from zeroclaw.gate.approval import APPROVALS
from zeroclaw.host.answers import Status, Used
from zeroclaw.inbound.commands.invocation import Invocation, Reply
from zeroclaw.inbound.context import InboundContext
from zeroclaw.inbound.identity import OPERATOR
from zeroclaw.inbound.pairing import STRANGERS
from zeroclaw.limits.budget import UsageBudget
from zeroclaw.limits.prices import amount, grouped, total
from zeroclaw.limits.usage import first_day, person_of, used_since
from zeroclaw.store import Store
from zeroclaw.text import catalogue
from zeroclaw.text.language import Grouped, Language, Localized, Sentence, decimal
from zeroclaw.turn.session import read_history
from zeroclaw.value import Struct, replace

# --- `/status` and `zeroclaw status` ---------------------------------------------------------------

CONDITIONS: Mapping[str, Sentence] = {
    "starting": catalogue.CHANNEL_IS_STARTING,
    "up": catalogue.CHANNEL_IS_UP,
    "waiting": catalogue.CHANNEL_IS_WAITING,
    "down": catalogue.CHANNEL_IS_DOWN,
}


class StatusCommand(Struct, eq=False):
    """Collects the status.

    Attributes:
        live: Returns the part that is in memory.
    """

    store: Store
    live: Callable[[], Status]

    async def report(self) -> Status:
        """Return the current status."""
        return replace(
            self.live(),
            waiting=await self.store.count(INBOX.where(state="queued")),
            unsent=sum([await self.store.count(OUTBOX.where(state=one)) for one in OPEN_STATES]),
            pending=await self.store.count(APPROVALS.where(state="pending"))
            + await self.store.count(STRANGERS.where(state="waiting")),
            disk_bytes=await self.store.size_bytes(),
        )

    async def told(self, given: Invocation) -> Reply:
        """Reply with the current status, with the queue of this conversation."""
        report, language = await self.report(), given.language
        here = INBOX.where(conversation=given.here, state="queued")
        channels = ", ".join(
            f"`{name}` {CONDITIONS[state.condition].to(language)}"
            f"{f' ({state.why})' if state.why else ''}"
            for name, state in sorted(report.channels.items())
        )
        halted = catalogue.STATUS_HALTED.about(who=by_whom(report.halted)) if report.halted else ""
        refused = sum(report.refused.values())
        limits = catalogue.STATUS_LIMITS.to(language, count=refused) if refused else ""
        told = catalogue.STATUS.to(
            language,
            version=report.version,
            model=report.model,
            channels=channels,
            here=await self.store.count(here),
            waiting=report.waiting,
            busy=report.busy,
            pending=report.pending,
            megabytes=decimal(report.disk_bytes / 1e6, language),
            halted=halted,
        )
        return Reply(text=told + limits)


# --- `/usage`: the tokens that a person used; for an operator in private, also everyone's ---------

DAYS = 30
MOST_PEOPLE = 20


async def usage(context: InboundContext, budget: UsageBudget, given: Invocation) -> Reply:
    """Return what was used today and recently, and the state of the budgets."""
    whose, language, now = given.principal, given.language, context.clock.now()
    used = await used_since(context.store, first_day(now, DAYS))

    def sums(some: Sequence[Used]) -> tuple[Localized, Localized]:
        today = (one for one in some if one.day == str(now.date()))
        return amount(total(today)), amount(total(some))

    today, lately = sums([one for one in used if one.person == person_of(whose)])
    lines = [catalogue.USED_BY_YOU.to(language, today=today, days=DAYS, lately=lately)]
    levels = await budget.levels(whose)
    lines += [
        f"- {said.to(language)}"
        for level in levels
        if level.scope == "person" and (said := level.for_its_person(now)) is not None
    ]
    # In a group others read along.
    if OPERATOR in whose.roles and given.address.direct:
        today, lately = sums(used)
        people = sorted(
            grouped(used, "person").items(),
            key=lambda one: one[1].input_tokens + one[1].output_tokens,
            reverse=True,
        )
        lines += [
            catalogue.USED_BY_ALL.to(language, today=today, days=DAYS, lately=lately),
            *(f"  - {who}: {amount(one).to(language)}" for who, one in people[:MOST_PEOPLE]),
            *(
                f"- {said.to(language)}"
                for level in levels
                if level.scope == "day" and (said := level.for_operators("")) is not None
            ),
        ]
    return Reply(text="\n".join(lines))


# --- `/context`: what fills the model's window in a conversation, as a bar and a table -------------

BAR_CELLS = 24
NAMES: Mapping[str, Sentence] = {
    "prompt": catalogue.CONTEXT_PROMPT,
    "operator": catalogue.CONTEXT_OPERATOR,
    "skills": catalogue.CONTEXT_SKILLS,
    "notes": catalogue.CONTEXT_NOTES,
    "summary": catalogue.CONTEXT_SUMMARY,
    "messages": catalogue.CONTEXT_MESSAGES,
    "results": catalogue.CONTEXT_RESULTS,
    "tools": catalogue.CONTEXT_TOOLS,
}


async def filled(store: Store, sources: RequestSources, whose: RequestOwner) -> WindowUsage:
    """Return what the next request of a conversation would contain."""
    history = await read_history(store, whose.conversation)
    return await Composer(sources, RequestRecord(), whose).window_usage(history.transcript())


async def context_window(store: Store, sources: RequestSources, given: Invocation) -> Reply:
    """Reply with what would fill the window."""
    whose = RequestOwner(conversation=given.here, principal=given.principal, address=given.address)
    return Reply(text=filled_in_words(await filled(store, sources, whose), given.language))


def shares_shown(filled: WindowUsage, language: Language) -> tuple[str, list[tuple[str, int]]]:
    """Return how full the window is, and what fills it with the tokens of each."""
    rows = [(_named(name, language), tokens) for name, tokens in filled.shares.items()]
    if filled.window is None:
        tokens = Grouped(number=filled.tokens)
        return catalogue.CONTEXT_WINDOW_UNKNOWN.to(language, tokens=tokens), rows
    free = max(filled.window - filled.reserve - filled.tokens, 0)
    rows += [
        (catalogue.CONTEXT_ANSWER.to(language), filled.reserve),
        (catalogue.CONTEXT_FREE.to(language), free),
    ]
    share = min(round(filled.tokens * 100 / filled.window), 100)
    window = Grouped(number=filled.window)
    return catalogue.CONTEXT_FILLED.to(language, share=share, window=window), rows


def filled_in_words(filled: WindowUsage, language: Language) -> str:
    """Return a bar and a table, in monospace."""
    head, rows = shares_shown(filled, language)
    if filled.window is not None:
        cells = round(min(filled.tokens / filled.window, 1.0) * BAR_CELLS)
        head = f"{'█' * cells}{'░' * (BAR_CELLS - cells)}  {head}"
    counts = [Grouped(number=tokens).to(language) for _, tokens in rows]
    wide, long = max(len(name) for name, _ in rows), max(map(len, counts))
    lines = (
        f"{name:{wide}}  {count:>{long}}" for (name, _), count in zip(rows, counts, strict=True)
    )
    return "\n".join(("```", head, "", *lines, "```"))


def _named(part: str, language: Language) -> str:
    """Return the name of a part of a request; files and other packages' parts keep their own name."""
    return NAMES[part].to(language) if part in NAMES else part
