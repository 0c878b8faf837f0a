"""Each odd mail of the corpus is decoded as expected, and none does harm."""

from pathlib import Path

import pytest

from channels.email.adapter import EmailChannel
from tests.contract.email_harness import email_context
from tests.fakes.manual_clock import ManualClock
from tests.unit.channels.email.letters import ME, fetched, reply
from tests.unit.channels.email.odd_mails import ODD_MAILS, summary
from zeroclaw import Address, TranscriptItem, replace


@pytest.mark.parametrize(("raw", "expected"), ODD_MAILS.values(), ids=ODD_MAILS)
def test_an_odd_mail_is_decoded_as_expected(raw: bytes, expected: str) -> None:
    """Each has its reason in the corpus."""
    assert summary(raw) == expected


async def test_an_error_of_ours_is_not_blamed_on_the_mail(tmp_path: Path) -> None:
    """An unreadable mail stays unread for good, so only a decoding error may mark it so."""

    async def transcript(_place: Address, _after: str) -> tuple[TranscriptItem, ...]:
        raise ValueError("a fault of the store")

    context = email_context(ME.settings, ManualClock(), positions={}, directory=tmp_path)
    channel = EmailChannel(replace(context, transcript=transcript))
    mail = fetched(reply("It costs three euros, and the shop opens at nine."))
    with pytest.raises(ValueError, match="of the store"):
        await channel._decode(mail)  # pyright: ignore[reportPrivateUsage]  without any server
