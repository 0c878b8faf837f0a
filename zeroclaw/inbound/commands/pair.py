"""`/pair` and `zeroclaw pair`: who waits, who is in, and who is revoked.

    pair                        lists
    pair approve CODE|PERSON    lets in a person who waits, or takes back a revocation
    pair deny CODE|PERSON       refuses a person who waits
    pair revoke PERSON          revokes a person, at once

A PERSON is `ann` or `person:ann` of the configuration, or `<channel>:<sender id>`.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Literal, get_args

from zeroclaw.card_words import by_whom
from zeroclaw.envelope import chosen_name, labelled
from zeroclaw.host.answers import Text
from zeroclaw.inbound import pairing
from zeroclaw.inbound.approvals import Approvals, strangers_of
from zeroclaw.inbound.commands.invocation import Invocation, Reply, at_console
from zeroclaw.inbound.context import InboundContext
from zeroclaw.inbound.identity import PEOPLE, Known, known_put
from zeroclaw.inbound.pairing import Stranger
from zeroclaw.store import Rows
from zeroclaw.text import catalogue
from zeroclaw.text.language import Language
from zeroclaw.value import Struct, replace

Do = Literal["list", "approve", "deny", "revoke"]
DOINGS: tuple[Do, ...] = get_args(Do)


class PairCommand(Struct, eq=False):
    """Plans `pair`; the caller has checked that it may be used."""

    context: InboundContext
    requests: Approvals

    async def plan(self, given: Invocation) -> Reply:
        """Return the effect of the words after `pair`; people are listed only in private chats."""
        language = given.language
        word, _, rest = given.command.rest.strip().partition(" ")
        do = next((one for one in DOINGS if one == (word.lower() or "list")), None)
        what = rest.strip()
        match do:
            case "list" if not given.address.direct:
                return Reply(text=catalogue.PAIR_LIST_IN_PRIVATE.to(language))
            case "list":
                now = self.context.clock.now()
                return Reply(text=await listed(self.context.store, now, language))
            case "approve" | "deny" if what:
                return await self._answer(given, what, yes=do == "approve")
            case "revoke" if what:
                return await self._revoke(given, what)
            case _:
                return Reply(text=catalogue.PAIR_USAGE.to(language))

    async def console(self, asked: Mapping[str, object]) -> Text:
        """Do what `zeroclaw pair` asks for over the control socket; see `at_console`."""
        return await at_console(self.context, self.plan, "pair", asked)

    # --- actions -------------------------------------------------------------------------------

    async def _answer(self, given: Invocation, what: str, *, yes: bool) -> Reply:
        if (meant := await self._meant(given.reads, what)) is not None:
            answer = "once" if yes else "deny"
            return await self.requests.answer_about_stranger(given, meant, answer)
        shown, language = chosen_name(what), given.language
        if pairing.read_code(what):
            return Reply(text=catalogue.PAIR_NO_SUCH_CODE.to(language, code=shown))
        if yes:
            return await self._take_back(given, what)
        return Reply(text=catalogue.PAIR_NOBODY_WAITS_SO.to(language, name=shown))

    async def _meant(self, rows: Rows, what: str) -> Stranger | None:
        """Return the question that a code or an id names; the newest open one of several."""
        code = pairing.read_code(what)

        def is_meant(one: Stranger) -> bool:
            if code and pairing.is_code(code, salt=one.salt, code_hash=one.code_hash):
                return True
            return one.identity == what and one.is_open

        return next(filter(is_meant, reversed(await strangers_of(rows))), None)

    async def _revoke(self, given: Invocation, what: str) -> Reply:
        name, language = self.context.people.named(what), given.language
        if not name:
            text = catalogue.PAIR_NOBODY_IS_CALLED_SO.to(
                language, name=chosen_name(what), usage=catalogue.PAIR_USAGE
            )
            return Reply(text=text)
        if name == given.principal.id:
            return Reply(text=catalogue.PAIR_NOT_YOURSELF.to(language))
        before = await PEOPLE.get(given.reads, name)
        if before is not None and before.state == "revoked":
            text = catalogue.PAIR_ALREADY_REVOKED.to(language, name=name, who=by_whom(before.by))
            return Reply(text=text)
        known = Known(
            id=name,
            display=before.display if before else "",
            state="revoked",
            by=pairing.by_of(given.principal),
            at=self.context.clock.now(),
            ids=self.context.people.ids_of(name),
        )
        text = catalogue.PAIR_REVOKED.to(language, name=name)
        # Open questions about them end too, so that no older card lets them in again.
        ended = [
            await self.requests.answer_about_stranger(given, one, "deny")
            for one in await strangers_of(given.reads)
            if self.context.people.named(one.identity) == name
        ]
        answered = (write for one in ended for write in one.writes)
        return Reply(text=text, writes=(known_put(known), *answered))

    async def _take_back(self, given: Invocation, what: str) -> Reply:
        # The configuration may have named, renamed or removed them since.
        name = self.context.people.revoked_as(what) or self.context.people.named(what)
        before, language = await PEOPLE.get(given.reads, name), given.language
        if before is None or before.state != "revoked":
            text = catalogue.PAIR_NOTHING_TO_APPROVE.to(language, name=chosen_name(what))
            return Reply(text=text)
        text = catalogue.PAIR_LET_IN_AGAIN.to(language, name=name)
        if self.context.people.is_configured(name) or name.startswith("person:"):
            return Reply(text=text, writes=(PEOPLE.delete(name),))
        by, at = pairing.by_of(given.principal), self.context.clock.now()
        again = replace(before, state="admitted", by=by, at=at, roles=())
        return Reply(text=text, writes=(known_put(again),))


async def listed(rows: Rows, now: datetime, language: Language) -> str:
    """List who waits for an answer, and what was decided about people."""
    waiting = [
        f"- {pairing.list_line(one, language)}"
        for one in await strangers_of(rows)
        if pairing.is_open(one, now)
    ]
    known = [f"- {_line(one, language)}" async for one in PEOPLE.all(rows)]
    return "\n".join((*waiting, *known)) or catalogue.PAIR_NOBODY.to(language)


def _line(one: Known, language: Language) -> str:
    id_ = f"`{pairing.exact(one.id)}`"
    is_in = one.state == "admitted"
    return (catalogue.PAIR_ADMITTED if is_in else catalogue.PAIR_ENTRY_REVOKED).to(
        language,
        name=labelled(id_, one.display),
        roles=f", {', '.join(one.roles)}" if one.roles else "",
        who=by_whom(one.by),
        at=f"{one.at.astimezone(UTC):%Y-%m-%d %H:%M} UTC",
    )
