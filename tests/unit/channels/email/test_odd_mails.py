"""Each odd mail of the corpus comes to what it must, and none does harm."""

import pytest

from tests.unit.channels.email.odd_mails import ODD, told


@pytest.mark.parametrize("name", ODD)
def test_an_odd_mail_comes_to_what_it_must(name: str) -> None:
    """The reason stands beside each; see the corpus."""
    odd = ODD[name]
    assert told(odd.raw) == odd.comes_to, odd.why
