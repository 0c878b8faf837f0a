"""Makes each section's page of what is read for it and what was asked."""

from collections.abc import Awaitable, Callable, Sequence

from zeroclaw.config.model import ToolsSettings
from zeroclaw.console import (
    approvals,
    audit,
    conversations,
    frame,
    grants,
    people,
    policy,
    usage,
)
from zeroclaw.console.actions import Fields
from zeroclaw.console.chain_checks import GROWN, ChainChecker, within
from zeroclaw.console.context import ConsoleContext
from zeroclaw.console.markup import Html, joined
from zeroclaw.console.reading import A_PAGE, ConsoleReader
from zeroclaw.envelope import ConversationId
from zeroclaw.errors import ConfigError, ToolArgumentsInvalid
from zeroclaw.inbound.commands.registry import COMMANDS
from zeroclaw.inbound.identity import OPERATOR

PATIENCE_S = 0.3
"""How long a page waits for its chain to be checked before it shows how far that is."""
MOST_KEY = 100


class NotThere(Exception):
    """Raised for a section, a conversation or a chain that does not exist."""


class Sections:
    """The sections of the console; one for the whole daemon."""

    def __init__(self, context: ConsoleContext, chains: ChainChecker) -> None:
        """Hold what they read."""
        self._place = context.place
        self._look = ConsoleReader(context, chains)
        self._chains = chains
        self._explainer, self._offers = context.explainer, context.sources.offers
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

    async def page(self, section: str, asked: Fields, *, told: str) -> bytes:
        """Return a section's page; `told` is what the last form came to.

        Raises:
            NotThere: There is no such section, or not what was asked of it.
            StoreUnusable: It can't be read.
        """
        if section not in self._made:
            raise NotThere
        title, main = await self._made[section](asked)
        standing = await self._look.standing(told)
        return frame.page(self._place, section, standing, main, title=title)

    async def check(self, fields: Fields) -> str:
        """Look through one chain anew, or through all."""
        stream = fields.get("check", "")
        if stream and await self._look.chain(stream) is None:
            return "there is no such chain"
        self._chains.ask(*((stream,) if stream else await self._look.streams()))
        await within(PATIENCE_S, self._chains)
        return ""

    # --- what waits, what holds, who is in -------------------------------------------------------

    async def _approvals(self, _asked: Fields) -> tuple[str, Html]:
        waiting, ended = await self._look.waiting(), await self._look.ended()
        return "", approvals.approvals(self._place, waiting, ended)

    async def _grants(self, _asked: Fields) -> tuple[str, Html]:
        return "", grants.grants(self._place, await self._look.grants())

    async def _people(self, _asked: Fields) -> tuple[str, Html]:
        return "", people.people(self._place, await self._look.faces())

    # --- what was said ---------------------------------------------------------------------------

    async def _conversations(self, asked: Fields) -> tuple[str, Html]:
        if "of" in asked:
            return await self._conversation(ConversationId(asked["of"]), asked)
        after = asked.get("after", "")
        told, more = await self._look.conversations(after)
        older = f"{self._place.to('conversations')}?after={more}" if more else ""
        main = conversations.conversations(self._place, told, older=older, first=not after)
        if after:
            return "", main
        working = conversations.at_work(self._place, await self._look.at_work())
        return "", joined((working, main))

    async def _conversation(self, here: ConversationId, asked: Fields) -> tuple[str, Html]:
        told = await self._look.told(here) if len(here) <= MOST_KEY else None
        if told is None:
            raise NotThere
        if asked.get("window"):
            main = conversations.filling(self._place, told, await self._look.filled(here))
            return told.address.in_words(), main
        before = asked.get("before", "")
        part = await self._look.said(here, before)
        path = f"{self._place.to('conversations', here)}?before={part.before}"
        older = path if part.before else ""
        main = conversations.conversation(
            self._place, told, part.items, older=older, first=not before
        )
        return told.address.in_words(), main

    async def _usage(self, _asked: Fields) -> tuple[str, Html]:
        first, last, used = await self._look.usage()
        return "", usage.usage(used, first, last)

    # --- what was done ---------------------------------------------------------------------------

    async def _audit(self, asked: Fields) -> tuple[str, Html]:
        if asked.get("of"):
            return await self._chain(asked["of"], asked)
        before = asked.get("before", "")
        names = await self._look.streams(last=A_PAGE + 1, before=before)
        here = names[:A_PAGE]
        await self._checked([await self._look.chain(one) for one in here])
        found = [await self._look.chain(one) for one in here]
        older = f"{self._place.to('audit')}?before={here[-1]}" if len(names) > A_PAGE else ""
        shown = [one for one in found if one is not None]
        main = audit.chains(self._place, shown, older=older, first=not before)
        return "", main

    async def _checked(self, found: Sequence[audit.Chain | None]) -> None:
        """Have those looked through that take no time to speak of."""
        short = [one for one in found if one is not None and one.last <= GROWN]
        wanted = [one.stream for one in short if self._chains.wants(one.stream, one.last)]
        if wanted:
            self._chains.ask(*wanted)
            await within(PATIENCE_S, self._chains)

    async def _chain(self, stream: str, asked: Fields) -> tuple[str, Html]:
        one = await self._look.chain(stream) if len(stream) <= MOST_KEY else None
        if one is None:
            raise NotThere
        if self._chains.wants(stream, one.last):
            self._chains.ask(stream)
            await within(PATIENCE_S, self._chains)
            one = await self._look.chain(stream) or one
        before = _number(asked.get("before", ""), one.last + 1)
        entries = await self._look.entries(stream, before)
        oldest = entries[-1].sequence if entries else 1
        path = f"{self._place.to('audit')}?of={stream}&before={oldest}"
        main = audit.chain(
            self._place,
            one,
            entries,
            older=path if oldest > 1 else "",
            first="before" not in asked,
        )
        return f"Audit: {one.where or stream}", main

    # --- what may be done ------------------------------------------------------------------------

    async def _policy(self, asked: Fields) -> tuple[str, Html]:
        typed = policy.Question(
            who=asked.get("who", OPERATOR),
            action=asked.get("action", ""),
            arguments=asked.get("arguments", ""),
            resources=asked.get("resources", ""),
        )
        config, tools = self._explainer.settings.config, self._explainer.tools
        known = policy.Suggestions(
            people=(OPERATOR, *(f"person:{one.name}" for one in config.people)),
            actions=(*tools, *(f"command:{name}" for name in COMMANDS)),
        )
        answer = await self._explain(typed) if "action" in asked else None
        statements = self._explainer.policy().statements
        return "", policy.policy(self._place, typed, known, answer, statements)

    async def _tools(self, _asked: Fields) -> tuple[str, Html]:
        groups, every = self._offers.groups, self._explainer.tools
        found = [
            policy.ToolRow(
                spec=tool.spec,
                group=groups.get(name, name),
                operator=self._explainer.standing(tool, OPERATOR),
                others=self._explainer.standing(tool),
            )
            for name, tool in every.items()
        ]
        brought = {one.group for one in found}
        off = [one for one in ToolsSettings.model_fields if one not in brought]
        return "", policy.tools(self._place, found, off)

    async def _explain(self, typed: policy.Question) -> policy.Answer:
        given = (one.strip() for one in typed.resources.splitlines())
        try:
            return await self._explainer.explain(
                who=typed.who.strip(),
                action=typed.action.strip(),
                arguments=typed.arguments,
                resources=tuple(one for one in given if one),
            )
        except (ConfigError, ToolArgumentsInvalid) as error:
            return policy.BadQuestion(why=str(error))


def _number(text: str, otherwise: int) -> int:
    """Return a number of an address; whatever else stands there is as if nothing did."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < _LONGEST else otherwise


_LONGEST = 16
