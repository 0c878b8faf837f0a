"""Telegram's own drafts: what is seen while it is written, in the place and the words of the answer."""

import pytest

from channels.telegram.emulator import BadMarkup, Refuse, TooMany
from tests.unit.channels.telegram.stage import Stage, stage
from zeroclaw import ChannelRejected, NotSupported, RateLimited, ZeroclawError
from zeroclaw.value import replace

# All open real sockets.
pytestmark = pytest.mark.slow

METHOD = "sendMessageDraft"


def drafts(on: Stage) -> list[object]:
    """The numbers of the drafts that were shown, in order."""
    return [call.parameters.number("draft_id") for call in on.telegram.called(METHOD)]


async def test_the_same_key_has_the_same_number_in_every_process() -> None:
    """So a restart goes on in the draft of before, and the next message has another."""
    async with stage() as on:
        place = on.place(on.telegram.person("Ann").id)
        await on.channel.preview(place, on.outgoing("one"))
        again = on.restarted()
        await again.channel.preview(place, again.outgoing("one two"))
        await again.channel.preview(place, replace(again.outgoing("next"), key="k2"))
        await again.channel.aclose()
        [first, second, other] = drafts(on)
        assert first == second != other
        assert 0 not in (first, other)


async def test_it_is_shown_in_its_topic() -> None:
    async with stage() as on:
        ann = on.telegram.person("Ann")
        topic = on.telegram.topic(ann.chat, "aside")
        place = replace(on.place(ann.id), thread=str(topic.id))
        await on.channel.preview(place, on.outgoing("*one*"))
        assert ann.chat.drafts[topic.id].texts == ("one",)
        assert 0 not in ann.chat.drafts


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        (Refuse(code=404, description="Not Found: method not found"), NotSupported),
        (Refuse(code=400, description="Bad Request: TEXTDRAFT_PEER_INVALID"), ChannelRejected),
        (BadMarkup(), ChannelRejected),
        (TooMany(retry_after_s=3), RateLimited),
    ],
    ids=repr,
)
async def test_a_refusal_says_what_to_do_next(
    fault: Refuse | BadMarkup | TooMany, expected: type[ZeroclawError]
) -> None:
    """Only a method that is not there means that there are no previews at all."""
    async with stage() as on:
        on.telegram.will(METHOD, fault)
        with pytest.raises(expected):
            await on.channel.preview(on.place(on.telegram.person("Ann").id), on.outgoing("one"))


async def test_where_it_is_not_wished_nothing_is_called() -> None:
    """`drafts = "edited"`."""
    async with stage(drafts="edited") as on:
        with pytest.raises(NotSupported):
            await on.channel.preview(on.place(on.telegram.person("Ann").id), on.outgoing("one"))
        assert on.telegram.called(METHOD) == []
