"""Builds the page of each section from what was read, and performs its forms.

Forms use the same paths as everybody else: an answer to an approval request is an admitted
`Pressed`, as from the web chat, whose operator also reads this page; grants and people are changed
through the commands `zeroclaw grants` and `zeroclaw pair`. The result of a form is one line for the
operator who sent it.
"""

from collections.abc import Awaitable, Callable, Mapping
from math import inf
from typing import get_args

from zeroclaw.config.model import ToolsSettings
from zeroclaw.console import approvals, audit, conversations, frame, grants, people, policy, usage
from zeroclaw.console.chain_checks import GROWN, ChainChecker
from zeroclaw.console.context import ConsoleContext
from zeroclaw.console.markup import Html, empty, joined, pages
from zeroclaw.console.reading import A_PAGE, ConsoleReader
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

PATIENCE_S = 0.3
"""How long a page waits for a chain check before it shows the progress instead."""
MOST_KEY = 100
MOST_REASON = 2_000
CHOICES: Mapping[str, Choice] = {one: one for one in get_args(Choice)}
DOINGS = frozenset({"approve", "deny", "revoke"})
UNREADABLE = "this form is not one of this page's; reload it and try again"
Fields = Mapping[str, str]
_WHY = "`/forget` removes what a person said, and `[retention]` what has become old."
NOT_FOUND = "Not found", empty("Nothing is here.", _WHY)


class Sections:
    """The sections of the console; the daemon has one.

    Attributes:
        acts: Performs the form of a section; raises `ZeroclawError` if the result can't be stored.
    """

    def __init__(self, context: ConsoleContext, chains: ChainChecker) -> None:
        """Store the dependencies."""
        self._context = context
        self._place = context.place
        self._reader = ConsoleReader(context, chains)
        self._chains = chains
        self._made: dict[str, Callable[[Fields], Awaitable[tuple[str, Html]]]] = {
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

    async def page(self, section: str, asked: Fields, *, told: str) -> tuple[bytes, int]:
        """Return a section's page and its status; `told` is the result of the last form.

        Raises:
            StoreUnusable: It can't be read.
        """
        made = await self._made[section](asked) if section in self._made else NOT_FOUND
        standing = await self._reader.page_state(told)
        page = frame.page(self._place, section, standing, made[1], title=made[0])
        return page, 404 if made is NOT_FOUND else 200

    # --- approvals, grants, people ---------------------------------------------------------------

    async def _approvals(self, _asked: Fields) -> tuple[str, Html]:
        waiting, ended = await self._reader.waiting(), await self._reader.ended()
        return "", approvals.approvals(self._place, waiting, ended)

    async def _answer(self, fields: Fields) -> str:
        choice = CHOICES.get(fields.get("choice", ""))
        approval = fields.get("approval", "")
        if choice is None or not approval:
            return UNREADABLE
        reason = fields.get("reason", "").strip()[:MOST_REASON]
        chat = self._context.chat
        envelope = Envelope(
            address=chat,
            sender=Sender(id=chat.chat, verified=True, display=OPERATOR),
            dedup=(f"console/{self._context.inbound.ids.token()}",),
            body=Pressed(approval=ApprovalId(approval), choice=choice, reason=reason),
        )
        admission = await self._context.admit(envelope)
        return admission.text if isinstance(admission, Answered) else "nobody asks this any more"

    async def _grants(self, _asked: Fields) -> tuple[str, Html]:
        return "", grants.grants(self._place, await self._reader.grants())

    async def _revoke(self, fields: Fields) -> str:
        match fields.get("revoke", "").split():
            case [grant]:
                return (await self._context.grants({"words": f"revoke {grant}"})).text
            case _:
                return UNREADABLE

    async def _people(self, _asked: Fields) -> tuple[str, Html]:
        return "", people.people(self._place, await self._reader.people())

    async def _decide(self, fields: Fields) -> str:
        do, who = fields.get("do", ""), fields.get("who", "").strip()
        if do not in DOINGS or not who:
            return UNREADABLE
        return (await self._context.pair({"words": f"{do} {who}"})).text

    # --- conversations, usage --------------------------------------------------------------------

    async def _conversations(self, asked: Fields) -> tuple[str, Html]:
        if "of" in asked:
            return await self._conversation(ConversationId(asked["of"]), asked)
        after = asked.get("after", "")
        told, more = await self._reader.conversations(after)
        links = pages(self._place.to("conversations"), "after", after, more)
        main = conversations.conversations(self._place, told, links)
        if after:
            return "", main
        working = conversations.at_work(self._place, *await self._reader.at_work())
        return "", joined((working, main))

    async def _conversation(self, here: ConversationId, asked: Fields) -> tuple[str, Html]:
        told = await self._reader.summary(here) if len(here) <= MOST_KEY else None
        if told is None:
            return NOT_FOUND
        if asked.get("window"):
            filled = await self._reader.window_estimate(here)
            return told.address.in_words(), conversations.filling(self._place, told, filled)
        before = asked.get("before", "")
        part = await self._reader.transcript(here, before)
        links = pages(self._place.to("conversations", here), "before", before, part.before)
        main = conversations.conversation(self._place, told, part.items, links)
        return told.address.in_words(), main

    async def _usage(self, _asked: Fields) -> tuple[str, Html]:
        first, last, used = await self._reader.usage()
        return "", usage.usage(used, first, last)

    # --- audit -----------------------------------------------------------------------------------

    async def _audit(self, asked: Fields) -> tuple[str, Html]:
        if asked.get("of"):
            return await self._chain(asked["of"], asked)
        before = asked.get("before", "")
        names = await self._reader.streams(last=A_PAGE + 1, before=before)
        here = names[:A_PAGE]
        older = here[-1] if len(names) > A_PAGE else ""
        links = pages(self._place.to("audit"), "before", before, older)
        # Long chains are not checked by viewing the list; they wait for a form.
        shown = await self._seen(*here, most_entries=GROWN)
        return "", audit.chains(self._place, shown, links)

    async def _seen(self, *streams: str, most_entries: float = inf) -> list[audit.Chain]:
        """Return the chains that exist; first check those that are due, within the waiting time."""
        found = [one for name in streams if (one := await self._reader.chain(name)) is not None]
        wanted = [
            one.stream
            for one in found
            if one.last <= most_entries and self._chains.wants(one.stream, one.last)
        ]
        if not wanted:
            return found
        self._chains.ask(*wanted)
        await self._chains.rested(PATIENCE_S)
        return [await self._reader.chain(one.stream) or one for one in found]

    async def _chain(self, stream: str, asked: Fields) -> tuple[str, Html]:
        found = await self._seen(stream) if len(stream) <= MOST_KEY else []
        if not found:
            return NOT_FOUND
        (one,) = found
        before = asked.get("before", "")
        entries = await self._reader.entries(stream, _number(before, one.last + 1))
        older = str(entries[-1].sequence) if entries and entries[-1].sequence > 1 else ""
        links = pages(audit.path_of(self._place, stream), "before", before, older)
        return f"Audit: {one.where or stream}", audit.chain(self._place, one, entries, links)

    async def _check(self, fields: Fields) -> str:
        """Check one chain again, or all of them."""
        stream = fields.get("check", "")
        if stream and await self._reader.chain(stream) is None:
            return "there is no such chain"
        self._chains.ask(*((stream,) if stream else await self._reader.streams()))
        await self._chains.rested(PATIENCE_S)
        return ""

    # --- policy, tools ---------------------------------------------------------------------------

    async def _policy(self, asked: Fields) -> tuple[str, Html]:
        typed = policy.Question(
            who=asked.get("who", OPERATOR),
            action=asked.get("action", ""),
            arguments=asked.get("arguments", ""),
            resources=asked.get("resources", ""),
        )
        explainer = self._context.explainer
        known = policy.Suggestions(
            people=(OPERATOR, *(f"person:{one.name}" for one in explainer.settings.config.people)),
            actions=(*explainer.tools, *(f"command:{name}" for name in COMMANDS)),
        )
        answer = await self._explain(typed) if "action" in asked else None
        statements = explainer.policy().statements
        return "", policy.policy(self._place, typed, known, answer, statements)

    async def _tools(self, _asked: Fields) -> tuple[str, Html]:
        explainer, groups = self._context.explainer, self._context.sources.offers.groups
        found = [
            policy.ToolRow(
                spec=tool.spec,
                group=groups.get(name, name),
                operator=explainer.standing(tool, OPERATOR),
                others=explainer.standing(tool),
            )
            for name, tool in explainer.tools.items()
        ]
        brought = {one.group for one in found}
        off = [one for one in ToolsSettings.model_fields if one not in brought]
        return "", policy.tools(self._place, found, off)

    async def _explain(self, typed: policy.Question) -> policy.Answer:
        try:
            return await self._context.explainer.explain(
                who=typed.who.strip(),
                action=typed.action.strip(),
                arguments=typed.arguments,
                resources=tuple(filter(None, map(str.strip, typed.resources.splitlines()))),
            )
        except (ConfigError, ToolArgumentsInvalid) as error:
            return str(error)


def _number(text: str, otherwise: int) -> int:
    """Return a number from a query; `otherwise` if it is not a plausible one."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < _LONGEST else otherwise


_LONGEST = 16
