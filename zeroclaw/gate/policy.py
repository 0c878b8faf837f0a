"""The policy: one engine that answers allow, ask or deny, and names the statements that did.

The rules, each of which stands in `tests/spec/policy_spec.py` once more:

- Deny beats ask beats allow; nothing matched is deny; the order of statements means nothing.
- A statement matches when it names the principal and the action, its resources fit, and all of
  its conditions hold.
- An allow statement fits only if it alone covers every resource of the call; two of them do not
  add up. Deny and ask fit if they name any resource of the call.
- A resource with a `*` in it is a grant of all that it covers (a sandbox with `host:*`). An allow
  covers it only whole; deny and ask match if they name anything that is in it.
- `file:/dir/**` is a walk: all below a directory, of which the run skips what it may not touch. So
  deny and ask match it only if they cover it whole; what they name in it is asked of `walk`.
- A statement that names resources never matches a call without them.
- Resources that could not be determined fit every deny and ask, and no allow at all.
- A condition that raises counts as holding for deny and ask, and as failing for allow.
"""

from collections.abc import Callable, Iterable, Mapping

from zeroclaw.envelope import Principal
from zeroclaw.errors import ConfigError
from zeroclaw.foreign import Raised, call_now
from zeroclaw.gate.conditions import CONDITIONS, Condition, Query, Test
from zeroclaw.gate.statement import Statement, StatementEffect
from zeroclaw.tool import BELOW
from zeroclaw.value import Value, replace

Matcher = Callable[[str], bool]


class Decision(Value):
    """What the policy says to one query.

    Attributes:
        effect: Allow, ask or deny.
        statements: The ids of the statements that made it, sorted; empty when nothing matched.
        why: One sentence for people.
    """

    effect: StatementEffect
    statements: tuple[str, ...]
    why: str


class Considered(Value):
    """How one statement stood to a query.

    Attributes:
        statement: The statement.
        matched: Whether it matched.
        why: What it failed on, or what was assumed for it to match; empty for a plain match.
    """

    statement: Statement
    matched: bool
    why: str


class _Compiled(Value):
    """A statement with its patterns and conditions made callable, once."""

    statement: Statement
    lenient: bool
    anyone: bool
    named: frozenset[str]
    actions: tuple[Matcher, ...]
    resources: tuple[Matcher, ...]
    conditions: tuple[tuple[str, Test], ...]


class PolicySet:
    """Statements made ready to decide; build it once, it never changes.

    Raises:
        ConfigError: Two statements share an id, or a condition is unknown or has a wrong value.
    """

    __slots__ = ("_compiled", "statements")

    def __init__(
        self, statements: Iterable[Statement], conditions: Mapping[str, Condition] = CONDITIONS
    ) -> None:
        self.statements = tuple(sorted(statements, key=lambda statement: statement.id))
        faults = [
            f"policy: two statements have the id `{statement.id}`"
            for statement, after in zip(self.statements, self.statements[1:], strict=False)
            if statement.id == after.id
        ]
        self._compiled = tuple(_compile(one, conditions, faults) for one in self.statements)
        if faults:
            raise ConfigError(tuple(faults))

    def decide(self, query: Query) -> Decision:
        """Return what the statements say; the same for any order of them."""
        names = _names(query.principal)
        found: dict[StatementEffect, list[Statement]] = {"deny": [], "ask": [], "allow": []}
        for compiled in self._compiled:
            if not _mismatch(compiled, query, names, None):
                found[compiled.statement.effect].append(compiled.statement)
        for effect, statements in found.items():
            if statements:
                return Decision(
                    effect=effect,
                    statements=tuple(statement.id for statement in statements),
                    why="; ".join(_sentence(statement) for statement in statements),
                )
        return Decision(
            effect="deny",
            statements=(),
            why=f"no statement allows `{query.action}` for `{query.principal.id}`",
        )

    def walk(self, query: Query, asked: Iterable[str]) -> Callable[[str], bool]:
        """Return what tells of each place that a walk meets whether the call may touch it.

        Args:
            query: The call; its conditions hold or fail for all that it meets.
            asked: The statements that asked about the call and were answered with yes. What any
                other one asks about is refused, because nobody was shown it.
        """
        names, answered = _names(query.principal), frozenset(asked)
        allowing: list[_Compiled] = []
        refusing: list[_Compiled] = []
        for one in self._compiled:
            if _is_silent(one, query, names):
                continue
            effect = one.statement.effect
            yes = effect == "allow" or (effect == "ask" and one.statement.id in answered)
            (allowing if yes else refusing).append(one)
        allowed, refused = _any_of(allowing), _any_of(refusing)
        return lambda resource: allowed(resource) and not refused(resource)

    def explain(self, query: Query) -> tuple[Considered, ...]:
        """Return every statement, by id, with why it matched or did not."""
        names = _names(query.principal)
        considered: list[Considered] = []
        for compiled in self._compiled:
            assumed: list[str] = []
            mismatch = _mismatch(compiled, query, names, assumed)
            considered.append(
                Considered(
                    statement=compiled.statement,
                    matched=not mismatch,
                    why=mismatch or "; ".join(assumed),
                )
            )
        return tuple(considered)


_VERBS: dict[StatementEffect, str] = {"allow": "allows it", "ask": "asks", "deny": "denies it"}


def _sentence(statement: Statement) -> str:
    said = f"`{statement.id}` {_VERBS[statement.effect]}"
    return f"{said}: {statement.note}" if statement.note else said


def _names(principal: Principal) -> frozenset[str]:
    """Return what statements may call a principal.

    An id is a name of its own only where it can't be mistaken for a role or a channel: on a
    channel that somebody named `role`, the sender `operator` must not become one.
    """
    names = {f"role:{role}" for role in principal.roles}
    names.add(f"channel:{principal.channel}")
    if not principal.id.startswith(("role:", "channel:")):
        names.add(principal.id)
    return frozenset(names)


def _mismatch(
    compiled: _Compiled, query: Query, names: frozenset[str], assumed: list[str] | None
) -> str:
    """Return what a statement fails on, empty when it matches; tell what had to be assumed."""
    for matches in compiled.actions:
        if matches(query.action):
            break
    else:
        return "it does not name the action"
    if not compiled.anyone and compiled.named.isdisjoint(names):
        return "it does not name the principal"
    return _resource_mismatch(compiled, query, assumed) or _condition_mismatch(
        compiled, query, assumed
    )


def _is_silent(compiled: _Compiled, query: Query, names: frozenset[str]) -> bool:
    """Whether a statement says nothing to a query, whatever the query touches."""
    whatever = replace(compiled, resources=())
    return bool(_mismatch(whatever, replace(query, resources=()), names, None))


def _any_of(statements: Iterable[_Compiled]) -> Matcher:
    """Return what tells whether any of the statements names a resource to the letter."""
    matchers: list[Matcher] = []
    for one in statements:
        if not one.resources:
            return lambda _resource: True
        matchers += one.resources
    # Real names are compared here, so a `*` in one is a `*`.
    return lambda resource: any(matches(resource) for matches in matchers)


def _resource_mismatch(compiled: _Compiled, query: Query, assumed: list[str] | None) -> str:
    if query.resources is None:
        if not compiled.lenient:
            return _UNRESOLVED
        if assumed is not None and compiled.resources:
            assumed.append(f"{_UNRESOLVED}, so it counts")
        return ""
    if not compiled.resources:
        return ""
    if not query.resources:
        return "it names resources and the call has none"
    return _coverage_mismatch(compiled, query.resources)


_UNRESOLVED = "what the call would touch could not be determined"


def _coverage_mismatch(compiled: _Compiled, resources: tuple[str, ...]) -> str:
    for resource in resources:
        covered = _covers(compiled, resource)
        if covered and compiled.lenient:
            return ""
        if not covered and not compiled.lenient:
            return "it does not cover every resource"
    return "it names none of the resources" if compiled.lenient else ""


def _covers(compiled: _Compiled, resource: str) -> bool:
    if compiled.lenient and "*" in resource and not resource.endswith(BELOW):
        return any(overlaps(pattern, resource) for pattern in compiled.statement.resources)
    for matches in compiled.resources:  # noqa: SIM110  a generator costs more than the loop
        if matches(resource):
            return True
    return False


def _condition_mismatch(compiled: _Compiled, query: Query, assumed: list[str] | None) -> str:
    for name, test in compiled.conditions:
        held = call_now(lambda test=test: test(query))
        if isinstance(held, Raised):
            if not compiled.lenient:
                return f"the condition `{name}` could not be evaluated"
            if assumed is not None:
                assumed.append(f"the condition `{name}` could not be evaluated, so it counts")
        elif not held:
            return f"the condition `{name}` does not hold"
    return ""


def _compile(
    statement: Statement, conditions: Mapping[str, Condition], faults: list[str]
) -> _Compiled:
    tests: list[tuple[str, Test]] = []
    for name, value in statement.when.items():
        condition = conditions.get(name)
        if condition is None:
            faults.append(f"policy `{statement.id}`: the condition `{name}` is unknown")
            continue
        try:
            tests.append((name, condition(value)))
        except ValueError as error:
            faults.append(f"policy `{statement.id}`: the condition `{name}` {error}")
    return _Compiled(
        statement=statement,
        lenient=statement.effect != "allow",
        anyone="anyone" in statement.principals,
        named=frozenset(statement.principals),
        actions=tuple(wildcard(pattern) for pattern in statement.actions),
        resources=tuple(wildcard(pattern) for pattern in statement.resources),
        conditions=tuple(tests),
    )


def wildcard(pattern: str) -> Matcher:
    """Return a matcher in which `*` stands for any run of characters, none and `/` included.

    Takes time linear in the text whatever the pattern, which a regular expression would not.
    """
    first, *middle = pattern.split("*")
    if not middle:
        return lambda text: text == pattern
    last = middle.pop()
    pieces = tuple(piece for piece in middle if piece)
    if not pieces:
        shortest = len(first) + len(last)
        return lambda text: len(text) >= shortest and text.startswith(first) and text.endswith(last)

    def matches(text: str) -> bool:
        if not (text.startswith(first) and text.endswith(last)):
            return False
        # Where first and last overlap this range is empty, and no piece is found in it.
        at, end = len(first), len(text) - len(last)
        for piece in pieces:
            found = text.find(piece, at, end)
            if found < 0:
                return False
            at = found + len(piece)
        return True

    return matches


def overlaps(one: str, other: str) -> bool:
    """Tell whether some text matches both patterns; takes time in the product of their lengths."""
    # Walks both at once. `ends[j]` says whether the rest of `one` overlaps with `other[j:]`.
    stars = {at for at, char in enumerate(other) if char == "*"}
    ends = [False] * len(other) + [True]
    for at in reversed(range(len(other))):
        ends[at] = at in stars and ends[at + 1]
    for char in reversed(one):
        before, ends = ends, [False] * (len(other) + 1)
        ends[-1] = char == "*" and before[-1]
        for at in reversed(range(len(other))):
            if char == "*":
                ends[at] = before[at] or ends[at + 1]
            elif at in stars:
                ends[at] = ends[at + 1] or before[at]
            else:
                ends[at] = char == other[at] and before[at + 1]
    return ends[0]
