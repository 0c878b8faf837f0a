"""One account's calls are granted in turn, and none of them hangs."""

import asyncio
import re
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes.manual_clock import EPOCH
from tests.fakes.scripted_channel import Hang
from tests.unit.delivery.rig import (
    CALL_TIMEOUT_S,
    CAPABILITIES,
    as_it_is,
    platform,
    running,
    unnoted,
)
from zeroclaw.channel import Budget
from zeroclaw.delivery.account import AT_ONCE_CHARS, REFUSED_S, Account, Markdown, is_slow
from zeroclaw.delivery.outcomes import Delivered, Rejected, Unknown, Unreachable
from zeroclaw.delivery.pacing import Rank
from zeroclaw.delivery.posting import split_text
from zeroclaw.envelope import Address, CheckedReceipt, OutgoingFile
from zeroclaw.errors import ChannelRejected, ChannelUnauthorized, NotSupported, RateLimited
from zeroclaw.redact import MARKER
from zeroclaw.value import replace

SLOW = replace(CAPABILITIES, account_budget=Budget(per_s=0.1))
PLACE = Address(channel="chat", account="bot", chat="c", direct=True)


async def test_a_cancelled_wait_gives_its_place_away() -> None:
    """A cancelled caller uses up no budget."""
    async with running(platform(SLOW)) as rig:
        account = rig.accounts["chat"]
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(5), account.permitted(PLACE):
                pass
        async with account.permitted(PLACE):
            assert rig.clock.monotonic() == 10


async def test_a_final_that_comes_later_is_granted_before_a_draft() -> None:
    """With one budget for both (P6)."""
    granted: list[str] = []
    async with running(platform(SLOW)) as rig:
        account = rig.accounts["chat"]
        account.request_call(
            "d", place=PLACE, rank=Rank.DRAFT, message="", granted=lambda: granted.append("draft")
        )
        async with account.permitted(PLACE):
            granted.append("final")
        await rig.clock.sleep(11)
        assert granted == ["final", "draft"]


async def test_a_chat_that_several_people_read_has_the_budget_of_groups() -> None:
    """As its address says; a private chat beside it keeps its own (P6)."""
    group = replace(PLACE, chat="g", direct=False)
    async with running(platform(replace(CAPABILITIES, group_budget=Budget(per_s=0.05)))) as rig:
        account = rig.accounts["chat"]
        async with account.permitted(PLACE):
            assert rig.clock.monotonic() == 0
        async with account.permitted(group):
            assert rig.clock.monotonic() == 20


async def test_a_call_that_hangs_ends_as_lost() -> None:
    """Within its time-out, for any adapter (P9)."""
    async with running(platform()) as rig:
        rig.channel.will("send", Hang())
        outcome = await rig.accounts["chat"].post(
            rig.channel.address(), Markdown(text="a", key="k")
        )
        assert outcome == Unknown(reason="no answer within 20 s", late=True)
        assert rig.clock.monotonic() == CALL_TIMEOUT_S


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (
            RateLimited("slow down", retry_after_s=3),
            Unreachable(reason="slow down", retry_after_s=3),
        ),
        (ChannelRejected("gone", gone=True), Rejected(reason="gone", gone=True)),
        (NotSupported("no"), Rejected(reason="no")),
        (ValueError("secret"), Unknown(reason="raised ValueError", broken=True)),
    ],
)
async def test_every_exception_of_a_channel_becomes_an_outcome(
    error: Exception, outcome: object
) -> None:
    """A stranger's text stays inside (P8)."""
    async with running(platform()) as rig:
        rig.channel.will("send", error)
        assert (
            await rig.accounts["chat"].post(rig.channel.address(), Markdown(text="a", key="k"))
            == outcome
        )


async def test_an_owner_that_shuts_down_is_asked_for_no_alarm() -> None:
    """Whoever still asks then is simply not granted."""
    channel, granted = platform(SLOW), list[str]()
    async with running(channel) as rig:
        async with asyncio.TaskGroup() as owner:
            account = Account(
                channel=channel,
                clock=rig.clock,
                group=owner,
                call_timeout_s=1,
                calls_at_once=1,
                screen=as_it_is,
                note_refused=unnoted,
            )
        account.request_call(
            "d", place=PLACE, rank=Rank.DRAFT, message="", granted=lambda: granted.append("draft")
        )
        await rig.clock.sleep(60)
    assert granted == []


async def test_a_new_adapter_obeys_the_waits_of_the_one_before_it() -> None:
    """An adapter that failed is made anew, and the platform's wait goes on (P6)."""
    async with running(platform()) as rig:
        rig.channel.will("send", RateLimited("slow down", retry_after_s=7))
        account, to = rig.accounts["chat"], rig.channel.address()
        await account.post(to, Markdown(text="a", key="k"))
        account.swap_channel(platform())
        async with account.permitted(to):
            assert rig.clock.monotonic() == 7


async def test_a_wait_that_a_replaced_adapter_receives_is_obeyed_too() -> None:
    """A call over it may still be under way; until it has ended its chat has no other (P6)."""
    async with running(platform()) as rig:
        account, to, called = rig.accounts["chat"], rig.channel.address(), list[float]()

        async def post(takes_s: float) -> None:
            async with account.permitted(to):
                called.append(rig.clock.monotonic())
                await rig.clock.sleep(takes_s)
                await account.post(to, Markdown(text="a", key="k"))

        after = platform()
        after.will("send", RateLimited("slow down", retry_after_s=7))
        rig.group.create_task(post(2))
        await rig.clock.sleep(1)
        account.swap_channel(after)
        await post(0)
        assert called == [0, 9]


REFUSED = ChannelUnauthorized("the login was refused")


async def test_refused_credentials_are_tried_seldom_whatever_waits() -> None:
    """Some servers lock an account that fails to log in too often; one answer ends the outage."""
    async with running(platform()) as rig:
        account, to = rig.accounts["chat"], rig.channel.address()

        async def post() -> object:
            return await account.post(to, Markdown(text="a", key="k"))

        rig.channel.will("send", *[REFUSED] * 4)
        assert await post() == Unreachable(reason="the login was refused", needs_operator=True)
        held = Unreachable(reason="`chat` has refused the credentials just now")
        for wait_s in REFUSED_S[:2]:
            await rig.clock.sleep(wait_s - 0.5)
            assert await post() == held
            await rig.clock.sleep(0.5)
            assert await post() == Unreachable(reason="the login was refused", needs_operator=True)
        account.retry_now()
        assert await post() == Unreachable(reason="the login was refused", needs_operator=True)
        account.retry_now()
        assert isinstance(await post(), Delivered)
        reason = "the login was refused"
        assert rig.refusals == [(reason, 1), (reason, 2), (reason, 3), (reason, 4), ("", 0)]


async def test_credentials_that_are_refused_for_several_calls_at_once_count_once() -> None:
    """A server that is only just up again refuses them all together."""
    async with running(platform()) as rig:
        account, chats = rig.accounts["chat"], ("1", "2", "3")
        rig.channel.will("send", *[REFUSED] * 3)
        posts = (
            account.post(rig.channel.address(chat), Markdown(text="a", key=chat)) for chat in chats
        )
        async with asyncio.TaskGroup() as group:
            for post in posts:
                group.create_task(post)
        assert rig.refusals == [("the login was refused", 1)]


def masked(text: str, *, growing: bool = False) -> str:
    """A last look that knows one word, and while a text grows its beginning."""
    shown = text.replace("secret", "[redacted]")
    return shown.replace("sec", "…") if growing else shown


async def test_all_that_goes_out_is_looked_at_as_it_was_rendered() -> None:
    """The platform in memory drops `*`, so only what is rendered holds the word (P6, P7)."""
    can = replace(CAPABILITIES, native_draft=True, can_lookup=True, max_file_bytes=10)
    to = replace(PLACE, chat="c1")
    file = OutgoingFile(
        name="secret.txt", media_type="text/plain", content=b"x", key="f", caption="a secret"
    )
    async with running(platform(can), screen=masked) as rig:
        account = rig.accounts["chat"]
        proof = CheckedReceipt(token="t", tool="look", summary="a secret", outcome="ok", at=EPOCH)
        sent = await account.post(to, Markdown(text="a sec*ret*", key="k", receipts=(proof,)))
        await account.post(to, file)
        assert isinstance(sent, Delivered)
        assert [message.text for message in rig.channel.standing(to)] == [
            "a [redacted]",
            "a [redacted]",
        ]
        assert [receipt.summary for receipt in rig.channel.standing(to)[0].receipts] == [
            "a [redacted]"
        ]
        files = [message.file for message in rig.channel.standing(to) if message.file is not None]
        assert [file.name for file in files] == ["[redacted].txt"]
        await account.edit(sent.value, Markdown(text="a secr*et* b", key="k"))
        assert rig.channel.standing(to)[0].text == "a [redacted] b"
        await account.edit(sent.value, replace(file, caption="the secret"))
        assert rig.channel.standing(to)[0].text == "the [redacted]"
        text = Markdown(text="s*ecret*", key="k")
        await account.lookup(to, text, since="0", apart=frozenset())
        assert rig.channel.standing(to)[0].text == "[redacted]"
        await account.lookup(to, file, since="0", apart=frozenset())
        await account.preview(to, Markdown(text="a *sec*", key="k", draft=True))
        assert rig.channel.previews == {to.key(): "a …"}


async def test_a_text_without_findings_keeps_its_markup_and_one_with_none_is_cut_to_fit() -> None:
    """What stands for a secret may be longer than the secret, and the platform's limit is one."""
    can = replace(CAPABILITIES, max_length=20)
    async with running(platform(can), screen=masked) as rig:
        account = rig.accounts["chat"]
        message = account.outgoing(Markdown(text="a *b*", key="k"))
        assert (message.rendered, message.plain) == (rig.channel.render("a *b*"), False)
        assert (
            account.outgoing(Markdown(text="secret secret", key="k")).rendered.plain
            == "[redacted] [redact"
        )


async def test_a_part_that_completes_what_the_one_before_it_began_is_withheld() -> None:
    """Cut between two messages it is read as one; each by itself holds nothing (P6)."""

    def across(text: str, *, growing: bool = False) -> str:
        return masked(text.replace("\n", ""), growing=growing) if "sec\nret" in text else text

    async with running(platform(), screen=across) as rig:
        account = rig.accounts["chat"]
        assert account.redact_parts(["a *sec*", "ret b", "c"]) == ("a *sec*", "[redacted]", "c")
        assert account.redact_parts(["a", "b"]) == ("a", "b")


async def test_the_rest_of_what_is_masked_in_the_part_before_is_withheld() -> None:
    """What the first part holds is found there already, and goes on in the second (P6)."""

    def lines(text: str, *, growing: bool = False) -> str:
        return re.sub(r"BEGIN( KEY|\w|\n)*", MARKER, text)

    async with running(platform(), screen=lines) as rig:
        parts = ["a BEGIN KEY\nMII", "BVgIBADA", "c d"]
        account = rig.accounts["chat"]
        assert account.redact_parts(parts) == (parts[0], MARKER, parts[2])


async def test_a_text_that_was_screened_is_not_screened_again() -> None:
    """A draft of many messages shows a frame several times a second."""
    screened: list[str] = []

    def counting(text: str, *, growing: bool = False) -> str:
        screened.append(text)
        return masked(text, growing=growing)

    async with running(platform(), screen=counting) as rig:
        account = rig.accounts["chat"]
        first = account.redact_parts(["secret", "b", "c", "d"])
        assert len(screened) == 7
        screened.clear()
        assert account.redact_parts(["secret", "b", "c", "d grows"], first[:3]) == (
            *first[:3],
            "d grows",
        )
        assert len(screened) == 3


@pytest.mark.parametrize(("chars", "leaves"), [(AT_ONCE_CHARS, False), (AT_ONCE_CHARS + 1, True)])
async def test_a_long_text_is_rendered_and_looked_at_off_the_loop(chars: int, leaves: bool) -> None:
    """It takes milliseconds, in which no other chat would be answered (P9)."""
    threads = set[bool]()

    def noting(text: str, *, growing: bool = False) -> str:
        threads.add(threading.current_thread() is not threading.main_thread())
        return masked(text, growing=growing)

    can = replace(CAPABILITIES, native_draft=True, max_length=chars)
    async with running(platform(can), screen=noting) as rig:
        account, to = rig.accounts["chat"], replace(PLACE, chat="c1")
        sent = await account.post(to, Markdown(text="a" * chars, key="k"))
        assert isinstance(sent, Delivered)
        await account.edit(sent.value, Markdown(text="b" * chars, key="k"))
        await account.preview(to, Markdown(text="c" * chars, key="k"))
        assert threads == {leaves}
        assert [message.text for message in rig.channel.standing(to)] == ["b" * chars]


@given(text=st.text(alphabet="a \n![]&*_`<#-=>|~", max_size=600))
def test_a_text_full_of_markup_is_long_much_sooner(text: str) -> None:
    """Each sign counts as ten letters more; short texts and plain ones are as long as they are."""
    signs = sum(sign not in "a " for sign in text)
    assert is_slow(text) is (len(text) + 10 * signs > AT_ONCE_CHARS)


async def test_an_answer_that_markup_makes_long_is_measured_off_the_loop() -> None:
    """However long a message of the platform may be, no chat waits for its parser (P9)."""
    text, threads = "![" * 1_000, set[bool]()

    def fits(part: str) -> bool:
        threads.add(threading.current_thread() is not threading.main_thread())
        return len(part) <= 50_000

    assert await split_text(text, fits) == (text,)
    assert await split_text("word " * 5_000, fits)
    assert threads == {True}
