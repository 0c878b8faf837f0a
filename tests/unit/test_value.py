"""The base of values."""

from weakref import ref

import pytest

from zeroclaw.value import Hidden, Value, field, replace


class Size(Value):
    width: int
    height: int = 1
    names: dict[str, int] = field(default_factory=dict[str, int])


class Area(Value):
    width: int
    height: int = 1
    names: dict[str, int] = field(default_factory=dict[str, int])


class Box(Size):
    """A value of more fields than another."""

    depth: int


def test_fields_are_given_by_name() -> None:
    """A field that is added between others changes no call."""
    with pytest.raises(TypeError, match="positional"):
        Size(3, 4)  # pyright: ignore[reportCallIssue]
    with pytest.raises(TypeError, match="width"):
        Size()  # pyright: ignore[reportCallIssue]
    with pytest.raises(TypeError, match="depth"):
        Size(width=1, depth=2)  # pyright: ignore[reportCallIssue]
    assert Box(depth=3, width=1).height == 1


def test_a_value_does_not_change() -> None:
    """Another one is made of it; the original is unchanged."""
    size = Size(width=1)
    with pytest.raises(AttributeError, match="immutable"):
        size.width = 2  # pyright: ignore[reportAttributeAccessIssue]
    assert replace(size, width=2) == Size(width=2)
    assert size == Size(width=1)


class Proof(Value, weakref=True):
    token: int


def test_a_value_that_says_so_can_be_held_weakly() -> None:
    """Most are not: it costs each of them the room for one more reference."""
    proof = Proof(token=1)
    weak = ref(proof)
    assert weak() is proof
    del proof
    assert weak() is None
    with pytest.raises(TypeError, match="weak reference"):
        ref(Size(width=1))


def test_values_of_two_classes_are_never_equal() -> None:
    """Their fields may be; a width and a height do not make an area a size."""
    assert Size(width=1) != Area(width=1)
    assert Size(width=1) != Size(width=2)


def test_each_value_has_its_own_containers() -> None:
    """A default is made anew for each."""
    assert Size(width=1).names is not Size(width=1).names


class Account(Value):
    name: str
    token: Hidden[str] = ""


class Bank(Value):
    account: Account


def test_a_hidden_field_is_in_no_representation() -> None:
    """Neither its own nor that of what holds it; it counts in all else (P8)."""
    account = Account(name="Ann", token="secret")
    assert repr(Bank(account=account)) == "Bank(account=Account(name='Ann'))"
    assert f"{account!r:}" == "Account(name='Ann')"
    assert account.__rich_repr__() == [("name", "Ann")]
    assert account.token == "secret"
    assert account != Account(name="Ann")
