"""`/usage`: the tokens that a person used; for an operator in private, also everyone's."""

from collections.abc import Sequence

from zeroclaw.host.answers import Used
from zeroclaw.inbound.commands.invocation import Invocation, Reply
from zeroclaw.inbound.context import InboundContext
from zeroclaw.inbound.identity import OPERATOR
from zeroclaw.limits.budget import UsageBudget
from zeroclaw.limits.prices import amount, grouped, total
from zeroclaw.limits.usage import first_day, person_of, used_since
from zeroclaw.text import catalogue
from zeroclaw.text.language import Localized

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
