"""A secret that the daemon knows is seen by nobody: not in a chat, a log, a request or on disk (P8)."""

from pathlib import Path

import pytest

from tests.journeys.backstage import KNOWN_SECRET, MODEL_KEY
from tests.journeys.bench import Returns
from tests.journeys.world import World, world

pytestmark = pytest.mark.slow

PATTERN = "ghp_" + "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8"


def files_that_hold(directory: Path, secret: str) -> list[str]:
    """The files below a directory in which a secret stands in clear."""
    found = [path for path in directory.rglob("*") if path.is_file()]
    return [path.name for path in found if secret.encode() in path.read_bytes()]


def nowhere(here: World, secret: str) -> list[str]:
    """Where a secret can be seen; the configuration only names it."""
    seen = ["chat" for chat in here.platform.desk.chats.values() if secret in chat.ever]
    calls = ["call" for call in here.platform.calls if secret in call.text]
    requests = ["request" for one in here.model.requests if secret in str(one.body)]
    log = ["log"] if secret in here.daemon.stderr + "\n".join(here.daemon.said) else []
    return [*seen, *calls, *requests, *log, *files_that_hold(here.data, secret)]


async def say_split(here: World, text: str, place: int) -> str:
    """Let the model say a text in two pieces to a person of their own; return the person."""
    here.model.say(text[:place], text[place:], key=f"place {place}.")
    who = f"p{place}"
    await here.say(who, f"place {place}.")
    return who


@pytest.mark.parametrize("secret", [KNOWN_SECRET, PATTERN], ids=["known", "pattern"])
async def test_a_secret_in_the_models_text_is_never_seen_wherever_it_is_split(
    tmp_path: Path, secret: str
) -> None:
    """Two pieces, cut at every byte, drafts included. S3-37, K16."""
    text = f"the key is {secret}, keep it"
    open_door = {"loopback": {"allowed_users": ["*"]}}
    async with world(tmp_path, channels=open_door) as here:
        people = [await say_split(here, text, place) for place in range(1, len(text))]
        await here.until(lambda: all(here.chat(who).answers for who in people))
        assert {here.chat(who).answers[-1].endswith(", keep it") for who in people} == {True}
        assert nowhere(here, secret) == []


async def test_a_secret_that_comes_letter_by_letter_is_never_seen(tmp_path: Path) -> None:
    """Each letter is an event of the stream. S3-37."""
    async with world(tmp_path) as here:
        here.model.say(f"the key is {KNOWN_SECRET}, or {MODEL_KEY}, or {PATTERN}.", size=1)
        await here.say("ann", "tell me")
        await here.until(lambda: here.chat("ann").answers)
        assert here.chat("ann").answers[0].startswith("the key is ")
        assert nowhere(here, KNOWN_SECRET) == []
        assert nowhere(here, MODEL_KEY) == []
        assert nowhere(here, PATTERN) == []


async def test_the_beginning_of_a_secret_is_held_back_from_a_draft(tmp_path: Path) -> None:
    """While it may still become one, not even its first letters are shown. K16."""
    async with world(tmp_path) as here:
        gate = here.model.gate()
        here.model.say("the key is ", KNOWN_SECRET[:20], gate, "and no more")
        await here.say("ann", "tell me")
        await gate.reached()
        await here.until(lambda: "the key" in here.chat("ann").ever)
        assert KNOWN_SECRET[:3] not in here.chat("ann").ever
        gate.open()
        await here.answered("ann", f"the key is {KNOWN_SECRET[:20]}and no more")


async def test_a_secret_in_a_tools_output_reaches_neither_model_nor_chat_nor_disk(
    tmp_path: Path,
) -> None:
    """It is redacted before the result is capped, signed and stored. K16, K17."""
    async with world(tmp_path) as here:
        here.bench.will("peek", Returns(text=f"{KNOWN_SECRET} and {MODEL_KEY} and {PATTERN}"))
        here.model.call("peek", {"what": "the vault"}, round=0)
        here.model.say("I have looked.", round=1)
        await here.say("ann", "look")
        await here.answered("ann", "I have looked.")
        assert "and" in here.tool_results()[0]
        assert nowhere(here, KNOWN_SECRET) == []
        assert nowhere(here, MODEL_KEY) == []
        assert nowhere(here, PATTERN) == []


async def test_a_card_shows_in_place_of_a_secret_where_it_comes_from(tmp_path: Path) -> None:
    """The operator reads all of the call, and at that one place the secret's reference. P5."""
    async with world(tmp_path) as here:
        here.model.call("knock", {"what": f"with {KNOWN_SECRET}"}, round=0)
        here.model.say("Done.", round=1)
        await here.say("ann", "knock")
        card = await here.carded()
        assert 'with ⟦{env="JOURNEY_SIGNING_SECRET"}⟧' in card.text
        assert KNOWN_SECRET not in here.chat("olga").ever
        await here.press("olga", card, "deny")
        await here.answered("ann", "Done.")


@pytest.mark.needs("bwrap")
async def test_a_secret_that_a_command_prints_in_pieces_is_redacted(tmp_path: Path) -> None:
    """However the output arrives, it is redacted as one text. K16."""
    first, second = KNOWN_SECRET[:9], KNOWN_SECRET[9:]
    command = f"printf %s '{first}'; sleep 0.05; printf %s '{second}'"
    async with world(tmp_path, autonomy="full") as here:
        here.model.call("shell", {"command": command}, round=0)
        here.model.say("I have looked.", round=1)
        await here.say("ann", "look")
        await here.answered("ann", "I have looked.")
        assert "returned" in here.tool_results()[0]
        assert KNOWN_SECRET not in here.tool_results()[0]


async def test_the_tools_of_the_daemon_do_not_hold_its_secrets(tmp_path: Path) -> None:
    """The model's key reaches the endpoint's header, and no message. S0-19."""
    async with world(tmp_path) as here:
        here.model.say("Hello.")
        await here.say("ann", "hi")
        await here.answered("ann", "Hello.")
        (request,) = here.model.requests
        assert request.headers["authorization"] == f"Bearer {MODEL_KEY}"
        assert MODEL_KEY not in str(request.body)
