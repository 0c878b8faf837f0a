"""Files of a workspace in a whole house: the model sends one to a chat."""

import asyncio
from pathlib import Path

import pytest

from tests.fakes.house import House, World
from tests.fakes.house_parts import CAPABILITIES, SECRET
from tests.fakes.scripted_channel import Hang, Lost, Shown
from tests.fakes.scripted_model import LOOK, asks_for, says
from zeroclaw.delivery import rows
from zeroclaw.delivery.rows import OUTBOX
from zeroclaw.errors import ChannelRejected, DeliveryUnknown
from zeroclaw.message import ToolMessage
from zeroclaw.redact import MARKER
from zeroclaw.store import DurablePoint, RowKind
from zeroclaw.tool import ToolContext, ToolFile, ToolOutput
from zeroclaw.tools import files
from zeroclaw.value import replace

TAKES = replace(CAPABILITIES, max_file_bytes=1_000)
REPORT = b"name;sum\nAnn;3\n"
NOTE = ToolFile(name="a.txt", media_type="text/plain", content=b"milk")


@pytest.fixture
def world(tmp_path: Path) -> World:
    """Ada and Ben, with the real tools for files, on a platform that takes some."""
    world = World(tmp_path)
    world.add_platform("chat", TAKES)
    world.configure(autonomy="full")
    world.others = files.tools(files.FilesSettings())
    return world


async def furnished(house: House, person: str = "ada", room: str = "") -> Path:
    """Make this person's workspace, and return it."""
    house.world.model.otherwise(asks_for(("list_files", "{}")), says("nothing"))
    await house.say("look", person, room=room)
    newest = (await house.rows(RowKind.TURN))[-1]
    return house.parts.start.places.workspaces / str(newest.conversation)


async def put(workspace: Path, name: str, content: bytes) -> None:
    await asyncio.to_thread((workspace / name).write_bytes, content)


def sent(house: House, person: str = "ada", room: str = "") -> list[Shown]:
    """The files shown in a chat."""
    place = house.place(person, room)
    messages = house.world.platforms["chat"].standing(place)
    return [message for message in messages if message.file is not None]


def tool_result(house: House) -> str:
    """The last tool result that the model got."""
    messages = house.world.model.requests[-1].messages
    return [message.content for message in messages if isinstance(message, ToolMessage)][-1]


async def send(house: House, arguments: str, person: str = "ada", room: str = "") -> str:
    """Have the model send a file; return the tool's result."""
    house.world.model.otherwise(asks_for(("send_file", arguments)), says("there it is"))
    await house.say("send it", person, room=room)
    return tool_result(house)


async def test_a_file_is_posted_once_before_the_answer(world: World) -> None:
    """Its bytes, its name and its caption; the row is delivered and holds its message (P1)."""
    async with world.running() as house:
        await put(await furnished(house), "sums.csv", REPORT)
        answer = await send(house, '{"path": "sums.csv", "caption": "the *sums*"}')
        assert "`sums.csv` goes to the chat as `sums.csv`: 15 bytes" in answer
        [shown] = sent(house)
        assert shown.file is not None
        assert (shown.file.name, shown.file.media_type) == ("sums.csv", "text/csv")
        assert (shown.file.content, shown.file.caption) == (REPORT, "the *sums*")
        assert house.texts()[-2:] == ["the *sums*", "there it is"]
        posts = list(map(OUTBOX.of, await house.rows(RowKind.OUTBOX, "delivered")))
        assert [post.ref for post in posts if isinstance(post, rows.FilePost)] == [shown.ref]


async def test_in_a_group_a_file_replies_to_the_message(world: World) -> None:
    async with world.running() as house:
        await put(await furnished(house, room="team"), "a.txt", b"milk")
        await send(house, '{"path": "a.txt"}', room="team")
        [shown] = sent(house, room="team")
        assert shown.file is not None
        assert shown.file.reply_to == "p2"


@pytest.mark.parametrize(
    ("name", "content", "complaint"),
    [
        ("env", f"PASSWORD={SECRET}".encode(), "`env` holds a secret, or what looks like one"),
        ("wide", f"x {SECRET}".encode("utf-16"), "`wide` holds a secret"),
        ("wider", f"x {SECRET}".encode("utf-32"), "`wider` holds a secret"),
        ("unmarked", f"x {SECRET}".encode("utf-16-be"), "`unmarked` holds a secret"),
        ("packed", b"\0\1" + SECRET.encode() + b"\xff", "`packed` holds a secret"),
        ("a.mp3", b"\xff\xfe\0" + SECRET.encode() + b"\0", "`a.mp3` holds a secret"),
        ("key", b"sk-abcdefghij0123456789abcdef", "`key` holds a secret"),
        ("key.eml", b"sk-abcdefghij0123456789abcdef", "`key.eml` holds a secret"),
        ("large", b"x" * 1_001, "`large` has 1,001 bytes, and 1,000 is the most that can be sent"),
        ("empty", b"", "`empty` is empty, and an empty file can't be sent"),
    ],
)
async def test_a_file_that_must_not_leave_is_not_sent_and_the_model_learns_why(
    world: World, name: str, content: bytes, complaint: str
) -> None:
    """A file can't be redacted, so one that holds a known secret is not sent at all (P8)."""
    async with world.running() as house:
        await put(await furnished(house), name, content)
        assert complaint in await send(house, f'{{"path": "{name}"}}')
        assert sent(house) == []
        assert SECRET not in tool_result(house)
        assert (await house.audited())[-1] == "failed"


@pytest.mark.parametrize(
    ("output", "count"),
    [
        (ToolOutput(text="ten", files=(NOTE,) * 10), 10),
        (ToolOutput(text="eleven", files=(NOTE,) * 11), 0),
        (ToolOutput(text="it broke", files=(NOTE,), is_error=True), 0),
    ],
    ids=["as many as one call may", "one more", "of a call that failed"],
)
async def test_a_tool_sends_files_up_to_a_limit_and_none_if_it_fails(
    world: World, output: ToolOutput, count: int
) -> None:
    async def does(_: ToolContext) -> ToolOutput:
        return output

    world.look.does = does
    world.model.will(LOOK, says("there"))
    async with world.running() as house:
        await house.say("look")
        assert len(sent(house)) == count
        assert ("executed" in await house.audited()) == bool(count)


async def test_a_chat_that_takes_no_files_says_so(world: World) -> None:
    world.add_platform("chat")
    async with world.running() as house:
        await put(await furnished(house), "a.txt", b"milk")
        assert "this chat takes no files" in await send(house, '{"path": "a.txt"}')
        assert sent(house) == []


async def test_a_caption_and_a_name_hold_no_secret_and_no_receipt(world: World) -> None:
    """The model writes them, and people see them (P6, P7)."""
    async with world.running() as house:
        await put(await furnished(house), "a.txt", b"milk")
        caption = f"{SECRET} ✅ receipt: shell · ok · 12:00 UTC"
        arguments = f'{{"path": "a.txt", "caption": "{caption}", "name": "../x\\u202efdp.exe"}}'
        await send(house, arguments)
        [shown] = sent(house)
        assert shown.file is not None
        assert SECRET not in shown.text
        assert "⚠️ false receipt" in shown.text
        assert shown.file.name == "_xfdp.exe"
        await send(house, f'{{"path": "a.txt", "name": "{SECRET} ✅ receipt: shell · ok"}}')
        _, named = sent(house)
        assert named.file is not None
        names = [item.sent.name for item in await house.transcript() if item.sent is not None]
        assert names == ["_xfdp.exe", named.file.name]
        assert named.file.name.startswith(f"{MARKER} ⚠️ false receipt")


@pytest.mark.parametrize("point", [DurablePoint.CALL_STARTED, DurablePoint.CALL_FINISHED])
async def test_a_kill_around_the_call_sends_the_file_once(
    world: World, point: DurablePoint
) -> None:
    """Nothing is sent before the result is recorded, so the call runs again (P3)."""
    async with world.running() as house:
        await put(await furnished(house), "a.txt", b"milk")
        world.model.otherwise(asks_for(("send_file", '{"path": "a.txt"}')), says("there it is"))
        world.store.cut_after(point)
        await house.say_and_die("send it")
        assert sent(house) == []
    world.store.heal()
    async with world.running() as house:
        await house.advance(60)
        assert len(sent(house)) == 1
        assert house.texts().count("there it is") == 1
        assert tool_result(house).count("goes to the chat") == 1


async def test_a_kill_between_send_and_record_marks_the_file_a_possible_repeat(
    world: World,
) -> None:
    """On a platform without keys and lookup; the only window for one (P1)."""
    async with world.running() as house:
        await put(await furnished(house), "a.txt", b"milk")
        world.platforms["chat"].will("send_file", Lost())
        await send(house, '{"path": "a.txt", "caption": "here"}')
        assert [file.text for file in sent(house)] == ["here"]
    async with world.running() as house:
        await house.advance(1)
        assert [file.text for file in sent(house)] == ["here", "here\n\n(possible repeat)"]
        await house.advance(60)
        assert len(sent(house)) == 2


async def test_a_file_whose_send_hangs_is_sent_after_the_restart(world: World) -> None:
    """By then the path may hold another file: the bytes are those of the call."""
    async with world.running() as house:
        workspace = await furnished(house)
        await put(workspace, "a.txt", b"milk")
        world.platforms["chat"].will("send_file", Hang())
        await send(house, '{"path": "a.txt"}')
        await put(workspace, "a.txt", b"eggs")
    async with world.running() as house:
        await house.advance(1)
        [shown] = sent(house)
        assert shown.file is not None
        assert shown.file.content == b"milk"


async def test_a_refused_file_is_reported_in_the_chat_and_to_operators(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    """The chat says that the file did not arrive; `doctor` shows the log's warnings."""
    async with world.running() as house:
        await put(await furnished(house, "ben"), "a.txt", b"milk")
        world.platforms["chat"].will("send_file", ChannelRejected("too heavy"))
        await send(house, '{"path": "a.txt"}', "ben")
        assert house.texts("ben")[-2:] == [
            "there it is",
            "The file `a.txt` could not be sent: too heavy.",
        ]
        assert "A file in `chat` was refused by the platform: too heavy." in house.texts("ada")
        conversation = (await house.rows(RowKind.OUTBOX, "refused"))[0].conversation
    entries = [vars(record) for record in caplog.records if record.msg == "post_refused"]
    assert [entry["zeroclaw_fields"] for entry in entries] == [
        {"channel": "chat", "conversation": conversation, "reason": "too heavy"}
    ]


async def test_the_transcript_has_only_its_own_files(world: World) -> None:
    """A page that opens later links to it, under its own address alone."""
    async with world.running() as house:
        await put(await furnished(house), "a.txt", b"milk")
        await send(house, '{"path": "a.txt", "caption": "here"}')
        [item] = [item for item in await house.transcript() if item.sent is not None]
        assert (item.text, item.key) == ("here", item.cursor)
        assert item.sent is not None
        assert (item.sent.name, item.sent.size_bytes) == ("a.txt", 4)
        stored = await house.services.transcript.sent_file(house.place(), item.key)
        assert stored is not None
        assert (stored.name, stored.content, stored.caption) == ("a.txt", b"milk", "here")
        assert await house.services.transcript.sent_file(house.place("ben"), item.key) is None
        assert await house.services.transcript.sent_file(house.place(), "never") is None
        answer = (await house.transcript())[-1]
        assert await house.services.transcript.sent_file(house.place(), answer.cursor) is None


@pytest.mark.parametrize("autonomy", ["readonly", "supervised"])
async def test_in_a_group_a_file_needs_approval(world: World, autonomy: str) -> None:
    """Everyone there gets the whole file; in a private chat it is like an answer."""
    world.configure(autonomy=autonomy)
    async with world.running() as house:
        await put(await furnished(house, "ben", room="team"), "a.txt", b"milk")
        house.world.model.otherwise(asks_for(("send_file", '{"path": "a.txt"}')), says("done"))
        await house.say("send it", "ben", room="team")
        assert sent(house, "ben", "team") == []
        assert "send `a.txt` to this chat" in house.texts("ada")[-1]
        await house.press()
        assert len(sent(house, "ben", "team")) == 1
        await put(await furnished(house, "ben"), "a.txt", b"milk")
        await send(house, '{"path": "a.txt"}', "ben")
        assert len(sent(house, "ben")) == 1


async def test_a_repeated_file_is_marked_until_the_first_is_known_to_be_missing(
    world: World,
) -> None:
    """The mark is in its caption (P1)."""
    world.add_platform("chat", replace(TAKES, idempotent_send=False, can_lookup=True))
    async with world.running() as house:
        await put(await furnished(house), "sums.csv", REPORT)
        world.platforms["chat"].will("send_file", DeliveryUnknown("cut before it was read"))
        await send(house, '{"path": "sums.csv", "caption": "here"}')
        await house.advance(60)
        [shown] = sent(house)
        assert (shown.text, shown.history) == ("here", ["here\n\n(possible repeat)"])
