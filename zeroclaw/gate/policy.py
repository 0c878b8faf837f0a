"""The policy: its statements, and the one engine that answers allow, ask or deny by them (pure).

Principals are `anyone`, `role:<name>`, `channel:<name>`, or exactly a principal's id (`person:ann`,
`telegram:4711`). Actions and resources are patterns in which `*` stands for any run of characters,
`/` included, as in IAM; there is no other wildcard. Actions: `tool:<name>`, `command:<name>`,
`approve:<tool>` (who may answer an approval). Resources: `file:/real/path`, `host:<name>:<port>`,
`sandbox:<place>`, `notes:of:<principal>` and `notes:in:<chat>`, `results:<conversation>`,
`attachment:<conversation>/<number>`, `skill:<name>`, `tools:<group>`. They are always compared in
their normal form, so a folder and its contents are two patterns: `file:/srv/notes`,
`file:/srv/notes/*`. A call's own resource may contain a `*` too: a sandbox with network grants
`host:*`, which stands for all hosts.

The rules, each of which is also in `tests/spec/policy_spec.py`:

- Deny beats ask beats allow; no match is deny; the order of statements does not matter.
- A statement matches when it names the principal and the action, its resources fit, and all of
  its conditions hold.
- An allow statement fits only if it alone covers every resource of the call; two of them do not
  add up. Deny and ask fit if they name any resource of the call.
- A resource with a `*` in it is a grant of everything it covers (a sandbox with `host:*`). An allow
  must cover all of it; deny and ask match if they name any part of it.
- Deny and ask compare paths without regard to letter case, because some file systems do the same;
  allow compares them exactly.
- `file:/dir/**` is a walk: everything below a directory, where the run skips all paths that it may not touch.
  So deny and ask match it only if they cover all of it; `walk` applies them to the files inside.
- A statement that names resources never matches a call without them.
- Unknown resources fit every deny and ask, and no allow.
- A condition that raises counts as true for deny and ask, and as false for allow.

`Decision.reason` is English, for the model and the command line; the `…_reason` functions return it
in the reader's language. An operator's note on a statement is shown as written; the notes of shipped
statements are translated.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache, partial

from msgspec import convert
from pydantic import ValidationError

from zeroclaw.config.model import StatementEffect, StatementSettings
from zeroclaw.config.validate import faults_of, on_one_line
from zeroclaw.envelope import Principal
from zeroclaw.errors import ConfigError, did_you_mean
from zeroclaw.foreign import Raised, call_now
from zeroclaw.gate.conditions import CONDITIONS, TIMELESS, Condition, Query, Test
from zeroclaw.gate.taint import Source, in_words
from zeroclaw.json_fields import object_at
from zeroclaw.text import catalogue
from zeroclaw.text.language import Language, Sentence
from zeroclaw.tool import BELOW
from zeroclaw.value import Value, field, replace

MAX_ACTIONS = 64
"""Actions whose statements a policy caches: the tools in use, and a few commands."""


class Statement(Value):
    """One rule of the policy; the order of statements does not matter.

    Attributes:
        id: Unique in the whole policy; decisions name it. Shipped ids contain a dot.
        effect: Deny beats ask beats allow.
        principals: Its principals; it matches any of them.
        actions: Patterns of its actions; it matches any of them.
        resources: Patterns of its resources; empty for any.
        when: Conditions by name, all of which must hold.
        note: Its purpose, one line for people who read the decision.
    """

    id: str
    effect: StatementEffect
    principals: tuple[str, ...]
    actions: tuple[str, ...]
    resources: tuple[str, ...] = ()
    when: Mapping[str, object] = field(default_factory=dict[str, object])
    note: str = ""


def configured(entries: Iterable[Mapping[str, object]]) -> tuple[Statement, ...]:
    """Return the statements of a configuration.

    Raises:
        ConfigError: With every fault of every entry.
    """
    statements, faults = read_statements(entries)
    if faults:
        raise ConfigError(faults)
    return tuple(statements.values())


def read_statements(
    entries: Iterable[Mapping[str, object]],
) -> tuple[Mapping[str, Statement], tuple[str, ...]]:
    """Return the statements of a configuration by their key paths, and the faults of all entries."""
    statements: dict[str, Statement] = {}
    faults: list[str] = []
    seen: set[str] = set()
    for number, entry in enumerate(entries):
        path = f"policy.statement[{number}]"
        checked = check_statement(entry, path)
        if not isinstance(checked, Statement):
            faults += checked
            continue
        if checked.id in seen:
            faults.append(f"{path}.id: `{checked.id}` is used by another statement")
        seen.add(checked.id)
        statements[path] = checked
    return statements, tuple(faults)


def check_statement(entry: Mapping[str, object], path: str) -> Statement | tuple[str, ...]:
    """Return the statement that the entry describes, or all its faults with their key paths."""
    unfit = tuple(_unfit_conditions(object_at(entry, "when"), f"{path}.when"))
    try:
        found = StatementSettings.model_validate(entry)
    except ValidationError as error:
        return (*faults_of(error, StatementSettings, prefix=f"{path}."), *unfit)
    return unfit or convert(found, Statement, from_attributes=True)


def _unfit_conditions(when: Mapping[str, object], path: str) -> Iterator[str]:
    for name, value in when.items():
        if (condition := CONDITIONS.get(name)) is None:
            hint = did_you_mean(name, CONDITIONS) or f", known are {', '.join(CONDITIONS)}"
            yield f"{path}.{on_one_line(name)}: unknown condition{hint}"
            continue
        try:
            condition(value)
        except ValueError as error:
            yield f"{path}.{name}: {error}"


Matcher = Callable[[str], bool]


class Decision(Value):
    """The policy's answer to one query.

    Attributes:
        effect: Allow, ask or deny.
        statements: The ids of the statements that made it, sorted; empty when nothing matched.
        reason: One sentence for people.
    """

    effect: StatementEffect
    statements: tuple[str, ...]
    reason: str


class Considered(Value):
    """Whether one statement matched a query, and the reason.

    Attributes:
        statement: The statement.
        matched: Whether it matched.
        reason: The cause of a mismatch, or the assumption behind a match; empty for a plain match.
    """

    statement: Statement
    matched: bool
    reason: str


class _Compiled(Value):
    """A statement with its patterns and conditions compiled to functions."""

    statement: Statement
    lenient: bool
    principals: frozenset[str]
    actions: tuple[Matcher, ...]
    resources: tuple[Matcher, ...]
    conditions: tuple[tuple[str, Test], ...]


class PolicySet:
    """Compiled statements that decide queries; immutable.

    Args:
        statements: Shipped ones, whose ids contain a dot, and those of `configured`: ids are
            unique, and conditions are known and have fitting values.
        conditions: By name.

    Attributes:
        is_timed: Its decisions about tools may change with time.
    """

    __slots__ = ("_about", "_compiled", "_open", "_open_to_all", "is_timed", "statements")

    def __init__(
        self, statements: Iterable[Statement], conditions: Mapping[str, Condition] = CONDITIONS
    ) -> None:
        self.statements = tuple(sorted(statements, key=lambda statement: statement.id))
        self._compiled = tuple(_compile(statement, conditions) for statement in self.statements)
        # Most statements are about other actions, and a call is decided upon several times.
        self._about = lru_cache(maxsize=MAX_ACTIONS)(partial(_statements_about, self._compiled))
        # For `could`, denies first. Unknown facts count in the call's favour: a deny that depends
        # on one does not hold, an allow or ask does.
        about_tools = (
            compiled
            for compiled in self._compiled
            if any(overlaps(action, "tool:*") for action in compiled.statement.actions)
        )
        by_effect = sorted(about_tools, key=lambda rule: rule.statement.effect != "deny")
        self._open = tuple(
            replace(rule, lenient=rule.statement.effect != "deny") for rule in by_effect
        )
        self.is_timed = not all(TIMELESS.issuperset(rule.statement.when) for rule in self._open)
        self._open_to_all = tuple(
            replace(rule, resources=()) if rule.lenient else rule for rule in self._open
        )

    def decide(self, query: Query) -> Decision:
        """Return the decision; it does not depend on the order of the statements."""
        names = _names(query.principal)
        found: dict[StatementEffect, list[Statement]] = {"deny": [], "ask": [], "allow": []}
        for compiled in self._about(query.action):
            if not _mismatch(compiled, query, names, None):
                found[compiled.statement.effect].append(compiled.statement)
        for effect, statements in found.items():
            if statements:
                return Decision(
                    effect=effect,
                    statements=tuple(statement.id for statement in statements),
                    reason="; ".join(_sentence(statement) for statement in statements),
                )
        return Decision(
            effect="deny",
            statements=(),
            reason=f"no statement allows `{query.action}` for `{query.principal.id}`",
        )

    def could(self, query: Query) -> bool:
        """Whether some call of a tool may run, perhaps after an approval.

        Args:
            query: Its unknown facts, above all arguments, are left open; without resources it
                stands for any resources.
        """
        names = _names(query.principal)
        for compiled in self._open if query.resources else self._open_to_all:
            if _is_about(compiled, query.action) and not _mismatch(compiled, query, names, None):
                return compiled.lenient
        return False

    def walk(self, query: Query, approved: Iterable[str]) -> Callable[[str], bool]:
        """Return a predicate for the resources that a walk may touch.

        Args:
            query: The call; its conditions are checked once for the whole walk.
            approved: The statements whose ask about the call was approved. The walk may not touch a
                resource that another statement asks about, because no approver saw that ask.
        """
        names, answered = _names(query.principal), frozenset(approved)
        open_query = replace(query, resources=())
        allowing: list[_Compiled] = []
        refusing: list[_Compiled] = []
        for compiled in self._about(query.action):
            if _mismatch(replace(compiled, resources=()), open_query, names, None):
                continue
            effect = compiled.statement.effect
            is_approved = effect == "ask" and compiled.statement.id in answered
            (allowing if effect == "allow" or is_approved else refusing).append(compiled)
        allowed, refused = _any_of(allowing), _any_of(refusing)
        return lambda resource: allowed(resource) and not refused(resource)

    def explain(self, query: Query) -> tuple[Considered, ...]:
        """Return every statement, by id, with the reason why it matched or did not."""
        names, about = _names(query.principal), self._about(query.action)
        considered: list[Considered] = []
        for compiled in self._compiled:
            assumed: list[str] = []
            mismatch = "it does not name the action"
            if compiled in about:
                mismatch = _mismatch(compiled, query, names, assumed)
            considered.append(
                Considered(
                    statement=compiled.statement,
                    matched=not mismatch,
                    reason=mismatch or "; ".join(assumed),
                )
            )
        return tuple(considered)


_VERBS: dict[StatementEffect, str] = {"allow": "allows it", "ask": "asks", "deny": "denies it"}


def _sentence(statement: Statement) -> str:
    sentence = f"`{statement.id}` {_VERBS[statement.effect]}"
    return f"{sentence}: {statement.note}" if statement.note else sentence


@lru_cache(maxsize=64)  # called once per tool in each turn
def _names(principal: Principal) -> frozenset[str]:
    """Return the names by which statements may refer to a principal.

    An id counts only if it can't be mistaken for a role or a channel: if an operator names a
    channel `role`, its sender `operator` must not become one.
    """
    names = {"anyone", f"channel:{principal.channel}"}
    names.update(f"role:{role}" for role in principal.roles)
    if not principal.id.startswith(("role:", "channel:")):
        names.add(principal.id)
    return frozenset(names)


def _mismatch(
    compiled: _Compiled, query: Query, names: frozenset[str], assumed: list[str] | None
) -> str:
    """Return the reason why a statement about the action does not match, empty when it matches.

    Appends each assumption to `assumed`.
    """
    if compiled.principals.isdisjoint(names):
        return "it does not name the principal"
    return _resource_mismatch(compiled, query, assumed) or _condition_mismatch(
        compiled, query, assumed
    )


def _statements_about(statements: tuple[_Compiled, ...], action: str) -> tuple[_Compiled, ...]:
    return tuple(compiled for compiled in statements if _is_about(compiled, action))


def _is_about(compiled: _Compiled, action: str) -> bool:
    return any(matches(action) for matches in compiled.actions)


def _any_of(statements: Iterable[_Compiled]) -> Matcher:
    """Return a predicate for the resources that one of the statements names exactly."""
    matchers: list[Matcher] = []
    for compiled in statements:
        if not compiled.resources:
            return lambda _resource: True
        matchers += compiled.resources
    # Real names are compared here, so a `*` in one is just a character.
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


_UNRESOLVED = "the resources of the call could not be determined"


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
        name = _any_case(resource)
        return any(overlaps(_any_case(pattern), name) for pattern in compiled.statement.resources)
    for matches in compiled.resources:  # noqa: SIM110  a generator costs more than the loop
        if matches(resource):
            return True
    return False


def _condition_mismatch(compiled: _Compiled, query: Query, assumed: list[str] | None) -> str:
    for name, test in compiled.conditions:
        result = call_now(lambda test=test: test(query))
        if isinstance(result, Raised):
            if not compiled.lenient:
                return f"the condition `{name}` could not be evaluated"
            if assumed is not None:
                assumed.append(f"the condition `{name}` could not be evaluated, so it counts")
        elif not result:
            return f"the condition `{name}` does not hold"
    return ""


def _compile(statement: Statement, conditions: Mapping[str, Condition]) -> _Compiled:
    lenient = statement.effect != "allow"
    return _Compiled(
        statement=statement,
        lenient=lenient,
        principals=frozenset(statement.principals),
        actions=tuple(wildcard(pattern) for pattern in statement.actions),
        resources=tuple(
            _wildcard_of_any_case(pattern) if lenient else wildcard(pattern)
            for pattern in statement.resources
        ),
        conditions=tuple((name, conditions[name](value)) for name, value in statement.when.items()),
    )


def _any_case(resource: str) -> str:
    """Return the form of a resource for comparisons that ignore letter case."""
    return resource.casefold() if resource.startswith("file:") else resource


def _wildcard_of_any_case(pattern: str) -> Matcher:
    matches = wildcard(_any_case(pattern))
    if not pattern.startswith("file:"):
        return matches
    return lambda text: matches(_any_case(text))


def wildcard(pattern: str) -> Matcher:
    """Return a matcher in which `*` stands for any run of characters, including none and `/`.

    Takes time linear in the text for any pattern, unlike a regular expression.
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
        # If first and last overlap, this range is empty and contains no piece.
        at, end = len(first), len(text) - len(last)
        for piece in pieces:
            found = text.find(piece, at, end)
            if found < 0:
                return False
            at = found + len(piece)
        return True

    return matches


def overlaps(first: str, second: str) -> bool:
    """Whether some text matches both patterns; takes time in the product of their lengths."""
    # Most pairs differ before any star, and a model's path may have thousands of characters.
    head, other = first.partition("*")[0], second.partition("*")[0]
    if not (head.startswith(other) or other.startswith(head)):
        return False
    # Processes both at once: `ends[j]` says whether the rest of `first` overlaps with `second[j:]`.
    stars = {at for at, char in enumerate(second) if char == "*"}
    ends = [False] * len(second) + [True]
    for at in reversed(range(len(second))):
        ends[at] = at in stars and ends[at + 1]
    for char in reversed(first):
        before, ends = ends, [False] * (len(second) + 1)
        ends[-1] = char == "*" and before[-1]
        for at in reversed(range(len(second))):
            if char == "*":
                ends[at] = before[at] or ends[at + 1]
            elif at in stars:
                ends[at] = ends[at + 1] or before[at]
            else:
                ends[at] = char == second[at] and before[at + 1]
    return ends[0]


SHIPPED: Mapping[str, Sentence] = {
    "supervised.effects": catalogue.IT_DOES_MORE_THAN_READ,
    "supervised.risk": catalogue.ITS_RISK_IS_NOT_LOW,
    "readonly.files_to_groups": catalogue.FILE_GOES_TO_GROUP,
    "supervised.files_to_groups": catalogue.FILE_GOES_TO_GROUP,
    "supervised.undeclared": catalogue.IT_IS_UNDECLARED,
    "full.undeclared": catalogue.IT_IS_UNDECLARED,
    "full.untrusted": catalogue.IT_IS_UNTRUSTED,
}
"""The notes of shipped statements that people read in chats, by statement id."""


class Reason(Value):
    """A statement that made a decision.

    Attributes:
        statement: Its id.
        note: Its note, empty for none.
        sources: The sources of the untrusted text, if the statement asks about that.
    """

    statement: str
    note: str = ""
    sources: tuple[Source, ...] = ()


def reasons_of(
    policy: PolicySet, decision: Decision, sources: tuple[Source, ...] = ()
) -> tuple[Reason, ...]:
    """Return the statements that made a decision of this policy; `sources` are of untrusted text."""
    return tuple(
        Reason(
            statement=rule.id, note=rule.note, sources=sources if "untrusted" in rule.when else ()
        )
        for rule in policy.statements
        if rule.id in decision.statements
    )


def ask_reason(reasons: Iterable[Reason], language: Language) -> str:
    """Return the reason why a call needs approval; one line."""
    return "; ".join(
        catalogue.STATEMENT_ASKS.to(language, id=reason.statement, note=_note(reason, language))
        for reason in reasons
    )


def refusal_reason(policy: PolicySet, query: Query, language: Language) -> str:
    """Return the reason why the policy refuses a person's own command; one line.

    A command has no card, so an ask is a refusal as well.
    """
    return ruling_reason(policy, policy.decide(query), query, language)


def ruling_reason(policy: PolicySet, decision: Decision, query: Query, language: Language) -> str:
    """Return the reason why this decision of the policy is not an allow; one line."""
    if decision.effect == "ask":
        return ask_reason(reasons_of(policy, decision), language)
    if not decision.statements:
        return catalogue.NO_STATEMENT_ALLOWS.to(
            language, action=query.action, principal=query.principal.id
        )
    return "; ".join(
        catalogue.STATEMENT_DENIES.to(language, id=reason.statement, note=_note(reason, language))
        for reason in reasons_of(policy, decision)
    )


def _note(reason: Reason, language: Language) -> str:
    shipped = SHIPPED.get(reason.statement)
    note = reason.note if shipped is None else shipped.to(language)
    origin = f" ({in_words(reason.sources, language)})" if reason.sources else ""
    return f": {note}{origin}" if note or origin else ""
