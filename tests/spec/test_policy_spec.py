"""The policy decides what its second, obvious implementation decides; its mutants do not."""

import inspect
from collections.abc import Callable
from itertools import product
from random import Random
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.spec.policy_cases import Case, draw_case
from tests.spec.policy_spec import like, may_meet, meet, verdict
from zeroclaw.gate import policy
from zeroclaw.gate.conditions import Query
from zeroclaw.gate.policy import PolicySet, Statement
from zeroclaw.value import replace

pytestmark = pytest.mark.slow  # comparisons, hundreds of examples each

# Slow, but shrinks to the smallest disagreement; the seeded ones only tell which case it was.
cases = st.randoms(use_true_random=False).map(draw_case)
seeds = st.integers(0, 2**32)
PLACES = ("file:/a", "file:/a/b", "file:/a/b/**", "file:/a/b/c", "file:/c", "file:/b")
STATEMENTS = tuple(f"s{number}" for number in range(6))


@given(case=cases)
def test_the_policy_decides_as_its_sentences_say(case: Case) -> None:
    """Effect and reasons equal those of a second implementation written from the design."""
    statements, query = case
    decision = PolicySet(statements).decide(query)
    assert (decision.effect, set(decision.statements)) == verdict(statements, query)


@given(case=cases)
def test_what_may_run_or_be_asked_about_could(case: Case) -> None:
    """Whatever of a call is left open; so no call that a person may make is kept from them. K18."""
    statements, query = case
    if not query.action.startswith("tool:") or verdict(statements, query)[0] == "deny":
        return
    policy, open_query = PolicySet(statements), replace(query, own=None)
    assert policy.could(open_query)
    assert policy.could(replace(open_query, resources=()))


@given(seed=seeds)
def test_the_order_of_statements_means_nothing(seed: int) -> None:
    """A shuffled policy makes the same decision, word for word."""
    random = Random(seed)
    statements, query = draw_case(random)
    shuffled = random.sample(statements, len(statements))
    assert PolicySet(shuffled).decide(query) == PolicySet(statements).decide(query)


@given(seed=seeds)
def test_an_explanation_says_of_each_statement_what_the_decision_used(seed: int) -> None:
    """`policy explain` can't disagree with what would be decided."""
    statements, query = draw_case(Random(seed))
    decision = PolicySet(statements).decide(query)
    explained = PolicySet(statements).explain(query)
    assert [entry.statement.id for entry in explained] == sorted(
        statement.id for statement in statements
    )
    assert decision.statements == tuple(
        entry.statement.id
        for entry in explained
        if entry.matched and entry.statement.effect == decision.effect
    )
    assert all(entry.matched or entry.reason for entry in explained)


@given(case=cases, place=st.sampled_from(PLACES), answered=st.sets(st.sampled_from(STATEMENTS)))
def test_a_walk_touches_what_the_same_call_may_touch_alone(
    case: Case, place: str, answered: set[str]
) -> None:
    """What it was allowed as a whole opens nothing that is denied, or asked about, in it."""
    statements, query = case
    permits = PolicySet(statements).walk(query, answered)
    assert permits(place) == may_meet(statements, query, place, answered)


@given(text=st.text("ab/*", max_size=8), pattern=st.text("ab/*", max_size=6))
def test_a_wildcard_matches_what_its_definition_matches(text: str, pattern: str) -> None:
    """The linear matcher equals the recursive definition of `*`."""
    assert policy.wildcard(pattern)(text) == like(text, pattern)


@given(first=st.text("ab*", max_size=4), second=st.text("ab*", max_size=4))
def test_patterns_overlap_exactly_when_a_text_matches_both(first: str, second: str) -> None:
    """Both implementations agree with trying every text that could be the shortest witness."""
    texts = ("".join(letters) for size in range(9) for letters in product("ab", repeat=size))
    matches_both = any(like(text, first) and like(text, second) for text in texts)
    assert policy.overlaps(first, second) == meet(first, second) == matches_both


# --- the comparison bites ------------------------------------------------------------------------

MUTANTS = {
    "ask beats deny": ('{"deny": [], "ask": []', '{"ask": [], "deny": []'),
    "allow beats ask": ('"ask": [], "allow": []', '"allow": [], "ask": []'),
    "nothing matched is ask": ('effect="deny",\n            statements=()', 'effect="ask", statements=()'),
    "allow covers any": ("if covered and compiled.lenient:", "if covered:"),
    "allow covers nothing": ("if not covered and not compiled.lenient:", "if False:"),
    "deny and ask look at the first": ("if not covered and not compiled.lenient:", "if not covered:"),
    "named resources match a call without": ("if not query.resources:", "if False:"),
    "unresolved fits allow": ("if not compiled.lenient:\n            return _UNR", "if False:\n            return _UNR"),
    "unresolved is no resource": ("if query.resources is None:", "if not query.resources:"),
    "unresolved misses deny": ("        if assumed is not None and compiled.resources:", "        if compiled.resources: return _UNRESOLVED\n        if False:"),
    "raising fails deny": ("if not compiled.lenient:\n                return f", "if True:\n                return f"),
    "raising holds for allow": ("if not compiled.lenient:\n                return f", "if False:\n                return f"),
    "first condition decides": ("        elif not result:", "        elif result: return ''\n        else:"),
    "a grant is one resource": ('if compiled.lenient and "*" in resource and', "if False and"),
    "allow touches a grant": ('if compiled.lenient and "*"', 'if "*"'),
    "a walk is touched anywhere": ("and not resource.endswith(BELOW)", ""),
    "ask is strict": ('statement.effect != "allow"', 'statement.effect == "deny"'),
    "deny is strict": ('statement.effect != "allow"', 'statement.effect == "ask"'),
    "an id may be a role": ('("role:", "channel:")', '("nothing:",)'),
    "roles mean nothing": ("for role in principal.roles", "for role in ()"),
    "channels mean nothing": ('f"channel:{principal.channel}"', '"channel:"'),
    "everybody is named": ("if compiled.principals.isdisjoint(names):", "if False:"),
    "every action is named": ("return any(matches(action) for matches in compiled.actions)", "return True"),
}  # fmt: skip


WILDCARD_MUTANTS = {
    "first and last may overlap": ("len(text) >= shortest and", ""),
    "a piece is found in the last": ("text.find(piece, at, end)", "text.find(piece, at)"),
    "pieces may overlap": ("at = found + len(piece)", "at = found"),
    "pieces in any order": ("text.find(piece, at, end)", "text.find(piece, len(first), end)"),
    "a star is at least one": ("shortest = len(first)", "shortest = 1 + len(first)"),
}

TRIES = 5000


def mutated(fragment: str, replacement: str) -> ModuleType:
    """Return the product's own module with one fragment of its source replaced."""
    source = inspect.getsource(policy)
    assert source.count(fragment) == 1, f"`{fragment}` is not there exactly once"
    module = ModuleType("mutant")
    exec(source.replace(fragment, replacement), module.__dict__)
    return module


def differs(kind: type[PolicySet]) -> bool:
    """Tell whether a policy ever disagrees with the sentences, over the same cases each time."""
    random = Random(20261121)
    drawn = (draw_case(random) for _ in range(TRIES))
    return any(_disagrees(kind, statements, query) for statements, query in drawn)


def _disagrees(kind: type[PolicySet], statements: list[Statement], query: Query) -> bool:
    decision = kind(statements).decide(query)
    return (decision.effect, set(decision.statements)) != verdict(statements, query)


def wildcard_differs(made: Callable[[str], Callable[[str], bool]]) -> bool:
    """Tell whether a matcher ever disagrees with the definition of `*`."""
    random = Random(20261121)
    pairs = [
        ("".join(random.choices("ab", k=6)), "".join(random.choices("ab**", k=5)))
        for _ in range(TRIES)
    ]
    return any(
        made(pattern)(text[:size]) != like(text[:size], pattern)
        for text, pattern in pairs
        for size in (2, 6)
    )


@pytest.mark.parametrize("name", MUTANTS)
def test_a_planted_fault_in_a_rule_is_found(name: str) -> None:
    """Each rule, broken on purpose in the product's source, makes the comparison fail."""
    assert differs(mutated(*MUTANTS[name]).PolicySet)


@pytest.mark.parametrize("name", WILDCARD_MUTANTS)
def test_a_planted_fault_in_the_wildcard_is_found(name: str) -> None:
    """Each way to get `*` wrong makes the comparison with its definition fail."""
    assert wildcard_differs(mutated(*WILDCARD_MUTANTS[name]).wildcard)


def test_the_product_itself_survives_the_same_search() -> None:
    """The cases that find every mutant find nothing in the real source."""
    assert not differs(PolicySet)
    assert not wildcard_differs(policy.wildcard)
