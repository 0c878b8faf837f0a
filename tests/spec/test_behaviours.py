"""The ids that tests name are those of the list."""

from tests.spec.behaviours import LATER, find_tests, listed, proofs


def test_each_id_that_a_test_names_is_listed() -> None:
    """One that does not exist proves nothing, and one for later cannot be proved on the product."""
    known = listed()
    assert {name: tests for name, tests in proofs().items() if name not in known} == {}
    assert {n: t for n, t in proofs().items() if known[n].startswith(LATER)} == {}


def test_a_test_is_found_by_its_docstring() -> None:
    """Functions of all kinds, and classes; a helper proves nothing."""
    source = """
def test_one(): "It holds. S0-01."
def helper(): "S0-02"
class TestTwo:
    "S0-03"
    async def test_three(self): "S0-04"
"""
    found = dict(find_tests(source))
    assert found == {"test_one": "It holds. S0-01.", "TestTwo": "S0-03", "test_three": "S0-04"}
