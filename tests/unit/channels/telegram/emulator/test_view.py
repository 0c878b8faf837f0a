"""The page is shown what it can draw, and the rest is left out."""

from channels.telegram.emulator import Emulator
from channels.telegram.emulator.view import snapshot
from channels.telegram.emulator.wire import is_array, is_object
from tests.fakes.manual_clock import ManualClock


def test_media_that_is_no_file_is_passed_over() -> None:
    telegram = Emulator(clock=ManualClock())
    ann = telegram.person("Ann")
    said = ann.says("here").sent
    said.media = {"dice": 6, "photo": [], "document": {"file_id": "gone", "file_name": "a.txt"}}
    seen = snapshot(telegram.account, telegram.now(), is_polled=False, calls=0)
    chats = seen["chats"]
    assert is_array(chats)
    assert is_object(chats[0])
    messages = chats[0]["messages"]
    assert is_array(messages)
    assert is_object(messages[0])
    assert messages[0]["files"] == [{"kind": "document", "name": "a.txt", "path": ""}]
