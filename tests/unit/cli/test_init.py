"""`zeroclaw init`: the file it writes, the trials before, and what it never writes."""

import asyncio
import os
import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Mapping
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from pydantic import BaseModel, ConfigDict, Field, model_validator

from tests.emulators.model_server import ModelServer
from tests.fakes.unprivileged import unprivileged
from zeroclaw.channel import ChannelManifest
from zeroclaw.cli import root
from zeroclaw.cli.configuration import TrialResult
from zeroclaw.cli.init import flow
from zeroclaw.cli.init.flow import try_channel
from zeroclaw.cli.init.prompts import Interview, explain
from zeroclaw.cli.init.template import COMMENTS, Answers, ChosenChannel, compose
from zeroclaw.cli.models.choice import Discovered, Key
from zeroclaw.config.model import Config, ProviderSettings
from zeroclaw.config.references import SecretReference
from zeroclaw.config.validate import parse
from zeroclaw.errors import ChannelUnauthorized
from zeroclaw.host.models.listing import Server
from zeroclaw.providers.local.provider import SHIPPED_FILE
from zeroclaw.value import replace

pytestmark = pytest.mark.usefixtures("home")
EXAMPLE = (Path(__file__).parents[3] / "config.example.toml").read_text(encoding="utf-8")
SECRET = "sk-nobody-may-see-this"
LOCAL = {
    kind: ChannelManifest(kind=kind, adapter="", settings="", local_operator=True)
    for kind in ("terminal", "web")
}
KEY = Key(variable="SOME_KEY", base_url="https://models.example/v1", model="small")
MANY = Server(
    name="Ollama",
    base_url="http://127.0.0.1:11434/v1",
    models=("embed", *(f"m{number}" for number in range(14))),
)


class ChatSettings(BaseModel):
    """The settings of a platform with a token."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    server: str = Field(max_length=20, description="names of servers")
    token: SecretReference
    second: SecretReference | None = None
    retries: int = 3
    zone: str = ""

    @model_validator(mode="after")
    def _is_complete(self) -> "ChatSettings":
        if self.server == "7" and self.second is None:
            raise ValueError("server 7 needs the key `second`")
        return self


class NoSettings(BaseModel):
    """The settings of a channel without any."""


CHAT = ChannelManifest(
    kind="chat", adapter="a:b", settings=f"{__name__}:ChatSettings", sender="U[0-9]"
)


async def run(*arguments: str) -> tuple[int, str, str]:
    """Run a command on a thread, since it runs its own event loop."""
    done = await asyncio.to_thread(CliRunner().invoke, root, ["init", *arguments])
    return done.exit_code, done.stdout, done.stderr


def text_of(path: Path) -> str:
    return path.read_text(encoding="utf-8")


# --- without a terminal --------------------------------------------------------------------------


@pytest.mark.slow
async def test_options_make_a_tried_configuration(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The trial uses the key; the file names only where the key is, and why (P8)."""
    monkeypatch.setenv("SOME_KEY", SECRET)
    async with ModelServer() as server:
        server.say("Hello.")
        code, out, err = await run(
            *("--yes", "--url", server.url, "--key-env", "SOME_KEY", "--autonomy", "readonly")
        )
        assert server.requests[0].headers["authorization"] == f"Bearer {SECRET}"
    path = home / "config" / "zeroclaw" / "config.toml"
    text = text_of(path)
    assert (code, err, SECRET in out + text) == (0, "", False)
    assert (path.stat().st_mode & 0o777, f"wrote {path}\n" in out) == (0o600, True)
    assert "zeroclaw run\n" in out
    config = parse(text)
    assert (config.provider.model, config.autonomy) == ("scripted", "readonly")
    assert config.provider.api_key == SecretReference(env="SOME_KEY")
    assert set(config.channels) == {"web", "terminal"}
    bare = [line for line in text.splitlines() if line and "#" not in line]
    assert bare == []


@pytest.mark.slow
async def test_a_model_that_does_not_answer_is_not_written(home: Path) -> None:
    """P10: the reason, and how to write it all the same."""
    async with ModelServer() as server:
        server.refuse(401, times=None)
        arguments = ("--yes", "--url", server.url, "--model", "m")
        code, out, err = await run(*arguments)
        assert (code, out, len(err.splitlines())) == (1, "", 1)
        assert "nothing was written" in err
        assert not (home / "config").exists()
        assert (await run(*arguments, "--unchecked"))[0] == 0
    assert (home / "config" / "zeroclaw" / "config.toml").exists()


async def test_only_an_unknown_operator_is_shown_how_to_become_one(home: Path) -> None:
    """A person who gave their sender id needs no code, even if strangers do."""
    options = (
        "--yes",
        "--unchecked",
        "--channel",
        "telegram",
        "--set",
        "channels.telegram.token={env='T'}",
    )
    _, out, _ = await run(*options)
    assert "approve your code on the web page" in out
    with_operator = (
        "--operator",
        "telegram:7",
        "--set",
        "channels.telegram.pairing=code",
        "--force",
    )
    code, out, _ = await run(*options, *with_operator)
    assert (code, "your code" in out) == (0, False)
    tokens = (f"channels.discord.{key}" for key in ("token={env='D'}", "pairing=code"))
    sets = tuple(f"--set={item}" for item in ("channels.web.enabled=false", *tokens))
    code, out, _ = await run(
        *options, "--operator", "telegram:7", "--channel=discord", *sets, "--force"
    )
    # The daemon prints no code while an operator can be reached.
    assert "write to the bot on discord, and approve your code on telegram\n" in out


@pytest.mark.slow
@pytest.mark.needs("unshare")
def test_an_unwritable_place_is_reported_before_any_question(home: Path) -> None:
    """Not after all questions (P10)."""
    place = home / "place"
    place.mkdir()
    script = 'mount -t tmpfs -o ro none "$0" && exec "$@"'
    init = (sys.executable, "-m", "zeroclaw", "init", "--config", str(place / "c.toml"))
    done = subprocess.run(
        ("unshare", "--map-root-user", "--mount", "sh", "-c", script, str(place), *init),
        capture_output=True,
        text=True,
        check=False,
    )
    line = f"zeroclaw: `{place}/c.toml` can't be written, because this user can't create files in `{place}`"
    assert (done.returncode, done.stderr) == (1, f"{line}; name another with --config\n")


async def test_a_place_below_a_file_is_reported_before_any_question(home: Path) -> None:
    """P10."""
    place = home / "place"
    place.touch()
    code, out, err = await run("--yes", "--config", str(place / "sub" / "c.toml"))
    assert (code, out, f"can't create files in `{place}`" in err) == (1, "", True)


async def test_a_place_below_an_inaccessible_directory_is_reported(home: Path) -> None:
    """Before any question (P10)."""
    with tempfile.TemporaryDirectory() as directory:
        await asyncio.to_thread(Path(directory).chmod, 0)
        with unprivileged():
            code, out, err = await run("--yes", "--config", f"{directory}/sub/c.toml")
    assert (code, out, f"can't create files in `{directory}`" in err) == (1, "", True)


@pytest.mark.parametrize("kind", ["pipe", "directory"])
async def test_a_place_that_is_no_file_is_not_replaced(home: Path, kind: str) -> None:
    """A device file would be lost to the whole machine."""
    place = home / "place"
    os.mkfifo(place) if kind == "pipe" else place.mkdir()
    code, out, err = await run("--yes", "--unchecked", "--force", "--config", str(place))
    assert (code, out, f"`{place}` is no file" in err) == (2, "", True)
    assert not place.is_file()


async def test_a_model_that_is_not_here_yet_is_the_first_thing_to_do(home: Path) -> None:
    """Otherwise the bot's first answer would be that it has none (P10)."""
    code, out, _ = await run("--yes", "--unchecked")
    assert (code, "first     no model at" in out, "deploy/fetch_model.py" in out) == (0, True, True)


async def test_a_configuration_is_not_overwritten_unless_forced(home: Path) -> None:
    """P10."""
    path = home / "mine.toml"
    arguments = ("--config", str(path), "--yes", "--unchecked")
    assert (await run(*arguments))[0] == 0
    first = await asyncio.to_thread(text_of, path)
    code, out, err = await run(*arguments, "--autonomy", "full")
    assert (code, out, "give --force" in err) == (2, "", True)
    assert await asyncio.to_thread(text_of, path) == first
    code, out, _ = await run(*arguments, "--autonomy", "full", "--force")
    assert (code, f"zeroclaw run --config {path}" in out) == (0, True)
    assert 'autonomy = "full"' in await asyncio.to_thread(text_of, path)
    backup = home / "mine.toml.before"
    assert f"the old file is kept as `{backup}`" in out
    assert await asyncio.to_thread(text_of, backup) == first
    assert backup.stat().st_mode & 0o777 == 0o600
    _, out, _ = await run(*arguments, "--force")
    assert f"the old file is kept as `{backup}-2`" in out
    assert await asyncio.to_thread(text_of, backup) == first


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ((), "there is no terminal"),
        (("--yes", "--model", "m"), "name it with --url"),
        (("--yes", "--url", "http://h/v1", "--model-file", "f"), "are two models"),
        (("--yes", "--url", "h/v1", "--model", "m"), "begins with http"),
        (("--yes", "--url", " /", "--model", "m"), "begins with http"),
        (("--yes", "--url", "http://[", "--model", "m"), "begins with http"),
        (("--yes", "--url", "http://u:p@h/v1", "--model", "m"), "leave user, password"),
        (
            ("--yes", "--url", "http://h/v1", "--model", "m", "--key-env", "A", "--key-file", "b"),
            "are two keys",
        ),
        (("--yes", "--unchecked", "--set", "autonomy"), "write KEY=VALUE"),
        (("--yes", "--unchecked", "--set", "autonomy=wild"), "autonomy: "),
        (("--yes", "--channel", "pigeon"), "`pigeon` is not installed"),
        (("--yes", "--unchecked", "--channel", "pigeon"), "`pigeon` is not installed"),
        (("--yes", "--channel", "telegram"), "--set 'channels.telegram.token={env=\"NAME\"}'"),
    ],
)
async def test_invalid_options_are_reported(
    home: Path, arguments: tuple[str, ...], reason: str
) -> None:
    """P10; no file is written."""
    code, out, err = await run(*arguments)
    assert (code, out, reason in err) == (2, "", True)
    assert not (home / "config").exists()


async def test_other_keys_are_set_as_well(home: Path) -> None:
    """For keys without an option; what is still missing is named as the first thing to do."""
    path = home / "c.toml"
    code, out, _ = await run(
        *("--config", str(path), "--yes", "--unchecked", "--channel", "telegram"),
        *(
            "--set",
            "channels.terminal.enabled=false",
            "--set",
            "channels.web.title=Bob",
            "--set",
            'provider.api_key={ env = "NOT_THERE" }',
        ),
        *("--url", "http://127.0.0.1:9/v1", "--model", "m", "--operator", "telegram:1"),
        *("--name", "ann", "--language", "de"),
    )
    config = parse(await asyncio.to_thread(text_of, path))
    assert (code, config.channels["web"].own()) == (0, {"title": "Bob"})
    assert (config.people[0].name, config.people[0].ids) == ("ann", ("telegram:1",))
    assert config.language == "de"
    assert "first     provider.api_key: environment variable `NOT_THERE` is not set" in out
    assert "zeroclaw chat" not in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("--yes", "--name", "ann"),
            "--name belongs to the operator that --operator CHANNEL:ID names",
        ),
        (("--url", "http://h/v1", "--name", "ann"), "--url, --name: only with --yes"),
        (("--operator", "telegram:1"), "--operator: only with --yes"),
        (("--unchecked",), "--unchecked: only with --yes"),
        (("--autonomy", "supervised"), "--autonomy: only with --yes"),
        (("--yes", "--model", "m"), "belong to an endpoint; name it with --url"),
        (("--yes", "--operator", "telegram:1"), "no channel `telegram` here; give --channel"),
        (
            ("--yes", "--channel", "email"),
            "nobody could write on `email`; give --operator email:ID too",
        ),
        (("--yes", "--operator", "4711"), "`4711` is not a sender; write CHANNEL:ID"),
    ],
)
async def test_no_option_is_ignored_silently(
    home: Path, arguments: tuple[str, ...], message: str
) -> None:
    """P10: no file is written, and the fault is reported."""
    path = home / "c.toml"
    code, out, err = await run("--config", str(path), *arguments)
    assert (code, message in err, path.exists()) == (2, True, False), out + err


# --- the questions -------------------------------------------------------------------------------


class Room:
    """The machine that an interview is about."""

    def __init__(
        self, place: Path, *, discovered: Discovered | None = None, chat: bool = False
    ) -> None:
        self.models: list[ProviderSettings] = []
        self.chats: list[ChosenChannel] = []
        self.verdicts: list[bool] = []
        self.refusals: list[str] = []
        self.answers: Answers | None = None
        channels = dict(LOCAL) | ({"chat": CHAT} if chat else {})
        self.interview = Interview(
            found=discovered or Discovered(),
            channels={kind: (manifest, ChatSettings) for kind, manifest in channels.items()},
            secrets=place,
            try_model=self._model,
            try_channel=self._channel,
        )

    def _model(self, settings: ProviderSettings) -> TrialResult:
        self.models.append(settings)
        return TrialResult(is_ok=self.verdicts.pop(0) if self.verdicts else True, line="seen")

    def _channel(self, chosen: ChosenChannel, manifest: ChannelManifest) -> TrialResult:
        assert manifest is CHAT
        self.chats.append(chosen)
        if self.refusals:
            return TrialResult(is_ok=False, line=self.refusals.pop(0))
        return TrialResult(is_ok=True, line="seen")

    def ask(self, *typed: str) -> str:
        """Run the interview; return the screen's text."""

        @click.command()
        def asking() -> None:
            self.answers = self.interview.ask()

        done = CliRunner().invoke(asking, input="".join(f"{line}\n" for line in typed))
        assert done.exception is None, done.output
        return done.output

    def given(self) -> Answers:
        assert self.answers is not None
        return self.answers


@pytest.fixture
def room(tmp_path: Path) -> Room:
    """A machine with the channels that need no platform."""
    return Room(tmp_path)


@pytest.fixture
def chat_room(tmp_path: Path) -> Room:
    """A machine with a platform too."""
    return Room(tmp_path, chat=True)


def test_empty_answers_take_the_defaults(room: Room) -> None:
    """The local model, both channels, supervised."""
    room.ask("", "", "", "", "")
    assert room.given() == Answers(
        provider=ProviderSettings(),
        channels=(ChosenChannel(kind="terminal"), ChosenChannel(kind="web")),
    )
    config = parse(compose(room.given()))
    assert config == Config()


def test_the_small_model_is_offered_with_its_state(room: Room, home: Path) -> None:
    """Here already, or still to be fetched."""
    assert "1  the small model, to be fetched first by `" in room.ask("", "", "", "", "")
    models = home / "data" / "zeroclaw" / "models"
    models.mkdir(parents=True)
    (models / SHIPPED_FILE).touch()
    assert "1  the small model on this machine, which only chats" in room.ask("", "", "", "", "")


def test_a_server_on_this_machine_is_offered_first(tmp_path: Path) -> None:
    """With its first model that can chat; another can be named."""
    few = Server(name="vLLM", base_url="http://127.0.0.1:8000/v1", models=("one",))
    mute = Server(name="mute", base_url="http://127.0.0.1:1/v1", models=())
    room = Room(tmp_path, discovered=Discovered(servers=(mute, MANY, few)))
    shown = room.ask("", "", "", "", "", "")
    assert "  1  Ollama on http://127.0.0.1:11434/v1, with 15 models\n  2  vLLM on" in shown
    assert "… and 3 more" in shown
    assert room.given().provider.model == "m0"
    room.ask("1", "m13", "", "", "", "")
    assert room.given().provider.model == "m13"
    room.ask("2", "", "", "", "")
    assert room.given().provider.model == "one"


def test_a_key_of_the_environment_is_used_if_chosen(tmp_path: Path) -> None:
    """As a reference; a model that does not answer is asked again, or kept on request."""
    room = Room(tmp_path, discovered=Discovered(keys=(KEY,)))
    room.verdicts = [False, False]
    room.ask("1", "n", "2", "", "y", "", "", "", "")
    assert [model.kind for model in room.models] == ["local", "openai"]
    assert room.given().provider.api_key == SecretReference(env="SOME_KEY")
    assert room.given().provider.model == "small"


def test_a_typed_key_goes_into_its_own_file(tmp_path: Path) -> None:
    """Readable by its owner alone; neither screen nor configuration shows it (P8)."""
    room, existing = Room(tmp_path), tmp_path / "taken"
    existing.write_text("x")
    shown = room.ask(
        *("2", "ftp://x", "/", "https://models.example/v1/", "big"),
        *("type", SECRET, str(existing), "", "type", SECRET, "", "n", "type", SECRET, "", "y"),
        *("", "", "", ""),
    )
    path = tmp_path / "model.key"
    text = compose(room.given())
    assert (text_of(path), path.stat().st_mode & 0o777) == (f"{SECRET}\n", 0o600)
    assert (SECRET in shown + text, text_of(existing)) == (False, "x")
    assert ("begins with http" in shown, "already exists" in shown) == (True, True)
    provider = parse(text).provider
    assert provider.base_url == "https://models.example/v1"
    assert provider.api_key == SecretReference(file=str(path))


def test_a_key_replaces_only_a_regular_file(tmp_path: Path) -> None:
    """A device file would be lost to the whole machine."""
    room, place = Room(tmp_path), tmp_path / "pipe"
    os.mkfifo(place)
    begin = ("2", "https://models.example/v1", "big", "type")
    shown = room.ask(*begin, SECRET, str(place), "type", SECRET, "", "y", "", "", "", "")
    assert (place.is_fifo(), f"`{place}` is no file; name another" in shown) == (True, True)


def test_a_mistyped_key_is_asked_again(tmp_path: Path, room: Room) -> None:
    """It goes into the same file, even if an earlier `init` was aborted there."""
    room.verdicts = [False, True]
    begin = ("2", "https://models.example/v1", "big", "type")
    room.ask(*begin, "wrong", "", "y", "n", *begin, SECRET, "", "y", "", "", "", "")
    path = tmp_path / "model.key"
    assert (text_of(path), path.stat().st_mode & 0o777) == (f"{SECRET}\n", 0o600)
    assert room.given().provider.api_key == SecretReference(file=str(path))


def test_a_key_that_is_typed_as_a_name_is_refused(room: Room) -> None:
    """The refusal does not repeat it; a key in a file, or none, is fine."""
    begin = ("2", "https://models.example/v1", "big")
    shown = room.ask(*begin, "env", SECRET, "SOME_KEY", "", "", "", "")
    assert "give the name, not the key" in shown
    assert room.given().provider.api_key == SecretReference(env="SOME_KEY")
    room.ask(*begin, "file", "/run/secrets/key", "", "", "", "")
    assert room.given().provider.api_key == SecretReference(file="/run/secrets/key")
    shown = room.ask(*begin, "keyring", SECRET, "zeroclaw/model", "", "", "", "")
    assert "give service/name, not the key" in shown
    assert room.given().provider.api_key == SecretReference(keyring="zeroclaw/model")
    room.ask(*begin, "", "", "", "", "")
    assert room.given().provider.api_key is None


def test_further_questions_are_optional(chat_room: Room) -> None:
    """Language, context window, name, strangers, and the reach of tools, each with its comment."""
    shown = chat_room.ask(
        *("2", "https://models.example/v1", "big", ""),
        *("", "n", "y", "h", "env", "CHAT_TOKEN", "@ann", "u1", ""),
        *("y", "de", "12", "many", "8192", "Ann Lee", "Ann", "y", "n", "y"),
    )
    assert ("at least 512, or 0" in shown, "begins with a letter" in shown) == (True, True)
    text = compose(chat_room.given())
    config = parse(text)
    assert (config.language, config.provider.context_tokens) == ("de", 8192)
    assert [person.name for person in config.people] == ["ann"]
    assert config.channels["chat"].allowed_users == ("U1",)
    assert config.channels["chat"].pairing == "code"
    assert (config.tools.fetch.enabled, config.tools.shell.network) == (False, True)
    bare = [line for line in text.splitlines() if line and "#" not in line]
    assert bare == ['server = "h"', 'token = { env = "CHAT_TOKEN" }']


def test_a_blank_answer_is_asked_again_or_takes_the_default(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A model without a name, or a code on a channel that takes none, would be a faulty file."""
    monkeypatch.setitem(globals(), "CHAT", replace(CHAT, may_pair=False))
    room = Room(tmp_path, chat=True)
    shown = room.ask(
        *("2", "https://models.example/v1", " ", "big", "type", " ", SECRET, " ", "y"),
        *("", "n", "y", "h", "env", "CHAT_TOKEN", " ", "U1", "", ""),
    )
    assert shown.count("that is blank") == 3
    assert text_of(tmp_path / "model.key") == f"{SECRET}\n"
    assert (room.given().provider.model, room.given().operators) == ("big", ("chat:U1",))


def test_without_pairing_the_operator_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A code would be refused there, so there is no question about strangers either."""
    monkeypatch.setitem(globals(), "CHAT", replace(CHAT, may_pair=False))
    room = Room(tmp_path, chat=True)
    shown = room.ask(
        *("", "", "n", "y", "h", "env", "CHAT_TOKEN", "", "U1", "", "y"), *("", "", "", "", "")
    )
    assert ("prints a code" in shown, "May strangers" in shown) == (False, False)
    channel = parse(compose(room.given())).channels["chat"]
    assert (channel.allowed_users, channel.pairing) == (("U1",), "closed")


@pytest.mark.parametrize("server", ["a.example", ""])
def test_a_channel_may_ask_for_recommended_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, server: str
) -> None:
    """Otherwise its check would report a fault that no answer could fix."""
    monkeypatch.setitem(globals(), "CHAT", replace(CHAT, asks=("zone",)))
    room = Room(tmp_path, chat=True)
    shown = room.ask("", "", "n", "y", "h", "env", "CHAT_TOKEN", server, "U1", "", "")
    assert "`zone` is explained in docs/channels" in shown
    (channel,) = (channel for channel in room.given().channels if channel.kind == "chat")
    assert channel.own.get("zone", "") == server


def test_only_the_wrong_answer_is_asked_again(chat_room: Room) -> None:
    """The platform names it, or else the person does; correct answers are not typed twice."""
    chat_room.refusals = [
        "chat: no such host",
        "channels.chat.second: not set",
        "chat: refused",
        "refused",
    ]
    typed = ("", "", "n", "y", "7", "env", "CHAT_TOKEN", "env", "CHAT_2")
    again = ("n", "", "h", "n", "", "none", "n", "token", "env", "OTHER", "y")
    shown = chat_room.ask(*typed, *again, "U1", "", "")
    which = "Which answer is wrong (server, token, second)"
    assert [shown.count(f"{which} [{name}]:") for name in ("server", "second")] == [2, 1]
    first, second = SecretReference(env="CHAT_TOKEN"), SecretReference(env="CHAT_2")
    assert [dict(chat.own) for chat in chat_room.chats] == [
        {"server": "7", "token": first, "second": second},
        {"server": "h", "token": first, "second": second},
        {"server": "h", "token": first},
        {"server": "h", "token": SecretReference(env="OTHER")},
    ]


def test_a_key_named_by_a_fault_is_asked_for(chat_room: Room) -> None:
    """Another mode of a channel needs keys that the first questions leave out (P10)."""
    chat_room.refusals = ["channels.chat: needs `zone` or another server"]
    shown = chat_room.ask(
        "", "", "n", "y", "h", "env", "CHAT_TOKEN", "n", "zone", "a.b", "U1", "", ""
    )
    assert "Which answer is wrong (server, token, zone) [server]:" in shown
    assert chat_room.chats[-1].own.get("zone") == "a.b"


def test_a_channel_without_questions_is_tried_until_it_works_or_is_kept(chat_room: Room) -> None:
    """No answer could be wrong."""
    channels = {**chat_room.interview.channels, "chat": (CHAT, NoSettings)}
    chat_room.interview = replace(chat_room.interview, channels=channels)
    chat_room.refusals = ["chat: refused", "chat: refused"]
    shown = chat_room.ask("", "", "n", "y", "n", "y", "U1", "", "")
    assert (shown.count("chat: refused"), "Which answer" in shown) == (2, False)
    assert [dict(chat.own) for chat in chat_room.chats] == [{}, {}]


def test_an_invalid_answer_is_asked_again_at_once(chat_room: Room) -> None:
    """Not after all other answers, when the platform is tried (P10)."""
    shown = chat_room.ask("", "", "n", "y", "a" * 21, "h", "env", "CHAT_TOKEN", "U1", "", "")
    assert "Error: server: allowed are names of servers\nserver: h\n" in shown
    assert dict(chat_room.chats[0].own)["server"] == "h"


def test_only_the_wrong_answer_of_an_endpoint_is_asked_again(room: Room) -> None:
    """An empty answer keeps the others."""
    room.verdicts = [False, True]
    begin = ("2", "https://models.example/v1", "bgi", "env", "SOME_KEY", "n")
    room.ask(*begin, "", "", "big", "env", "SOME_KEY", "", "", "", "")
    provider = room.given().provider
    assert (provider.base_url, provider.model) == ("https://models.example/v1", "big")


def test_further_questions_have_defaults(room: Room) -> None:
    """Empty answers change nothing there either."""
    room.ask("", "", "", "", "y", "", "", "")
    assert parse(compose(room.given())) == Config()


def test_an_explanation_fits_the_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its own line breaks, and those of a narrow terminal, would make a comb of it."""
    monkeypatch.setenv("COLUMNS", "60")
    explain("word " * 30)
    assert [len(line) for line in capsys.readouterr().out.splitlines()] == [54, 54, 39]


def test_a_channel_asks_for_its_settings_and_its_operator(chat_room: Room) -> None:
    """Without a sender id strangers need a code; no channel at all is not accepted."""
    shown = chat_room.ask(
        "",
        "n",
        "n",
        "n",
        "n",
        "n",
        "y",
        "7",
        "env",
        "CHAT_TOKEN",
        "env",
        "CHAT_2",
        "U1",
        "full",
        "",
    )
    assert "Without a channel nobody" in shown
    assert "Where is the key of `chat.token`" in shown
    assert "`second` is needed for one way to use chat" in shown
    expected = {
        "server": "7",
        "token": SecretReference(env="CHAT_TOKEN"),
        "second": SecretReference(env="CHAT_2"),
    }
    assert chat_room.given().channels == (ChosenChannel(kind="chat", own=expected),)
    table = tomllib.loads(compose(chat_room.given()))
    assert table["people"] == [{"name": "owner", "ids": ["chat:U1"], "roles": ["operator"]}]
    assert table["channels"] == {
        "terminal": {"enabled": False},
        "web": {"enabled": False},
        "chat": {
            "allowed_users": ["U1"],
            "server": "7",
            "token": {"env": "CHAT_TOKEN"},
            "second": {"env": "CHAT_2"},
        },
    }
    chat_room.ask("", "n", "n", "y", "h", "env", "CHAT_TOKEN", "", "", "")
    assert tomllib.loads(compose(chat_room.given()))["channels"]["chat"]["pairing"] == "code"
    assert chat_room.given().operators == ()


def test_the_comments_are_those_of_the_example() -> None:
    """So that both files explain a key the same way."""
    example = EXAMPLE
    assert [
        comment for comment in COMMENTS.values() if comment not in re.sub(r"  +", " ", example)
    ] == []


# --- trying a platform --------------------------------------------------------------------


async def check_chat(settings: BaseModel, secrets: Mapping[str, str]) -> str:
    """The check of a platform, which accepts one token."""
    assert isinstance(settings, ChatSettings)
    if secrets["token"] != "right-token":
        raise ChannelUnauthorized(f"`chat`: the token {secrets['token']} is refused")
    return f"logged in to {settings.server}"


@pytest.mark.parametrize(
    ("token", "check", "seen"),
    [
        ("right-token", "check_chat", TrialResult(is_ok=True, line="chat: logged in to h")),
        ("", "check_chat", TrialResult(is_ok=False, line="")),
        ("right-token", "", TrialResult(is_ok=True, line="chat: its settings are well-formed")),
        ("right-token", "nowhere", TrialResult(is_ok=False, line="")),
    ],
)
def test_a_platform_is_tried_if_its_manifest_has_a_check(
    token: str, check: str, seen: TrialResult, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = try_chat(monkeypatch, token, check)
    assert result.is_ok == seen.is_ok
    assert result.line == (seen.line or result.line)


def test_a_platforms_message_is_redacted(monkeypatch: pytest.MonkeyPatch) -> None:
    """A token in an error is redacted (P8), and the channel is named once."""
    result = try_chat(monkeypatch, "wrong-token-12345", "check_chat")
    assert (result.is_ok, "wrong-token" in result.line) == (False, False)
    assert result.line.startswith("chat: the token ")
    assert "is refused" in result.line


def try_chat(monkeypatch: pytest.MonkeyPatch, token: str, check: str) -> TrialResult:
    manifest = ChannelManifest(
        kind="chat",
        adapter="a:b",
        settings=f"{__name__}:ChatSettings",
        check=f"{__name__}:{check}" if check else "",
    )

    def kinds(_faults: list[str]) -> dict[str, tuple[ChannelManifest, type[BaseModel]]]:
        return {"chat": (manifest, ChatSettings)}

    monkeypatch.setattr("zeroclaw.daemon.config_check.kinds_of", kinds)
    monkeypatch.setattr(flow, "CHECK_S", 5.0)
    settings = {"server": "h", "token": {"env": "CHAT_TOKEN"}}
    monkeypatch.setenv("CHAT_TOKEN", token)
    return try_channel(ChosenChannel(kind="chat", own=settings), manifest)
