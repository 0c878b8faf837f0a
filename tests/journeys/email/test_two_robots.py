"""Two robots that write to each other, of which the other one heeds no header, come to an end. RFC 3834."""

from email.message import EmailMessage
from pathlib import Path

import pytest

from tests.contract.email_harness import body
from tests.journeys.email.mailing import Mailing, mailing

pytestmark = [pytest.mark.slow, pytest.mark.needs("dovecot", "postfix")]
THANKS = "Thank you for your mail"
AUTOMATIC = "auto-replied"


async def answers_itself(world: Mailing, robot: str, times: int) -> list[EmailMessage]:
    """Let a robot write, and answer so many answers, each with the one to it in sight."""
    world.model.say("You are welcome.", key=THANKS, times=None)
    await world.says(robot, THANKS, subject="hello")
    mails: list[EmailMessage] = []
    for number in range(1, times + 1):
        mails = await world.until(
            robot, lambda mails, number=number: mails if len(mails) == number else []
        )
        await world.says(robot, THANKS, subject="Re: hello", answers=str(mails[-1]["message-id"]))
    return mails


async def test_a_robot_is_answered_so_often_and_people_go_on(tmp_path: Path) -> None:
    """Its later mails stay unread; every answer was marked as automatic.

    An operator reads that.
    """
    async with mailing(tmp_path, channel={"sender_per_hour": 3}) as world:
        mails = await answers_itself(world, world.ann, 3)
        assert {mail["auto-submitted"] for mail in mails} == {AUTOMATIC}
        world.model.say("It is 4.", key="What is 2+2?")
        await world.says(world.bob, "What is 2+2?", subject="the sums")
        await world.expect(world.bob, "It is 4.")
        assert len(await world.mail.mails(world.ann)) == 3
        [notice] = await world.until(world.olga, lambda mails: mails)
        assert f"{world.ann} wrote 3 mails within an hour" in body(notice)
        assert "sender_capped" in world.daemon.stderr


async def test_many_robots_stop_the_account_which_says_so(tmp_path: Path) -> None:
    """Nothing is answered any more, and the log says why in one line. P10."""
    async with mailing(tmp_path, channel={"account_per_hour": 3}) as world:
        await answers_itself(world, world.ann, 2)
        await world.until(world.ann, lambda mails: len(mails) == 3)
        await world.says(world.bob, THANKS, subject="hello")
        await world.until(world.bob, lambda _: "look like a loop" in world.daemon.stderr)
        [line] = [
            line_ for line_ in world.daemon.stderr.splitlines() if "look like a loop" in line_
        ]
        assert "3 mails within an hour" in line
        assert await world.mail.mails(world.bob) == []
        assert {body(mail) for mail in await world.mail.mails(world.ann)} == {"You are welcome."}
