"""`/grants`, `/revoke` and `zeroclaw grants`: list and revoke temporary grants.

The commit that revokes a grant deletes it, so the gate's next decision asks again, and the last
check of a call that has not started no longer finds it. A control item goes to the conversation's
holder, because only the holder writes that conversation's audit.
"""

from collections.abc import Mapping

from zeroclaw.conversation.inbox import Revoked
from zeroclaw.envelope import Address, ConversationId, Principal, chosen_name
from zeroclaw.gate import grant as grants
from zeroclaw.gate.grant import GRANTS, Grant
from zeroclaw.gate.wording import MAX_NUMBERS
from zeroclaw.host.answers import Grants, Text
from zeroclaw.inbound.commands.invocation import AT_CONSOLE, Invocation, Reply, at_console
from zeroclaw.inbound.context import InboundContext
from zeroclaw.inbound.conversations import CONVERSATIONS
from zeroclaw.json_fields import text_at
from zeroclaw.store import STEP_BYTES, Pace, Rows, Write
from zeroclaw.text import catalogue
from zeroclaw.value import Struct, replace

USAGE = "Use `grants list`, or `grants revoke NUMBER`; the list shows the numbers."


class GrantCommands(Struct, eq=False):
    """Lists grants and revokes them.

    A tool's approvers and the operators see and may revoke all its grants. Everyone sees those of
    their own conversation, and may revoke those granted to themselves. In a group only that
    conversation's grants are shown.
    """

    context: InboundContext

    async def listed(self, invocation: Invocation) -> Reply:
        """Return the current grants that this person may see, one line each."""
        lines: list[str] = []
        language, pace = invocation.language, Pace()
        for grant in await self._current(invocation.reads):
            if self._is_visible(grant, invocation):
                await pace.step(STEP_BYTES // 16)  # redacting a line takes as long as reading many
                name = grants.name_of(grant)
                line = catalogue.GRANT_HELD_BY.to(
                    language,
                    grant=self.context.redact(grants.describe(grant, language)),
                    holder=self.context.redact(grant.holder),
                    where=await self._place(grant.conversation, invocation),
                )
                lines.append(f"- `{name}` {line}")
        return Reply(text="\n".join(lines) or catalogue.NOTHING_GRANTED.to(language))

    async def revoke(self, invocation: Invocation) -> Reply:
        """Return the effect of `/revoke 1 3`.

        Grants of other conversations than the first one's remain for the next plan.
        """
        names, language = _names(invocation.command.rest), invocation.language
        if len(names) > MAX_NUMBERS:
            return Reply(text=catalogue.TOO_MANY_NUMBERS.to(language, most=MAX_NUMBERS))
        lists = "zeroclaw grants list" if invocation.address == AT_CONSOLE else "/grants"
        current = await self._current(invocation.reads)
        visible = [grant for grant in current if self._is_visible(grant, invocation)]
        revoked: dict[str, Grant] = {}
        scope: ConversationId | None = None
        lines: list[str] = []
        rest: list[str] = []
        for name in names:
            matches = [grant for grant in visible if grants.is_called(grant, name)]
            displayed = chosen_name(name)
            if len(matches) != 1:
                lines.append(catalogue.NO_SUCH_GRANT.to(language, name=displayed, lists=lists))
                continue
            grant = matches[0]
            if not self._may_end(grant, invocation):
                lines.append(catalogue.GRANT_IS_NOT_YOURS.to(language, name=displayed))
            elif scope not in (None, grant.conversation):
                rest.append(name)
            else:
                scope = grant.conversation
                revoked[grant.id] = grant
                lines.append(catalogue.GRANT_REVOKED.to(language, name=displayed, tool=grant.tool))
        writes_of_each = (
            revoke_writes(self.context, grant, invocation.address, invocation.principal)
            for grant in revoked.values()
        )
        return Reply(
            text="\n".join(lines) or catalogue.SAY_WHICH_GRANT.to(language),
            writes=tuple(write for writes in writes_of_each for write in writes),
            scope=scope,
            wake=(scope,) if scope else (),
            remaining_command=replace(invocation.command, rest=" ".join(rest)) if rest else None,
        )

    async def console(self, request: Mapping[str, object]) -> Text:
        """Run `zeroclaw grants`, which comes over the control socket; see `at_console`."""
        action, _, names = text_at(request, "words").strip().partition(" ")
        if action == "revoke" and names.strip():
            return await at_console(self.context, self.revoke, "revoke", {"words": names})
        if action not in ("", "list") or names.strip():
            return Text(text=USAGE)
        listed = tuple([self._as_json(grant) for grant in await self._current(self.context.store)])
        reply = await at_console(self.context, self.listed, "grants", {})
        return Grants(text=reply.text, grants=listed)

    async def _current(self, rows: Rows) -> list[Grant]:
        now = self.context.clock.now()
        return [grant async for grant in GRANTS.readable(rows) if now < grant.until]

    async def _place(self, conversation: ConversationId, invocation: Invocation) -> str:
        language = invocation.language
        if conversation == invocation.conversation:
            return catalogue.GRANT_HERE.to(language)
        found = await CONVERSATIONS.find(self.context.store, conversation)
        if found is None:
            return catalogue.GRANT_ELSEWHERE.to(language, conversation=conversation)
        return catalogue.GRANT_IN_CHAT.to(language, chat=found.address.in_words())

    def _as_json(self, grant: Grant) -> dict[str, object]:
        return {
            "id": grant.id,
            "name": grants.name_of(grant),
            "tool": grant.tool,
            "resources": [self.context.redact(resource) for resource in grant.resources],
            "arguments_hash": grant.arguments_hash or "",
            "conversation": grant.conversation,
            "holder": grant.holder,
            "granted_by": grant.granted_by,
            "until": grant.until.isoformat(),
        }

    def _is_visible(self, grant: Grant, invocation: Invocation) -> bool:
        # In a group others read along.
        return grant.conversation == invocation.conversation or (
            invocation.address.direct and self._may_end(grant, invocation)
        )

    def _may_end(self, grant: Grant, invocation: Invocation) -> bool:
        may, by, direct = self.context.may, invocation.principal, invocation.address.direct
        return may(by, "command:revoke", direct=direct, own=grant.holder == by.id) or may(
            by, f"approve:{grant.tool}", direct=direct, own=None
        )


def revoke_writes(
    context: InboundContext, grant: Grant, address: Address, by: Principal
) -> tuple[Write, ...]:
    """Return the writes that revoke a grant and let its conversation's holder audit it.

    If two people revoke it, one succeeds: the other's plan is made again without it.
    """
    revoked = Revoked(grant=grant.id, tool=grant.tool)
    control = context.control(revoked, grant.conversation, address, by)
    return (GRANTS.delete(grant.id), control)


def _names(text: str) -> tuple[str, ...]:
    """Return the names in a text, `1 3`, `1, 3`, `#1` or an id, each once."""
    names = (name.strip("#`") for name in text.replace(",", " ").split(maxsplit=MAX_NUMBERS))
    return tuple(dict.fromkeys(name for name in names if name))
