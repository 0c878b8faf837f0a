"""The page's state has only what the page can draw."""

from channels.telegram.emulator import Emulator
from channels.telegram.emulator.view import snapshot
from channels.telegram.emulator.wire import is_array, is_object
from tests.fakes.manual_clock import ManualClock


def test_media_without_a_file_is_left_out() -> None:
    telegram = Emulator(clock=ManualClock())
    ann = telegram.person("Ann")
    message = ann.says("here").sent
    message.media = {"dice": 6, "photo": [], "document": {"file_id": "gone", "file_name": "a.txt"}}
    state = snapshot(telegram.account, telegram.now(), is_polled=False, calls=0)
    chats = state["chats"]
    assert is_array(chats)
    assert is_object(chats[0])
    messages = chats[0]["messages"]
    assert is_array(messages)
    assert is_object(messages[0])
    assert messages[0]["files"] == [{"kind": "document", "name": "a.txt", "path": ""}]
