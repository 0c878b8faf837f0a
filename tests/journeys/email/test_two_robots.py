"""Two robots that write to each other, of which the other one heeds no header, come to an end. RFC 3834."""

from email.message import EmailMessage
from pathlib import Path

import pytest

from tests.contract.email_harness import body
from tests.journeys.email.mailing import Mailing, mailing

pytestmark = [pytest.mark.slow, pytest.mark.needs("dovecot", "postfix")]
THANKS = "Thank you for your mail"
AUTOMATIC = "auto-replied"


async def answers_itself(here: Mailing, robot: str, times: int) -> list[EmailMessage]:
    """Let a robot write, and answer so many answers, each with the one to it in sight."""
    here.model.say("You are welcome.", key=THANKS, times=None)
    await here.says(robot, THANKS, subject="hello")
    mails: list[EmailMessage] = []
    for number in range(1, times + 1):
        mails = await here.until(
            robot, lambda mails, number=number: mails if len(mails) == number else []
        )
        await here.says(robot, THANKS, subject="Re: hello", answers=str(mails[-1]["message-id"]))
    return mails


async def test_a_robot_is_answered_so_often_and_people_go_on(tmp_path: Path) -> None:
    """What it writes then stays unread; every answer had said that it is one.

    An operator is told so.
    """
    async with mailing(tmp_path, channel={"sender_per_hour": 3}) as here:
        mails = await answers_itself(here, here.ann, 3)
        assert {mail["auto-submitted"] for mail in mails} == {AUTOMATIC}
        here.model.say("It is 4.", key="What is 2+2?")
        await here.says(here.bob, "What is 2+2?", subject="the sums")
        await here.expect(here.bob, "It is 4.")
        assert len(await here.mail.mails(here.ann)) == 3
        [told] = await here.until(here.olga, lambda mails: mails)
        assert f"{here.ann} wrote 3 mails within an hour" in body(told)
        assert "sender_capped" in here.daemon.stderr


async def test_many_robots_stop_the_account_which_says_so(tmp_path: Path) -> None:
    """Nothing is answered any more, and the log says why in one line. P10."""
    async with mailing(tmp_path, channel={"account_per_hour": 3}) as here:
        await answers_itself(here, here.ann, 2)
        await here.until(here.ann, lambda mails: len(mails) == 3)
        await here.says(here.bob, THANKS, subject="hello")
        await here.until(here.bob, lambda _: "look like a loop" in here.daemon.stderr)
        [line] = [one for one in here.daemon.stderr.splitlines() if "look like a loop" in one]
        assert "3 mails within an hour" in line
        assert await here.mail.mails(here.bob) == []
        assert {body(mail) for mail in await here.mail.mails(here.ann)} == {"You are welcome."}
