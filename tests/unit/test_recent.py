"""The memory is bounded."""

from zeroclaw.recent import Recent


def test_the_oldest_entry_is_forgotten() -> None:
    known = Recent[str, int](2)
    known["a"] = 1
    known["b"] = 2
    known["a"] = 3  # new again
    known["c"] = 4
    assert dict(known) == {"a": 3, "c": 4}
