"""The reports of `/status`, `/usage` and `/context`; they change nothing."""

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
from zeroclaw.inbound.pairing import PAIRINGS
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
        live: Returns the part of the status that is in memory.
    """

    store: Store
    live: Callable[[], Status]

    async def report(self) -> Status:
        """Return the current status."""
        return replace(
            self.live(),
            waiting=await self.store.count(INBOX.where(state="queued")),
            unsent=sum([await self.store.count(OUTBOX.where(state=name)) for name in OPEN_STATES]),
            pending=await self.store.count(APPROVALS.where(state="pending"))
            + await self.store.count(PAIRINGS.where(state="waiting")),
            disk_bytes=await self.store.size_bytes(),
        )

    async def reply(self, invocation: Invocation) -> Reply:
        """Reply with the current status, with the queue of this conversation."""
        report, language = await self.report(), invocation.language
        queued = INBOX.where(conversation=invocation.conversation, state="queued")
        channels = ", ".join(
            f"`{name}` {CONDITIONS[state.condition].to(language)}"
            f"{f' ({state.why})' if state.why else ''}"
            for name, state in sorted(report.channels.items())
        )
        halted = catalogue.STATUS_HALTED.about(who=by_whom(report.halted)) if report.halted else ""
        refused = sum(report.refused.values())
        limits = catalogue.STATUS_LIMITS.to(language, count=refused) if refused else ""
        text = catalogue.STATUS.to(
            language,
            version=report.version,
            model=report.model,
            channels=channels,
            here=await self.store.count(queued),
            waiting=report.waiting,
            busy=report.busy,
            pending=report.pending,
            megabytes=decimal(report.disk_bytes / 1e6, language),
            halted=halted,
        )
        return Reply(text=text + limits)


# --- `/usage`: the tokens that a person used; for an operator in private, also those of all --------

DAYS = 30
MAX_PEOPLE = 20


async def usage(context: InboundContext, budget: UsageBudget, invocation: Invocation) -> Reply:
    """Return the usage of today and of the last days, and the state of the budgets."""
    principal, language, now = invocation.principal, invocation.language, context.clock.now()
    used = await used_since(context.store, first_day(now, DAYS))

    def sums(rows: Sequence[Used]) -> tuple[Localized, Localized]:
        today = (row for row in rows if row.day == str(now.date()))
        return amount(total(today)), amount(total(rows))

    today, lately = sums([row for row in used if row.person == person_of(principal)])
    lines = [catalogue.USED_BY_YOU.to(language, today=today, days=DAYS, lately=lately)]
    levels = await budget.levels(principal)
    lines += [
        f"- {sentence.to(language)}"
        for level in levels
        if level.scope == "person" and (sentence := level.for_its_person(now)) is not None
    ]
    # In a group others read along.
    if OPERATOR in principal.roles and invocation.address.direct:
        today, lately = sums(used)
        people = sorted(
            grouped(used, "person").items(),
            key=lambda entry: entry[1].input_tokens + entry[1].output_tokens,
            reverse=True,
        )
        lines += [
            catalogue.USED_BY_ALL.to(language, today=today, days=DAYS, lately=lately),
            *(f"  - {name}: {amount(row).to(language)}" for name, row in people[:MAX_PEOPLE]),
            *(
                f"- {sentence.to(language)}"
                for level in levels
                if level.scope == "day" and (sentence := level.for_operators("")) is not None
            ),
        ]
    return Reply(text="\n".join(lines))


# --- `/context`: the content of the model's window in a conversation, as a bar and a table ---------

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


async def filled(store: Store, sources: RequestSources, owner: RequestOwner) -> WindowUsage:
    """Return the contents of a conversation's next request, by estimate."""
    history = await read_history(store, owner.conversation)
    return await Composer(sources, RequestRecord(), owner).window_usage(history.transcript())


async def context_window(store: Store, sources: RequestSources, invocation: Invocation) -> Reply:
    """Reply with the contents of the next request."""
    conversation, principal = invocation.conversation, invocation.principal
    owner = RequestOwner(conversation=conversation, principal=principal, address=invocation.address)
    return Reply(text=filled_in_words(await filled(store, sources, owner), principal.language))


def window_shares(filled: WindowUsage, language: Language) -> tuple[str, list[tuple[str, int]]]:
    """Return how full the window is, and its parts with the tokens of each."""
    rows = [(_part_name(name, language), tokens) for name, tokens in filled.shares.items()]
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
    head, rows = window_shares(filled, language)
    if filled.window is not None:
        cells = round(min(filled.tokens / filled.window, 1.0) * BAR_CELLS)
        head = f"{'█' * cells}{'░' * (BAR_CELLS - cells)}  {head}"
    sizes = [Grouped(number=tokens).to(language) for _, tokens in rows]
    wide, long = max(len(name) for name, _ in rows), max(map(len, sizes))
    lines = (f"{name:{wide}}  {size:>{long}}" for (name, _), size in zip(rows, sizes, strict=True))
    return "\n".join(("```", head, "", *lines, "```"))


def _part_name(part: str, language: Language) -> str:
    """Return the name of a part of a request; files and other packages' parts keep their own name."""
    return NAMES[part].to(language) if part in NAMES else part
