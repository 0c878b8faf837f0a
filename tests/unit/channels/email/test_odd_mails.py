"""Each odd mail of the corpus comes to what it must, and none does harm."""

import pytest

from channels.email.adapter import EmailChannel
from tests.contract.email_harness import email_context
from tests.fakes.manual_clock import ManualClock
from tests.unit.channels.email.letters import ME, fetched, reply
from tests.unit.channels.email.odd_mails import ODD_MAILS, summary
from zeroclaw import Address, TranscriptItem, replace


@pytest.mark.parametrize("name", ODD_MAILS)
def test_an_odd_mail_comes_to_what_it_must(name: str) -> None:
    """The reason stands beside each; see the corpus."""
    odd = ODD_MAILS[name]
    assert summary(odd.raw) == odd.expected, odd.reason


async def test_a_fault_of_ours_takes_no_mail_for_an_odd_one() -> None:
    """Such a mail stays unread for good, so only what reads it may say that it can't be read."""

    async def transcript(_place: Address, _after: str) -> tuple[TranscriptItem, ...]:
        raise ValueError("a fault of the store")

    context = email_context(ME.settings, ManualClock(), positions={})
    channel = EmailChannel(replace(context, transcript=transcript))
    mail = fetched(reply("It costs three euros, and the shop opens at nine."))
    with pytest.raises(ValueError, match="of the store"):
        await channel._decode(mail)  # pyright: ignore[reportPrivateUsage]  without any server
