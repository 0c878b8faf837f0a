"""What a person does at a local chat, read into the bodies of envelopes."""

import pytest

from channels._local import decode
from zeroclaw import Command, Envelope, Said


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("/stop", Command(name="stop")),
        ("  /Stop  ", Command(name="stop")),
        ("/deny 2 because  of that", Command(name="deny", rest="2 because  of that")),
        ('/tool shell {"a":\n "/b"}', Command(name="tool", rest='shell {"a":\n "/b"}')),
        ("/tool\nshell {}", Command(name="tool", rest="shell {}")),
        ("hello", Said(text="hello")),
        ("see /stop", Said(text="see /stop")),
        ("/usr/bin/env", Said(text="/usr/bin/env")),
        ("/ stop", Said(text="/ stop")),
        (" /Deny 1  because no\n", Command(name="deny", rest="1  because no")),
        ("/", Said(text="/")),
        ("//comment", Said(text="//comment")),
    ],
)
def test_a_slash_and_a_word_is_a_command(text: str, read: Said | Command) -> None:
    event = decode.envelope("web", "web", decode.Message(id="12345678", text=text))
    assert isinstance(event, Envelope)
    assert event.body == read
