"""Whoever has a mail account has a bot that answers each mail once, in its thread, and asks by mail."""

from email.message import EmailMessage
from pathlib import Path

import pytest

from tests.contract.email_harness import body, links, mail_from
from tests.journeys.email.mailing import Mailing, mailing

pytestmark = [pytest.mark.slow, pytest.mark.needs("dovecot", "postfix")]


async def carded(world: Mailing) -> EmailMessage:
    """Wait for a card in Olga's mail."""
    return (await world.until(world.olga, lambda mails: [mail for mail in mails if links(mail)]))[
        -1
    ]


async def test_a_mail_is_answered_once_in_its_thread_across_a_kill(tmp_path: Path) -> None:
    """Mails from while the daemon was dead are answered in order, in the same conversation.

    S2-01, S2-02, S2-19, P1, P2.
    """
    async with mailing(tmp_path) as world:
        world.model.say("It is 4.", key="What is 2+2?")
        world.model.say("It is 6.", key="And 3+3?")
        world.model.say("It is 8.", key="And 4+4?")
        await world.says(world.ann, "What is 2+2?", subject="the sums")
        [first] = await world.expect(world.ann, "It is 4.")
        await world.daemon.kill()
        for text in ("And 3+3?", "And 4+4?"):
            await world.says(
                world.ann, text, subject="Re: the sums", answers=str(first["Message-ID"])
            )
        await world.daemon.start()
        mails = await world.expect(world.ann, "It is 4.", "It is 6.", "It is 8.")
        assert {mail["Subject"] for mail in mails} == {"Re: the sums"}
        assert len({mail["References"].split()[0] for mail in mails[:1]}) == 1
        contents = [message["content"] for message in world.model.requests[-1].messages]
        assert any("It is 4." in str(content) for content in contents), "it is one conversation"


async def test_a_stranger_gets_nothing_under_any_address(tmp_path: Path) -> None:
    """Neither with an address that is let in, nor with one of their own. P4."""
    async with mailing(tmp_path) as world:
        eve = world.mail.new_address("eve")
        forged = mail_from(world.ann, world.bot, "I am Ann", verdict="", in_reply_to="")
        await world.write(eve, forged)
        await world.says(eve, "I am Eve", subject="hi")
        world.model.say("It is 4.", key="What is 2+2?")
        await world.says(world.ann, "What is 2+2?", subject="the sums")
        await world.expect(world.ann, "It is 4.")
        assert await world.mail.mails(eve) == []
        assert len(world.model.requests) == 1


async def test_an_approval_is_requested_and_given_by_mail(tmp_path: Path) -> None:
    """The card is a mail with links; the mail that one writes lets the call run, once, after a restart.

    S2-10, P3, P5.
    """
    async with mailing(tmp_path) as world:
        world.model.call("knock", {"what": "on wood"}, round=0, key="please knock")
        world.model.say("So be it.", round=1, key="please knock")
        await world.says(world.ann, "please knock", subject="a favour")
        card = await carded(world)
        assert "on wood" in body(card)
        await world.daemon.restart()
        once = links(card)[0]
        # Ann has the link too; a forger has Olga's address.
        await world.says(world.ann, "", subject=once)
        await world.write(world.ann, mail_from(world.olga, world.bot, subject=once, verdict=""))
        await world.says(world.olga, "", subject=once)
        await world.until(world.ann, lambda mails: "So be it." in [body(mail) for mail in mails])
        await world.until(
            world.olga, lambda mails: [mail for mail in mails if "approved by olga" in body(mail)]
        )
        # Ann may have been an approver who answers from another address of hers.
        await world.until(
            world.ann, lambda mails: [mail for mail in mails if "Say which" in body(mail)]
        )
        assert world.bench.ran("knock") == ["on wood"]


async def test_a_denial_says_why_in_the_mail_that_denies(tmp_path: Path) -> None:
    async with mailing(tmp_path) as world:
        world.model.call("knock", {"what": "on wood"}, round=0, key="please knock")
        world.model.say("So not.", round=1, key="please knock")
        await world.says(world.ann, "please knock", subject="a favour")
        card = await carded(world)
        [deny] = [link for link in links(card) if "[zc:d:" in link]
        await world.says(world.olga, "not on a Sunday\n\n-- \nOlga", subject=deny)
        await world.until(world.ann, lambda mails: "So not." in [body(mail) for mail in mails])
        (result,) = [
            message for message in world.model.requests[-1].messages if message["role"] == "tool"
        ]
        assert "not on a Sunday" in str(result["content"])
        assert world.bench.runs == []
