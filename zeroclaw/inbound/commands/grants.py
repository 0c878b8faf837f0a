"""`/grants`, `/revoke` and `zeroclaw grants`: list what runs without asking for a time, and end it.

The commit that revokes a grant deletes it, so the gate's next decision asks again, and the last
check of a call that has not started finds it gone. A control item tells the conversation's holder,
because only the holder writes that conversation's audit.
"""

from collections.abc import Mapping

from zeroclaw.conversation.inbox import Revoked
from zeroclaw.envelope import Address, ConversationId, Principal, chosen_name
from zeroclaw.gate import grant as grants
from zeroclaw.gate.grant import GRANTS, Grant
from zeroclaw.gate.wording import MOST_NUMBERS
from zeroclaw.host.answers import Grants, Text
from zeroclaw.inbound.commands.invocation import AT_CONSOLE, Invocation, Reply, at_console
from zeroclaw.inbound.context import InboundContext
from zeroclaw.inbound.conversations import conversation_of
from zeroclaw.json_fields import text_at
from zeroclaw.store import STEP_BYTES, Pace, Rows, Write
from zeroclaw.text import catalogue
from zeroclaw.value import Struct, replace

USAGE = "Use `grants list`, or `grants revoke ID`; the list shows the ids."


class GrantCommands(Struct, eq=False):
    """Lists grants and ends them.

    Whoever may approve a tool's calls sees and ends all grants of it, and so does an operator.
    Everyone sees those of their own conversation, and may end those granted to themselves. In a
    group only that conversation's grants are shown.
    """

    context: InboundContext

    async def listed(self, given: Invocation) -> Reply:
        """Return the current grants that this person may see, one line each."""
        lines: list[str] = []
        language, pace = given.language, Pace()
        for one in await self._held(given.reads):
            if self._sees(one, given):
                await pace.step(STEP_BYTES // 16)  # redacting a line takes as long as reading many
                name = grants.name_of(one)
                line = catalogue.GRANT_HELD_BY.to(
                    language,
                    grant=self.context.redact(grants.describe(one, language)),
                    holder=self.context.redact(one.holder),
                    where=await self._where(one.conversation, given),
                )
                lines.append(f"- `{name}` {line}")
        return Reply(text="\n".join(lines) or catalogue.NOTHING_GRANTED.to(language))

    async def revoke(self, given: Invocation) -> Reply:
        """Return the effect of `/revoke 1 3`.

        Grants of other conversations than the first one's are left for a following plan.
        """
        words, language = _words(given.command.rest), given.language
        if len(words) > MOST_NUMBERS:
            return Reply(text=catalogue.TOO_MANY_NUMBERS.to(language, most=MOST_NUMBERS))
        lists = "zeroclaw grants list" if given.address == AT_CONSOLE else "/grants"
        seen = [one for one in await self._held(given.reads) if self._sees(one, given)]
        ends: dict[str, Grant] = {}
        scope: ConversationId | None = None
        told: list[str] = []
        left: list[str] = []
        for word in words:
            named = [one for one in seen if grants.is_called(one, word)]
            shown = chosen_name(word)
            if len(named) != 1:
                told.append(catalogue.NO_SUCH_GRANT.to(language, name=shown, lists=lists))
                continue
            meant = named[0]
            if not self._may_end(meant, given):
                told.append(catalogue.GRANT_IS_NOT_YOURS.to(language, name=shown))
            elif scope not in (None, meant.conversation):
                left.append(word)
            else:
                scope = meant.conversation
                ends[meant.id] = meant
                told.append(catalogue.GRANT_REVOKED.to(language, name=shown, tool=meant.tool))
        endings = (
            ending(self.context, one, given.address, given.principal) for one in ends.values()
        )
        return Reply(
            text="\n".join(told) or catalogue.SAY_WHICH_GRANT.to(language),
            writes=tuple(write for writes in endings for write in writes),
            scope=scope,
            wake=(scope,) if scope else (),
            remaining_command=replace(given.command, rest=" ".join(left)) if left else None,
        )

    async def console(self, asked: Mapping[str, object]) -> Text:
        """Do what `zeroclaw grants` asks for over the control socket; see `at_console`."""
        word, _, rest = text_at(asked, "words").strip().partition(" ")
        if word == "revoke" and rest.strip():
            return await at_console(self.context, self.revoke, "revoke", {"words": rest})
        if word not in ("", "list") or rest.strip():
            return Text(text=USAGE)
        every = tuple([self._as_json(one) for one in await self._held(self.context.store)])
        told = await at_console(self.context, self.listed, "grants", {})
        return Grants(text=told.text, grants=every)

    async def _held(self, rows: Rows) -> list[Grant]:
        now = self.context.clock.now()
        return [one async for one in GRANTS.readable(rows) if now < one.until]

    async def _where(self, conversation: ConversationId, given: Invocation) -> str:
        language = given.language
        if conversation == given.here:
            return catalogue.GRANT_HERE.to(language)
        found = await conversation_of(self.context.store, conversation)
        if found is None:
            return catalogue.GRANT_ELSEWHERE.to(language, conversation=conversation)
        return catalogue.GRANT_IN_CHAT.to(language, chat=found.address.in_words())

    def _as_json(self, one: Grant) -> dict[str, object]:
        return {
            "id": one.id,
            "name": grants.name_of(one),
            "tool": one.tool,
            "resources": [self.context.redact(resource) for resource in one.resources],
            "arguments_hash": one.arguments_hash or "",
            "conversation": one.conversation,
            "holder": one.holder,
            "granted_by": one.granted_by,
            "until": one.until.isoformat(),
        }

    def _sees(self, one: Grant, given: Invocation) -> bool:
        # In a group others read along.
        return one.conversation == given.here or (
            given.address.direct and self._may_end(one, given)
        )

    def _may_end(self, one: Grant, given: Invocation) -> bool:
        may, by, direct = self.context.may, given.principal, given.address.direct
        return may(by, "command:revoke", direct=direct, own=one.holder == by.id) or may(
            by, f"approve:{one.tool}", direct=direct, own=None
        )


def ending(
    context: InboundContext, one: Grant, address: Address, by: Principal
) -> tuple[Write, ...]:
    """Return the writes that revoke a grant and let its conversation's holder audit it.

    If two people revoke it, one succeeds: the other's plan is made again without it.
    """
    revoked = Revoked(grant=one.id, tool=one.tool)
    control = context.control(revoked, one.conversation, address, by, None)
    return (GRANTS.delete(one.id), control)


def _words(text: str) -> tuple[str, ...]:
    """Return the names in a text, `1 3`, `1, 3`, `#1` or an id, each once."""
    words = (word.strip("#`") for word in text.replace(",", " ").split(maxsplit=MOST_NUMBERS))
    return tuple(dict.fromkeys(word for word in words if word))
