"""`/pair` and `zeroclaw pair`: pairing requests, and the people admitted or revoked.

    pair                        lists them
    pair approve CODE|PERSON    admits a person who asked, or takes back a revocation
    pair deny CODE|PERSON       denies the request of a person
    pair revoke PERSON          revokes a person, at once

A PERSON is `ann` or `person:ann` of the configuration, or `<channel>:<sender id>`.
"""

from collections.abc import Mapping
from datetime import UTC, datetime

from zeroclaw.card_words import by_whom
from zeroclaw.envelope import chosen_name, labelled
from zeroclaw.host.answers import Text
from zeroclaw.inbound import pairing
from zeroclaw.inbound.approvals import Approvals, strangers_of
from zeroclaw.inbound.commands.invocation import Invocation, Reply, at_console
from zeroclaw.inbound.context import InboundContext
from zeroclaw.inbound.identity import PEOPLE, Person, person_put
from zeroclaw.inbound.pairing import PairingRequest
from zeroclaw.store import Rows
from zeroclaw.text import catalogue
from zeroclaw.text.language import Language
from zeroclaw.value import Struct, replace


class PairCommand(Struct, eq=False):
    """Plans `pair`; the caller has checked that the person may use it."""

    context: InboundContext
    requests: Approvals

    async def plan(self, invocation: Invocation) -> Reply:
        """Return the effect of `pair`; it lists people only in private chats."""
        language = invocation.language
        verb, _, rest = invocation.command.rest.strip().partition(" ")
        target = rest.strip()
        match verb.lower():
            case "" | "list" if not invocation.address.direct:
                return Reply(text=catalogue.PAIR_LIST_IN_PRIVATE.to(language))
            case "" | "list":
                now = self.context.clock.now()
                return Reply(text=await listed(self.context.store, now, language))
            case "approve" | "deny" as verdict if target:
                return await self._answer(invocation, target, yes=verdict == "approve")
            case "revoke" if target:
                return await self._revoke(invocation, target)
            case _:
                return Reply(text=catalogue.PAIR_USAGE.to(language))

    async def console(self, request: Mapping[str, object]) -> Text:
        """Run `zeroclaw pair`, which comes over the control socket; see `at_console`."""
        return await at_console(self.context, self.plan, "pair", request)

    # --- actions -------------------------------------------------------------------------------

    async def _answer(self, invocation: Invocation, target: str, *, yes: bool) -> Reply:
        if (request := await self._find(invocation.reads, target)) is not None:
            answer = "once" if yes else "deny"
            return await self.requests.answer_about_stranger(invocation, request, answer)
        displayed, language = chosen_name(target), invocation.language
        if pairing.read_code(target):
            return Reply(text=catalogue.PAIR_NO_SUCH_CODE.to(language, code=displayed))
        if yes:
            return await self._reinstate(invocation, target)
        return Reply(text=catalogue.PAIR_NO_SUCH_REQUEST.to(language, name=displayed))

    async def _find(self, rows: Rows, target: str) -> PairingRequest | None:
        """Return the request that a code or an id names; the newest of several."""
        code = pairing.read_code(target)

        def is_match(request: PairingRequest) -> bool:
            if code and pairing.is_code(code, salt=request.salt, code_hash=request.code_hash):
                return True
            return request.identity == target and request.is_open

        return next(filter(is_match, reversed(await strangers_of(rows))), None)

    async def _revoke(self, invocation: Invocation, target: str) -> Reply:
        name, language = self.context.people.id_of(target), invocation.language
        if not name:
            text = catalogue.PAIR_NO_SUCH_PERSON.to(
                language, name=chosen_name(target), usage=catalogue.PAIR_USAGE
            )
            return Reply(text=text)
        if name == invocation.principal.id:
            return Reply(text=catalogue.PAIR_NOT_YOURSELF.to(language))
        before = await PEOPLE.get(invocation.reads, name)
        if before is not None and before.state == "revoked":
            text = catalogue.PAIR_ALREADY_REVOKED.to(language, name=name, who=by_whom(before.by))
            return Reply(text=text)
        revoked = Person(
            id=name,
            display=before.display if before else "",
            state="revoked",
            by=pairing.by_of(invocation.principal),
            at=self.context.clock.now(),
            ids=self.context.people.ids_of(name),
        )
        text = catalogue.PAIR_REVOKED.to(language, name=name)
        # Their open requests end too, so that no older card admits them again.
        replies = [
            await self.requests.answer_about_stranger(invocation, request, "deny")
            for request in await strangers_of(invocation.reads)
            if self.context.people.id_of(request.identity) == name
        ]
        answered = (write for reply in replies for write in reply.writes)
        return Reply(text=text, writes=(person_put(revoked), *answered))

    async def _reinstate(self, invocation: Invocation, target: str) -> Reply:
        # The configuration may have named, renamed or removed them since.
        name = self.context.people.revoked_as(target) or self.context.people.id_of(target)
        before, language = await PEOPLE.get(invocation.reads, name), invocation.language
        if before is None or before.state != "revoked":
            text = catalogue.PAIR_NOTHING_TO_APPROVE.to(language, name=chosen_name(target))
            return Reply(text=text)
        text = catalogue.PAIR_READMITTED.to(language, name=name)
        if self.context.people.is_configured(name) or name.startswith("person:"):
            return Reply(text=text, writes=(PEOPLE.delete(name),))
        by, at = pairing.by_of(invocation.principal), self.context.clock.now()
        again = replace(before, state="admitted", by=by, at=at, roles=())
        return Reply(text=text, writes=(person_put(again),))


async def listed(rows: Rows, now: datetime, language: Language) -> str:
    """List the open pairing requests, and the decisions about people."""
    waiting = [
        f"- {pairing.list_line(request, language)}"
        for request in await strangers_of(rows)
        if pairing.is_open(request, now)
    ]
    decided = [f"- {_line(person, language)}" async for person in PEOPLE.all(rows)]
    return "\n".join((*waiting, *decided)) or catalogue.PAIR_LIST_IS_EMPTY.to(language)


def _line(person: Person, language: Language) -> str:
    id_ = f"`{pairing.exact(person.id)}`"
    is_in = person.state == "admitted"
    return (catalogue.PAIR_ADMITTED if is_in else catalogue.PAIR_ENTRY_REVOKED).to(
        language,
        name=labelled(id_, person.display),
        roles=f", {', '.join(person.roles)}" if person.roles else "",
        who=by_whom(person.by),
        at=f"{person.at.astimezone(UTC):%Y-%m-%d %H:%M} UTC",
    )
