"""Message numbers are known from the start, as far as they are stored."""

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
    positions = [position(chat, number) for chat, number in messages]
    return {row.scope: row.cursor for row in positions}


def test_stored_numbers_are_known_to_the_next_process() -> None:
    """The counter shared by private chats and basic groups, and each supergroup's own."""
    ids = MessageIds(stored(("7", 3), (GROUP, 900), ("-5", 4)))
    assert [ids.newest(chat) for chat in ("7", "8", "-5", GROUP, OTHER)] == [4, 4, 4, 900, 0]
    assert ids.recent("8") == {4}
    assert ids.recent(GROUP) == {900}


def test_basic_groups_and_supergroups_are_distinguished_by_id() -> None:
    """Otherwise the lookup would use an old counter, and the message would be sent twice (P1)."""
    ids = MessageIds(stored(("-1001234567", 900), ("-999999999999", 901), ("-1010000000001", 5)))
    assert [ids.newest(chat) for chat in ("7", "1099511627775")] == [901, 901]
    assert ids.newest("-1010000000001") == 5


def test_invalid_positions_are_ignored() -> None:
    ids = MessageIds({"shared": "many", GROUP: ""})
    assert (ids.newest("7"), ids.newest(GROUP)) == (0, 0)


def test_inactive_groups_make_room_for_others() -> None:
    """Anyone may add the bot to endless groups; active groups stay known (P4)."""
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
    """It is committed with the message, without a separate commit."""
    event = decode(new(text="hello"), ME)
    assert isinstance(event, Decoded)
    assert event.envelope.position == position("7", 3)


async def test_an_adapter_starts_with_the_stored_numbers() -> None:
    """Before the first message it has a mark for lookups of its sends (P1, P5)."""
    async with stage() as on:
        context = telegram_context(on.telegram, on.clock, on.settings)
        channel = TelegramChannel(replace(context, positions=stored(("7", 3))))
        mark = lookup.read(channel.mark(on.address(8)))
        await channel.aclose()
        assert mark is not None
        assert (mark.at, channel.mark(on.address(int(GROUP)))) == (3, "")
