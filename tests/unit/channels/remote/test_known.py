"""What a channel remembers has a bound."""

from channels._remote.known import Known


def test_what_was_noted_longest_ago_is_forgotten() -> None:
    known = Known[int](2)
    known["a"] = 1
    known["b"] = 2
    known["a"] = 3  # new again
    known["c"] = 4
    assert dict(known) == {"a": 3, "c": 4}
