"""Numbers of messages are known from the first moment on, as far as somebody has written."""

from channels.telegram import lookup
from channels.telegram.adapter import TelegramChannel
from channels.telegram.decode import Decoded, decode, position
from channels.telegram.lookup import MAX_COUNTERS, MessageIds
from tests.contract.telegram_harness import telegram_context
from tests.unit.channels.telegram.stage import stage
from tests.unit.channels.telegram.updates import ME, new
from zeroclaw.value import replace

GROUP, OTHER = "-1001111111111", "-1002222222222"


def stored(*messages: tuple[str, int]) -> dict[str, str]:
    """Return the positions that are stored with messages, the newest of each scope."""
    found = [position(chat, number) for chat, number in messages]
    return {one.scope: one.cursor for one in found}


def test_what_was_stored_is_known_to_the_next_process() -> None:
    """Of the counter that private chats and basic groups share, and of each supergroup's own."""
    ids = MessageIds(stored(("7", 3), (GROUP, 900), ("-5", 4)))
    assert [ids.newest(chat) for chat in ("7", "8", "-5", GROUP, OTHER)] == [4, 4, 4, 900, 0]
    assert ids.recent("8") == {4}
    assert ids.recent(GROUP) == {900}


def test_a_basic_group_is_told_from_a_supergroup_by_the_size_of_its_id() -> None:
    """Decoded for one it would be looked in where its counter stood long ago, and be told twice (P1)."""
    ids = MessageIds(stored(("-1001234567", 900), ("-999999999999", 901), ("-1010000000001", 5)))
    assert [ids.newest(chat) for chat in ("7", "1099511627775")] == [901, 901]
    assert ids.newest("-1010000000001") == 5


def test_what_can_not_be_read_is_not_known() -> None:
    ids = MessageIds({"shared": "many", GROUP: ""})
    assert (ids.newest("7"), ids.newest(GROUP)) == (0, 0)


def test_groups_that_are_silent_make_room_for_others() -> None:
    """Anybody may take the bot into groups without end; where people write stays known (P4)."""
    ids = MessageIds({})
    ids.add("7", 3)
    for number in range(2 * MAX_COUNTERS):
        ids.add(f"-1009{number:09d}", 5)
        ids.add(GROUP, number)
    assert (ids.newest("7"), ids.recent("7")) == (3, {3})
    assert ids.newest(GROUP) == 2 * MAX_COUNTERS - 1
    known = [number for number in range(2 * MAX_COUNTERS) if ids.newest(f"-1009{number:09d}")]
    assert known[0] > 1
    assert len(known) <= MAX_COUNTERS


def test_a_message_brings_its_number() -> None:
    """It is committed with what it says, and costs no commit of its own."""
    found = decode(new(text="hello"), ME)
    assert isinstance(found, Decoded)
    assert found.envelope.position == position("7", 3)


async def test_an_adapter_begins_with_what_was_stored() -> None:
    """Before anybody writes it can say from where to look for what it sends (P1, P5)."""
    async with stage() as on:
        context = telegram_context(on.telegram, on.clock, on.settings)
        channel = TelegramChannel(replace(context, positions=stored(("7", 3))))
        mark = lookup.read(channel.mark(on.address(8)))
        await channel.aclose()
        assert mark is not None
        assert (mark.at, channel.mark(on.address(int(GROUP)))) == (3, "")
