"""A secret that the daemon knows appears nowhere: no chat, log, request or file (P8)."""

from pathlib import Path

import pytest

from tests.journeys.bench import Returns
from tests.journeys.harness import KNOWN_SECRET, MODEL_KEY
from tests.journeys.world import World, open_world

pytestmark = pytest.mark.slow

PATTERN = "ghp_" + "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8"


def files_that_hold(directory: Path, secret: str) -> list[str]:
    """Return the files below a directory that contain a secret in clear."""
    found = [path for path in directory.rglob("*") if path.is_file()]
    return [path.name for path in found if secret.encode() in path.read_bytes()]


def nowhere(world: World, secret: str) -> list[str]:
    """Where a secret can be seen; the configuration only names it."""
    seen = ["chat" for chat in world.platform.backend.chats.values() if secret in chat.ever]
    calls = ["call" for call in world.platform.calls if secret in call.text]
    requests = ["request" for request in world.model.requests if secret in str(request.body)]
    log = ["log"] if secret in world.daemon.stderr + "\n".join(world.daemon.stdout) else []
    return [*seen, *calls, *requests, *log, *files_that_hold(world.data, secret)]


async def say_split(world: World, text: str, place: int) -> str:
    """Let the model say a text in two pieces to a person of their own; return the person."""
    world.model.say(text[:place], text[place:], key=f"place {place}.")
    person = f"p{place}"
    await world.say(person, f"place {place}.")
    return person


@pytest.mark.parametrize("secret", [KNOWN_SECRET, PATTERN], ids=["known", "pattern"])
async def test_a_secret_in_the_models_text_is_never_seen_wherever_it_is_split(
    tmp_path: Path, secret: str
) -> None:
    """Two pieces, cut at every byte, drafts included. S3-37, K16."""
    text = f"the key is {secret}, keep it"
    open_door = {"loopback": {"allowed_users": ["*"]}}
    async with open_world(tmp_path, channels=open_door) as world:
        people = [await say_split(world, text, place) for place in range(1, len(text))]
        await world.until(lambda: all(world.chat(person).answers for person in people))
        assert {world.chat(person).answers[-1].endswith(", keep it") for person in people} == {True}
        assert nowhere(world, secret) == []


async def test_a_secret_that_comes_letter_by_letter_is_never_seen(tmp_path: Path) -> None:
    """Each letter is an event of the stream. S3-37."""
    async with open_world(tmp_path) as world:
        world.model.say(f"the key is {KNOWN_SECRET}, or {MODEL_KEY}, or {PATTERN}.", size=1)
        await world.say("ann", "tell me")
        await world.until(lambda: world.chat("ann").answers)
        assert world.chat("ann").answers[0].startswith("the key is ")
        assert nowhere(world, KNOWN_SECRET) == []
        assert nowhere(world, MODEL_KEY) == []
        assert nowhere(world, PATTERN) == []


async def test_the_beginning_of_a_secret_is_held_back_from_a_draft(tmp_path: Path) -> None:
    """While it may still become one, not even its first letters are shown. K16."""
    async with open_world(tmp_path) as world:
        gate = world.model.gate()
        world.model.say("the key is ", KNOWN_SECRET[:20], gate, "and no more")
        await world.say("ann", "tell me")
        await gate.reached()
        await world.until(lambda: "the key" in world.chat("ann").ever)
        assert KNOWN_SECRET[:3] not in world.chat("ann").ever
        gate.open()
        await world.expect("ann", f"the key is {KNOWN_SECRET[:20]}and no more")


async def test_a_secret_in_a_tools_output_reaches_neither_model_nor_chat_nor_disk(
    tmp_path: Path,
) -> None:
    """It is redacted before the result is capped, signed and stored. K16, K17."""
    async with open_world(tmp_path) as world:
        world.bench.will("peek", Returns(text=f"{KNOWN_SECRET} and {MODEL_KEY} and {PATTERN}"))
        world.model.call("peek", {"what": "the vault"}, round=0)
        world.model.say("I have looked.", round=1)
        await world.say("ann", "look")
        await world.expect("ann", "I have looked.")
        assert "and" in world.tool_results()[0]
        assert nowhere(world, KNOWN_SECRET) == []
        assert nowhere(world, MODEL_KEY) == []
        assert nowhere(world, PATTERN) == []


async def test_a_card_shows_in_place_of_a_secret_where_it_comes_from(tmp_path: Path) -> None:
    """The operator reads all of the call, and at that one place the secret's reference. P5."""
    async with open_world(tmp_path) as world:
        world.model.call("knock", {"what": f"with {KNOWN_SECRET}"}, round=0)
        world.model.say("Done.", round=1)
        await world.say("ann", "knock")
        card = await world.card()
        assert 'with ⟦{env="JOURNEY_SIGNING_SECRET"}⟧' in card.text
        assert KNOWN_SECRET not in world.chat("olga").ever
        await world.press("olga", card, "deny")
        await world.expect("ann", "Done.")


@pytest.mark.needs("bwrap")
async def test_a_secret_that_a_command_prints_in_pieces_is_redacted(tmp_path: Path) -> None:
    """However the output arrives, it is redacted as one text. K16."""
    first, second = KNOWN_SECRET[:9], KNOWN_SECRET[9:]
    command = f"printf %s '{first}'; sleep 0.05; printf %s '{second}'"
    async with open_world(tmp_path, autonomy="full") as world:
        world.model.call("shell", {"command": command}, round=0)
        world.model.say("I have looked.", round=1)
        await world.say("ann", "look")
        await world.expect("ann", "I have looked.")
        assert "returned" in world.tool_results()[0]
        assert KNOWN_SECRET not in world.tool_results()[0]


async def test_the_tools_of_the_daemon_do_not_hold_its_secrets(tmp_path: Path) -> None:
    """The model's key reaches the endpoint's header, and no message. S0-19."""
    async with open_world(tmp_path) as world:
        world.model.say("Hello.")
        await world.say("ann", "hi")
        await world.expect("ann", "Hello.")
        (request,) = world.model.requests
        assert request.headers["authorization"] == f"Bearer {MODEL_KEY}"
        assert MODEL_KEY not in str(request.body)
