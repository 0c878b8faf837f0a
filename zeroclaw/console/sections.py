"""Builds the page of each section, and performs its forms.

Forms take the same paths as other input: an answer to an approval request is an admitted `Pressed`,
as from the web chat, whose operator also reads this page; the commands `zeroclaw grants` and
`zeroclaw pair` change grants and people. The result of a form is one line for the operator.
"""

from collections.abc import Awaitable, Callable, Mapping
from math import inf
from typing import get_args

from zeroclaw.config.model import ToolsSettings
from zeroclaw.console import approvals, audit, conversations, frame, grants, people, policy, usage
from zeroclaw.console.chain_checks import MAX_UNASKED, ChainChecker
from zeroclaw.console.context import ConsoleContext
from zeroclaw.console.markup import Html, empty, joined, pages
from zeroclaw.console.reading import PAGE, ConsoleReader
from zeroclaw.envelope import (
    Answered,
    ApprovalId,
    Choice,
    ConversationId,
    Envelope,
    Pressed,
    Sender,
)
from zeroclaw.errors import ConfigError, ToolArgumentsInvalid
from zeroclaw.inbound.commands.registry import COMMANDS
from zeroclaw.inbound.identity import OPERATOR

WAIT_S = 0.3
"""How long a page waits for a chain check before it shows the progress instead."""
MAX_KEY = 100
MAX_REASON = 2_000
CHOICES: Mapping[str, Choice] = {choice: choice for choice in get_args(Choice)}
PAIR_ACTIONS = frozenset({"approve", "deny", "revoke"})
UNREADABLE = "this form is not one of this page's; reload it and try again"
Fields = Mapping[str, str]
_NOT_FOUND_HINT = "`/forget` removes what a person said, and `[retention]` what has become old."
NOT_FOUND = "Not found", empty("Nothing is here.", _NOT_FOUND_HINT)


class Sections:
    """The sections of the console; the daemon has one.

    Attributes:
        acts: Performs the form of a section; raises `ZeroclawError` if the result can't be stored.
    """

    def __init__(self, context: ConsoleContext, chains: ChainChecker) -> None:
        """Store the dependencies."""
        self._context = context
        self._paths = context.paths
        self._reader = ConsoleReader(context, chains)
        self._chains = chains
        self._builders: dict[str, Callable[[Fields], Awaitable[tuple[str, Html]]]] = {
            "approvals": self._approvals,
            "grants": self._grants,
            "people": self._people,
            "conversations": self._conversations,
            "usage": self._usage,
            "audit": self._audit,
            "tools": self._tools,
            "policy": self._policy,
        }
        self.acts: Mapping[str, Callable[[Fields], Awaitable[str]]] = {
            "approvals": self._answer,
            "grants": self._revoke,
            "people": self._decide,
            "audit": self._check,
        }

    async def page(self, section: str, query: Fields, *, result: str) -> tuple[bytes, int]:
        """Return a section's page and its status; `result` is that of the last form.

        Raises:
            StoreUnusable: The store can't be read.
        """
        content = await self._builders[section](query) if section in self._builders else NOT_FOUND
        state = await self._reader.page_state(result)
        page = frame.page(self._paths, section, state, content[1], title=content[0])
        return page, 404 if content is NOT_FOUND else 200

    # --- approvals, grants, people ---------------------------------------------------------------

    async def _approvals(self, _query: Fields) -> tuple[str, Html]:
        waiting, ended = await self._reader.waiting(), await self._reader.ended()
        return "", approvals.approvals(self._paths, waiting, ended)

    async def _answer(self, fields: Fields) -> str:
        choice = CHOICES.get(fields.get("choice", ""))
        approval = fields.get("approval", "")
        if choice is None or not approval:
            return UNREADABLE
        reason = fields.get("reason", "").strip()[:MAX_REASON]
        chat = self._context.chat
        envelope = Envelope(
            address=chat,
            sender=Sender(id=chat.chat, verified=True, display=OPERATOR),
            dedup=(f"console/{self._context.inbound.ids.token()}",),
            body=Pressed(approval=ApprovalId(approval), choice=choice, reason=reason),
        )
        admission = await self._context.admit(envelope)
        return admission.text if isinstance(admission, Answered) else "nobody asks this any more"

    async def _grants(self, _query: Fields) -> tuple[str, Html]:
        return "", grants.grants(self._paths, await self._reader.grants())

    async def _revoke(self, fields: Fields) -> str:
        match fields.get("revoke", "").split():
            case [grant]:
                return (await self._context.grants({"words": f"revoke {grant}"})).text
            case _:
                return UNREADABLE

    async def _people(self, _query: Fields) -> tuple[str, Html]:
        return "", people.people(self._paths, await self._reader.people())

    async def _decide(self, fields: Fields) -> str:
        action, person = fields.get("do", ""), fields.get("who", "").strip()
        if action not in PAIR_ACTIONS or not person:
            return UNREADABLE
        return (await self._context.pair({"words": f"{action} {person}"})).text

    # --- conversations, usage --------------------------------------------------------------------

    async def _conversations(self, query: Fields) -> tuple[str, Html]:
        if "of" in query:
            return await self._conversation(ConversationId(query["of"]), query)
        after = query.get("after", "")
        summaries, older = await self._reader.conversations(after)
        links = pages(self._paths.to("conversations"), "after", after, older)
        main = conversations.conversations(self._paths, summaries, links)
        if after:
            return "", main
        at_work = conversations.at_work(self._paths, *await self._reader.at_work())
        return "", joined((at_work, main))

    async def _conversation(self, id_: ConversationId, query: Fields) -> tuple[str, Html]:
        summary = await self._reader.summary(id_) if len(id_) <= MAX_KEY else None
        if summary is None:
            return NOT_FOUND
        if query.get("window"):
            filled = await self._reader.window_estimate(id_)
            return summary.address.in_words(), conversations.filling(self._paths, summary, filled)
        before = query.get("before", "")
        part = await self._reader.transcript(id_, before)
        links = pages(self._paths.to("conversations", id_), "before", before, part.before)
        main = conversations.conversation(self._paths, summary, part.items, links)
        return summary.address.in_words(), main

    async def _usage(self, _query: Fields) -> tuple[str, Html]:
        first, last, used = await self._reader.usage()
        return "", usage.usage(used, first, last)

    # --- audit -----------------------------------------------------------------------------------

    async def _audit(self, query: Fields) -> tuple[str, Html]:
        if query.get("of"):
            return await self._chain(query["of"], query)
        before = query.get("before", "")
        names = await self._reader.streams(last=PAGE + 1, before=before)
        page = names[:PAGE]
        older = page[-1] if len(names) > PAGE else ""
        links = pages(self._paths.to("audit"), "before", before, older)
        # Viewing the list does not check long chains; the operator starts those by a form.
        chains = await self._checked_chains(*page, max_entries=MAX_UNASKED)
        return "", audit.chains(self._paths, chains, links)

    async def _checked_chains(self, *streams: str, max_entries: float = inf) -> list[audit.Chain]:
        """Return the chains that exist, after checking the due ones for at most `WAIT_S`."""
        found = [chain for name in streams if (chain := await self._reader.chain(name)) is not None]
        due = [
            chain.stream
            for chain in found
            if chain.last <= max_entries and self._chains.is_due(chain.stream, chain.last)
        ]
        if not due:
            return found
        self._chains.enqueue(*due)
        await self._chains.wait_idle(WAIT_S)
        return [await self._reader.chain(chain.stream) or chain for chain in found]

    async def _chain(self, stream: str, query: Fields) -> tuple[str, Html]:
        chains = await self._checked_chains(stream) if len(stream) <= MAX_KEY else []
        if not chains:
            return NOT_FOUND
        (chain,) = chains
        before = query.get("before", "")
        entries = await self._reader.entries(stream, _number(before, chain.last + 1))
        older = str(entries[-1].sequence) if entries and entries[-1].sequence > 1 else ""
        links = pages(audit.path_of(self._paths, stream), "before", before, older)
        return f"Audit: {chain.where or stream}", audit.chain(self._paths, chain, entries, links)

    async def _check(self, fields: Fields) -> str:
        """Check one chain again, or all of them."""
        stream = fields.get("check", "")
        if stream and await self._reader.chain(stream) is None:
            return "there is no such chain"
        self._chains.enqueue(*((stream,) if stream else await self._reader.streams()))
        await self._chains.wait_idle(WAIT_S)
        return ""

    # --- policy, tools ---------------------------------------------------------------------------

    async def _policy(self, query: Fields) -> tuple[str, Html]:
        asked = {"who": OPERATOR, **query}
        explainer = self._context.explainer
        configured = explainer.settings.config.people
        hints = {
            "who": (OPERATOR, *(f"person:{person.name}" for person in configured)),
            "action": (*explainer.tools, *(f"command:{name}" for name in COMMANDS)),
        }
        answer = await self._explain(asked) if "action" in asked else None
        statements = explainer.policy().statements
        return "", policy.policy(self._paths, asked, hints, answer, statements)

    async def _tools(self, _query: Fields) -> tuple[str, Html]:
        explainer, groups = self._context.explainer, self._context.sources.offers.groups
        rows = [
            policy.ToolRow(
                spec=tool.spec,
                group=groups.get(name, name),
                operator=explainer.default_effect(tool, OPERATOR),
                others=explainer.default_effect(tool),
            )
            for name, tool in explainer.tools.items()
        ]
        enabled = {row.group for row in rows}
        disabled = [group for group in ToolsSettings.model_fields if group not in enabled]
        return "", policy.tools(self._paths, rows, disabled)

    async def _explain(self, asked: Fields) -> policy.Answer:
        resources = asked.get("resources", "").splitlines()
        try:
            return await self._context.explainer.explain(
                subject=asked["who"].strip(),
                action=asked["action"].strip(),
                arguments=asked.get("arguments", ""),
                resources=tuple(filter(None, map(str.strip, resources))),
            )
        except (ConfigError, ToolArgumentsInvalid) as error:
            return str(error)


def _number(text: str, default: int) -> int:
    """Return a number from a query; `default` if it is not a plausible one."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < _LONGEST else default


_LONGEST = 16
