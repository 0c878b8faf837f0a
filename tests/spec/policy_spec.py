"""The policy once more, slow and obvious, written from the sentences of the design.

Nothing here is shared with the product but the values that go in. `holds` answers True, False, or
None for "could not be told", and each sentence is one line that can be read aloud.
"""

from zeroclaw.gate.conditions import Query
from zeroclaw.gate.policy import Statement
from zeroclaw.value import replace


def verdict(statements: list[Statement], query: Query) -> tuple[str, set[str]]:
    """Return the effect and the ids that made it."""
    matched = [statement for statement in statements if matches(statement, query)]
    for effect in ("deny", "ask", "allow"):  # deny beats ask beats allow
        ids = {statement.id for statement in matched if statement.effect == effect}
        if ids:
            return effect, ids
    return "deny", set()  # nothing matched is deny


def matches(statement: Statement, query: Query) -> bool:
    """All four parts of the statement speak of the query."""
    return (
        any(is_called(query, name) for name in statement.principals)
        and any(like(query.action, pattern) for pattern in statement.actions)
        and resources_fit(statement, query)
        and all(condition_counts(statement, name, query) for name in statement.when)
    )


def is_called(query: Query, name: str) -> bool:
    """A principal is anyone, has roles, came by a channel, and has an id."""
    kind, _, rest = name.partition(":")
    if name == "anyone":
        return True
    if kind == "role":
        return rest in query.principal.roles
    if kind == "channel":
        return rest == query.principal.channel
    return name == query.principal.id


def resources_fit(statement: Statement, query: Query) -> bool:
    """Allow covers every resource, deny and ask match on any."""
    allows = statement.effect == "allow"
    if query.resources is None:
        return not allows  # matched on deny and ask, not matched on allow
    if statement.resources == ():
        return True
    if query.resources == ():
        return False  # a statement that names resources never matches a call without them
    covered = {
        resource: any(fits(resource, pattern, allows=allows) for pattern in statement.resources)
        for resource in query.resources
    }
    return False not in covered.values() if allows else True in covered.values()


def fits(resource: str, pattern: str, *, allows: bool) -> bool:
    """A grant is covered whole, or touched anywhere; a walk, which skips, is covered whole."""
    if not allows and resource.startswith("file:"):
        resource, pattern = resource.casefold(), pattern.casefold()  # some file systems do the same
    whole = allows or resource.endswith("/**")
    return like(resource, pattern) if whole else meet(resource, pattern)


def may_meet(statements: list[Statement], query: Query, place: str, answered: set[str]) -> bool:
    """A walk touches a place that the same call may touch alone, its asks answered."""
    alone = replace(query, resources=(place,))
    effect, made = verdict(statements, alone)
    return effect == "allow" or (effect == "ask" and made <= answered)


def condition_counts(statement: Statement, name: str, query: Query) -> bool:
    """A condition that raises counts as matched on deny and ask and as not matched on allow."""
    answer = holds(name, statement.when[name], query)
    if answer is None:
        return statement.effect != "allow"
    return answer


def holds(name: str, value: object, query: Query) -> bool | None:
    """Say what a condition says; None for one that raises."""
    facts = {"own": query.own, "channel_is_direct": query.direct}
    known = facts[name]
    return None if known is None else known == value


def like(text: str, pattern: str) -> bool:
    """`*` stands for any run of characters, none included; everything else for itself."""
    if pattern == "":
        return text == ""
    if pattern[0] == "*":
        return like(text, pattern[1:]) or (text != "" and like(text[1:], pattern))
    return text != "" and text[0] == pattern[0] and like(text[1:], pattern[1:])


def meet(first: str, second: str) -> bool:
    """Some text is meant by both patterns; a text without `*` means itself."""
    if "" in {first, second}:
        return set(first + second) <= {"*"}
    if first[0] == "*":
        return meet(first[1:], second) or meet(first, second[1:])
    if second[0] == "*":
        return meet(second, first)
    return first[0] == second[0] and meet(first[1:], second[1:])
