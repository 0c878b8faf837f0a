"""The policy's rules, one row each, and what it tells people about a decision."""

from collections.abc import Callable, Iterator
from typing import get_args

import pytest

from tests.unit.gate.gate_house import ANN, BOB, query, statement
from zeroclaw.config.model import Autonomy, StatementEffect
from zeroclaw.envelope import Principal
from zeroclaw.gate.conditions import Condition, Query
from zeroclaw.gate.policy import (
    SHIPPED,
    Considered,
    Decision,
    PolicySet,
    Reason,
    Statement,
    ask_reason,
    overlaps,
    reasons_of,
    refusal_reason,
    wildcard,
)
from zeroclaw.gate.shipped import assemble
from zeroclaw.text.language import Language


def effect_of(*statements: Statement, ask: Query) -> str:
    return PolicySet(statements).decide(ask).effect


ALLOW, ASK, DENY = (statement("a", "allow"), statement("b", "ask"), statement("c", "deny"))


@pytest.mark.parametrize(
    ("statements", "expected"),
    [
        pytest.param((), "deny", id="nothing matched is deny"),
        pytest.param((ALLOW,), "allow", id="allow alone"),
        pytest.param((ALLOW, ASK), "ask", id="ask beats allow"),
        pytest.param((ASK, ALLOW), "ask", id="in any order"),
        pytest.param((ALLOW, ASK, DENY), "deny", id="deny beats both"),
        pytest.param((DENY, ASK, ALLOW), "deny", id="deny first or last"),
    ],
)
def test_deny_beats_ask_beats_allow(statements: tuple[Statement, ...], expected: str) -> None:
    """Whatever the order, the strictest statement that matches decides (S2-08)."""
    assert effect_of(*statements, ask=query()) == expected


@pytest.mark.parametrize(
    ("statements", "could"),
    [
        pytest.param((), False, id="nothing allows it"),
        pytest.param((ALLOW,), True, id="it is allowed"),
        pytest.param((ASK,), True, id="it asks"),
        pytest.param((ALLOW, DENY), False, id="all of it is denied"),
        pytest.param(
            (ALLOW, statement("d", "deny", resources=("file:/a",))), True, id="some of it is denied"
        ),
        pytest.param(
            (statement("d", "allow", resources=("file:/a",)),), True, id="some is allowed"
        ),
        pytest.param((ALLOW, statement("d", "deny", when={"own": True})), True, id="an open deny"),
        pytest.param((statement("d", "allow", when={"own": True}),), True, id="an open allow"),
        pytest.param(
            (ALLOW, statement("d", "deny", principals=("web:8",))), True, id="others are denied"
        ),
        pytest.param((statement("d", "allow", actions=("command:*",)),), False, id="of commands"),
        pytest.param((statement("d", "allow", actions=("tool:other",)),), False, id="of another"),
        pytest.param(
            (ALLOW, statement("d", "deny", actions=("tool:other",))), True, id="another is denied"
        ),
    ],
)
def test_whether_any_call_of_a_tool_could_run(
    statements: tuple[Statement, ...], could: bool
) -> None:
    """What is not known of the call counts for it: only what no call passes is kept from people. K18."""
    assert PolicySet(statements).could(query()) is could


@pytest.mark.parametrize(("named", "could"), [("skill:tides", False), ("skill:ports", True)])
def test_what_a_call_touches_may_be_denied_alone(named: str, could: bool) -> None:
    """By its name; where it is known, nothing is open about it."""
    policy = PolicySet([ALLOW, statement("d", "deny", resources=("skill:tide*",))])
    assert policy.could(query(resources=(named,))) is could


AB = ("file:/a", "file:/b")


@pytest.mark.parametrize(
    ("effect", "named", "touched", "matches"),
    [
        pytest.param("allow", ("file:/a",), AB, False, id="allow must cover every resource"),
        pytest.param("allow", ("file:/a", "file:/b"), AB, True, id="allow covers by two patterns"),
        pytest.param("allow", ("file:*",), AB, True, id="allow covers by a wildcard"),
        pytest.param("ask", ("file:/a",), AB, True, id="ask matches any"),
        pytest.param("deny", ("file:/b",), AB, True, id="deny matches any"),
        pytest.param("deny", ("file:/c",), AB, False, id="deny of something else"),
        pytest.param("allow", (), AB, True, id="allow that names none covers all"),
        pytest.param("allow", ("*",), (), False, id="allow with names, call without"),
        pytest.param("ask", ("*",), (), False, id="ask with names, call without"),
        pytest.param("deny", ("*",), (), False, id="deny with names, call without"),
        pytest.param("allow", ("*",), None, False, id="allow, unresolved"),
        pytest.param("allow", (), None, False, id="allow that names none, unresolved"),
        pytest.param("ask", ("file:/c",), None, True, id="ask, unresolved"),
        pytest.param("deny", ("file:/c",), None, True, id="deny, unresolved"),
    ],
)
def test_how_resources_fit_a_statement(
    effect: StatementEffect, named: tuple[str, ...], touched: tuple[str, ...] | None, matches: bool
) -> None:
    """Allow covers all, ask and deny match any, and what can't be told is never in favour."""
    policy = PolicySet([statement("s", effect, resources=named)])
    assert policy.explain(query(resources=touched))[0].matched is matches


@pytest.mark.parametrize(
    ("effect", "named", "matches"),
    [
        ("allow", "host:*", True),
        ("allow", "host:*.example.com:443", False),
        ("deny", "host:evil.example.com:443", True),
        ("ask", "host:*.example.com:443", True),
        ("deny", "file:*", False),
    ],
)
def test_a_grant_counts_as_all_that_it_covers(
    effect: StatementEffect, named: str, matches: bool
) -> None:
    """A shell with network may reach every host, so a deny on one host denies the shell."""
    policy = PolicySet([statement("s", effect, resources=(named,))])
    granted = query(resources=("sandbox:workspace", "host:*") if effect != "allow" else ("host:*",))
    assert policy.explain(granted)[0].matched is matches


@pytest.mark.parametrize(
    ("effect", "named", "touched", "matches"),
    [
        ("deny", "file:/srv/Private/*", "file:/srv/private/a", True),
        ("ask", "file:/srv/private/*", "file:/srv/PRIVATE/a", True),
        ("deny", "file:/srv/Private/*", "file:/srv/private/**", True),
        ("deny", "file:/srv/Private/*", "file:/srv/p*", True),
        ("deny", "file:/srv/private/*", "file:/srv/P*", True),
        ("allow", "file:/srv/Private/*", "file:/srv/private/a", False),
        ("deny", "notes:of:person:Ann", "notes:of:person:ann", False),
    ],
)
def test_the_letter_case_of_a_path_opens_nothing(
    effect: StatementEffect, named: str, touched: str, *, matches: bool
) -> None:
    """Some file systems take two spellings for one file; a deny must not be passed so."""
    policy = PolicySet((statement("s", effect, resources=(named,)),))
    assert (policy.decide(query(resources=(touched,))).statements == ("s",)) is matches


def test_two_allow_statements_do_not_add_up() -> None:
    """Each covers one half of the call, neither covers it, so it is denied."""
    wide = statement("one", "allow", resources=("file:/a",))
    two = statement("two", "allow", resources=("file:/b",))
    assert effect_of(wide, two, ask=query(resources=AB)) == "deny"


@pytest.mark.parametrize(
    ("principals", "principal", "matches"),
    [
        (("anyone",), BOB, True),
        (("role:operator",), ANN, True),
        (("role:operator",), BOB, False),
        (("channel:web",), BOB, True),
        (("channel:mail",), BOB, False),
        (("person:ann",), ANN, True),
        (("web:8",), BOB, True),
        (("web:*",), BOB, False),
        (("person:bob", "role:operator"), ANN, True),
        *(
            (
                (f"{kind}:{name}",),
                Principal(id=f"{kind}:{name}", roles=frozenset(), channel=kind, sender=name),
                False,
            )
            for kind, name in (("role", "operator"), ("channel", "mail"))
        ),
    ],
)
def test_who_a_statement_names(
    principals: tuple[str, ...], principal: Principal, matches: bool
) -> None:
    """Anyone, a role, a channel, or one id to the letter; an id is never taken for a role or a channel."""
    policy = PolicySet([statement("s", "allow", principals=principals)])
    assert policy.explain(query(principal=principal))[0].matched is matches


@pytest.mark.parametrize(
    ("pattern", "text", "matches"),
    [
        ("a", "a", True),
        ("a", "A", False),
        ("", "", True),
        ("*", "", True),
        ("*", "a/b\nc", True),
        ("a*", "b", False),
        ("a*a", "a", False),
        ("a*a", "aa", True),
        ("a**a", "aa", True),
        ("*b*", "abc", True),
        ("*b*", "ac", False),
        ("a*b*c", "aXXbc", True),
        ("a*b*c", "acb", False),
        ("a*b*b*c", "abc", False),
        ("*" + "a*" * 20 + "b", "a" * 2000, False),
        ("[a]?", "a", False),
    ],
)
def test_a_star_is_the_only_sign(pattern: str, text: str, matches: bool) -> None:
    """`*` stands for any run of characters, and nothing else means anything."""
    assert wildcard(pattern)(text) is matches


class Unread(str):
    """A pattern that may not be read letter by letter."""

    __slots__ = ()

    def __iter__(self) -> Iterator[str]:
        pytest.fail("it was read to its end")


def test_patterns_are_compared_only_as_far_as_they_begin_alike() -> None:
    """A model may name a long path with a star, for which each pattern would take milliseconds (P9)."""
    assert not overlaps("file:/srv/*", Unread("file:/ws/*"))


def raising(value: object) -> Callable[[Query], bool]:
    def test(_: Query) -> bool:
        raise RuntimeError

    return test


def fixed(value: object) -> Callable[[Query], bool]:
    return lambda _: value is True


TOYS: dict[str, Condition] = {"raising": raising, "fixed": fixed}


@pytest.mark.parametrize(
    ("effect", "when", "matches"),
    [
        pytest.param("allow", {"raising": 0}, False, id="raising fails allow"),
        pytest.param("ask", {"raising": 0}, True, id="raising matches ask"),
        pytest.param("deny", {"raising": 0}, True, id="raising matches deny"),
        pytest.param("deny", {"raising": 0, "fixed": False}, False, id="raising, then false"),
        pytest.param("deny", {"fixed": False, "raising": 0}, False, id="false, then raising"),
        pytest.param("deny", {"fixed": True, "raising": 0}, True, id="true, then raising"),
        pytest.param("allow", {"fixed": True}, True, id="true"),
        pytest.param("allow", {"fixed": False}, False, id="false"),
    ],
)
def test_a_condition_that_raises_is_never_in_favour(
    effect: StatementEffect, when: dict[str, object], matches: bool
) -> None:
    """It counts as matched on deny and ask and as not matched on allow; all must hold."""
    policy = PolicySet([statement("s", effect, when=when)], TOYS)
    assert policy.explain(query())[0].matched is matches


def test_a_decision_names_the_statements_that_made_it() -> None:
    """All of the winning effect, by id, and nothing of the others."""
    policy = PolicySet(
        [statement("z", "ask"), statement("m", "ask", note="it writes"), statement("a", "allow")]
    )
    assert policy.decide(query()) == Decision(
        effect="ask", statements=("m", "z"), reason="`m` asks: it writes; `z` asks"
    )


def test_a_decision_without_a_statement_says_so() -> None:
    """Nothing matched is a sentence, too."""
    assert PolicySet([]).decide(query(principal=BOB)) == Decision(
        effect="deny", statements=(), reason="no statement allows `tool:write_file` for `web:8`"
    )


def test_an_explanation_says_what_each_statement_failed_on() -> None:
    """`policy explain` lists every statement with the reason."""
    statements = [
        statement("action", "allow", actions=("tool:x", "command:*")),
        statement("condition", "allow", when={"own": True}),
        statement("cover", "allow", resources=("file:/b",)),
        statement("false", "allow", when={"own": False, "channel_is_direct": True}),
        statement("none", "deny", resources=("file:/b",)),
        statement("plain", "allow", actions=("tool:x", "tool:*")),
        statement("principal", "allow", principals=("role:family",)),
        statement("unknown", "ask", when={"channel_is_direct": True}),
    ]
    explained = PolicySet(statements).explain(query(resources=("file:/a",), own=True))
    assert [(entry.statement.id, entry.matched, entry.reason) for entry in explained] == [
        ("action", False, "it does not name the action"),
        ("condition", True, ""),
        ("cover", False, "it does not cover every resource"),
        ("false", False, "the condition `own` does not hold"),
        ("none", False, "it names none of the resources"),
        ("plain", True, ""),
        ("principal", False, "it does not name the principal"),
        ("unknown", True, "the condition `channel_is_direct` could not be evaluated, so it counts"),
    ]


def test_an_explanation_says_what_was_assumed() -> None:
    """A statement that matched only because something is unknown says that."""
    named = statement("named", "deny", resources=("file:/b",), when={"own": True})
    bare = statement("bare", "ask")
    allow = statement("yes", "allow", when={"own": True})
    unresolved = "the resources of the call could not be determined"
    unknown = "the condition `own` could not be evaluated"
    policy = PolicySet([named, bare, allow])
    assert policy.explain(query(resources=None)) == (
        Considered(statement=bare, matched=True, reason=""),
        Considered(
            statement=named,
            matched=True,
            reason=f"{unresolved}, so it counts; {unknown}, so it counts",
        ),
        Considered(statement=allow, matched=False, reason=unresolved),
    )
    assert policy.decide(query(resources=None)).statements == ("named",)
    assert policy.explain(query())[1:] == (
        Considered(
            statement=named, matched=False, reason="it names resources and the call has none"
        ),
        Considered(statement=allow, matched=False, reason=unknown),
    )


# --- the reasons of a decision, in the reader's language -------------------------------------------

QUERY = query("command:halt")
OWN = Reason(statement="mine", note="ask the boss")
READS = Reason(statement="supervised.effects", note="it does more than read")


def policy(effect: StatementEffect, note: str = "") -> PolicySet:
    return PolicySet((statement("mine", effect, actions=("command:*",), note=note),))


@pytest.mark.parametrize(
    ("language", "reason"),
    [
        ("en", "`supervised.effects` asks: it does more than read; `mine` asks: ask the boss"),
        (
            "de",
            "`supervised.effects` fragt nach: es tut mehr als nur lesen; `mine` fragt nach: ask the boss",
        ),
    ],
)
def test_what_ships_is_translated_and_what_an_operator_wrote_is_not(
    language: Language, reason: str
) -> None:
    assert ask_reason((READS, OWN), language) == reason


def test_a_reason_without_a_note_is_a_statement() -> None:
    assert ask_reason((Reason(statement="mine"),), "de") == "`mine` fragt nach"


@pytest.mark.parametrize(
    ("rules", "english", "german"),
    [
        (
            PolicySet(()),
            "no statement allows `command:halt` for `person:ann`",
            "keine Regel erlaubt `command:halt` für `person:ann`",
        ),
        (policy("deny", "not now"), "`mine` denies it: not now", "`mine` verbietet es: not now"),
        (policy("ask"), "`mine` asks", "`mine` fragt nach"),
    ],
)
def test_a_person_reads_why_they_may_not(rules: PolicySet, english: str, german: str) -> None:
    """In English it is what the decision itself says (P10)."""
    assert refusal_reason(rules, QUERY, "en") == english == rules.decide(QUERY).reason
    assert refusal_reason(rules, QUERY, "de") == german


def test_every_translated_statement_is_one_that_ships_and_says_the_same() -> None:
    """The reason of a renamed id would read English to everyone."""
    shipped = [
        statement_ for level in get_args(Autonomy) for statement_ in assemble(level).statements
    ]
    notes = {statement_.id: statement_.note for statement_ in shipped if statement_.effect == "ask"}
    assert {id_: note.en for id_, note in SHIPPED.items()} == notes


def test_the_reasons_of_a_decision_are_its_statements() -> None:
    rules = policy("deny", "not now")
    assert reasons_of(rules, rules.decide(QUERY)) == (Reason(statement="mine", note="not now"),)
    assert reasons_of(rules, PolicySet(()).decide(QUERY)) == ()
