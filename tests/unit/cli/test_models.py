"""`zeroclaw models`: the list, downloads, and trials of a model."""

import asyncio
import hashlib
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.contract.provider_implementations import over
from tests.emulators.gguf_files import CHATS, gguf
from tests.emulators.model_server import ModelServer
from tests.emulators.pages import Page, Pages
from tests.fakes.manual_clock import LoopClock
from zeroclaw.cli import root
from zeroclaw.cli.configuration import Loaded, load
from zeroclaw.cli.models.provider import at_the_terminal, take_model
from zeroclaw.cli.models.trial import (
    TOOL,
    MeasuredAnswer,
    Trial,
    as_json,
    in_words,
    try_and_close,
    verdict,
)
from zeroclaw.errors import ProviderUnusable
from zeroclaw.host.models.gguf import model_files
from zeroclaw.provider import Endpoint, ModelRequest, ProviderFacts, StreamEvent, TextDelta
from zeroclaw.providers.local.provider import SHIPPED_FILE

MODEL = gguf() + b"weights"
HASH = hashlib.sha256(MODEL).hexdigest()


async def run(*arguments: str) -> tuple[int, str, str]:
    """Exit code, stdout and stderr; on a thread, since a command runs its own event loop."""
    done = await asyncio.to_thread(CliRunner().invoke, root, ["models", *arguments])
    return done.exit_code, done.stdout, done.stderr


@pytest.fixture
def models(home: Path) -> Path:
    """The models directory of a user who has no configuration and no keys."""
    directory = home / "data" / "zeroclaw" / "models"
    directory.mkdir(parents=True)
    return directory


def configured(tmp_path: Path, provider: str) -> str:
    path = tmp_path / "c.toml"
    path.write_text(f"[provider]\n{provider}\n", encoding="utf-8")
    return str(path)


@pytest.mark.slow
async def test_the_list_shows_files_servers_and_the_chosen_model(models: Path) -> None:
    """The shipped model and the chosen one are marked."""
    (models / SHIPPED_FILE).write_bytes(gguf(CHATS))
    (models / "big.gguf").write_bytes(gguf())
    async with ModelServer() as server:
        code, out, err = await run("list", "--url", server.url)
    assert (code, err) == (0, "")
    assert f"model files in {models}\n" in out
    assert "  big.gguf  (0 MB, calls tools)\n" in out
    assert f"  {SHIPPED_FILE}  (0 MB, only chats, shipped, in use)\n" in out
    assert f"offers on {server.url}\n  scripted\n" in out
    assert f"in use: {models / SHIPPED_FILE}\n" in out


@pytest.mark.slow
async def test_the_list_for_machines_holds_the_configured_server(
    models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is asked with its key; a server that does not answer is listed too."""
    monkeypatch.setenv("MY_KEY", "s3cret-of-mine")
    async with Pages() as server:
        server.pages["/v1/models"] = Page(body=b'{"data": [{"id": "a"}, {"id": "b"}]}')
        config = configured(
            tmp_path,
            f'kind = "openai"\nbase_url = "{server.url}/v1"\nmodel = "b"\n'
            'api_key = { env = "MY_KEY" }',
        )
        arguments = ("list", "--config", config, "--url", "http://127.0.0.1:1/v1")
        code, out, _ = await run(*arguments, "--json")
        _, words, _ = await run(*arguments)
        assert server.requests[0][1]["authorization"] == "Bearer s3cret-of-mine"
    listing = json.loads(out)
    assert code == 0
    assert listing["servers"][0]["models"] == ["a", "b"]
    assert listing["taken"]["model"] == "b"
    assert any("`127.0.0.1:1` can't be reached" in line for line in listing["silent"])
    assert (listing["files"], "s3cret" in out) == ([], False)
    assert "  b  (in use)\n" in words
    assert f"none; `zeroclaw models get --config {config}` adds one" in words


@pytest.mark.slow
@pytest.mark.parametrize("form", [(), ("--json",)])
async def test_no_password_of_an_address_is_printed(
    form: tuple[str, ...], models: Path, tmp_path: Path
) -> None:
    """Neither of a server that answers, nor of one that does not, nor by a test of it (P8)."""
    async with Pages() as server:
        server.pages["/v1/models"] = Page(body=b'{"data": [{"id": "a"}]}')
        answers = server.url.replace("://", "://ann:hunter2@")
        config = configured(
            tmp_path, f'kind = "openai"\nbase_url = "{answers}/v1"\nmodel = "a"\nattempts = 1'
        )
        silent = f"{answers}/else/v1"
        listed = await run("list", "--config", config, "--url", silent, *form)
        tested = await run("test", "--config", config, "--url", silent, *form)
        own_test = await run("test", "--config", config, *form)
        place = server.url.removeprefix("http://")
    printed = "".join(str(result) for result in (listed, tested, own_test))
    assert "hunter2" not in printed
    assert f"http://…@{place}/v1" in printed
    assert f"is `http://…@{place}/else/v1` the address" in printed


@pytest.mark.slow
async def test_a_long_list_is_cut_and_says_so(models: Path, tmp_path: Path) -> None:
    """A short one is shown whole, without an empty line."""
    async with Pages() as long, Pages() as short:
        names = [{"id": f"m{number}"} for number in range(14)]
        long.pages["/v1/models"] = Page(body=json.dumps({"data": names}).encode())
        short.pages["/v1/models"] = Page(body=json.dumps({"data": names[:1]}).encode())
        config = configured(
            tmp_path, f'kind = "scripted"\nscript = "s"\nbase_url = "{long.url}/v1"'
        )
        _, out, _ = await run("list", "--config", config, "--url", f"{short.url}/v1")
    assert "  m11\n  … and 2 more; --json lists all\n" in out
    assert (" m12" in out, "\n\n" in out) == (False, False)
    assert out.endswith('in use: kind = "scripted"\n')


@pytest.mark.slow
async def test_a_model_is_fetched_from_a_url_and_then_local(models: Path) -> None:
    """The output says what to write into the configuration."""
    async with Pages() as server:
        server.pages["/x/big%20one.gguf"] = Page(body=MODEL)
        url = f"{server.url}/x/big%20one.gguf"
        code, out, _ = await run("get", url, "--sha256", HASH.upper())
        again = await run("get", url, "--sha256", HASH)
        assert len(server.requests) == 1
    target = models / "big one.gguf"
    assert (code, await asyncio.to_thread(target.read_bytes)) == (0, MODEL)
    assert f'kind = "local"\nmodel_file = "{target}"\n' in out
    assert again == (code, out, "")


async def test_a_path_is_checked_and_stays_where_it_is(models: Path, tmp_path: Path) -> None:
    source = tmp_path / "a.gguf"
    await asyncio.to_thread(source.write_bytes, MODEL)
    code, out, _ = await run("get", str(source), "--sha256", f"sha256:{HASH}")
    assert (code, f'model_file = "{source}"\n' in out) == (0, True)
    assert (await run("get", str(source)))[:2] == (0, out)
    assert await asyncio.to_thread(model_files, models) == ()


@pytest.mark.parametrize(
    ("arguments", "code", "reason"),
    [
        (("http://127.0.0.1:1/a.gguf",), 2, "give --sha256, 64 characters"),
        (("http://127.0.0.1:1/a.gguf", "--sha256", "1234"), 2, "64 characters"),
        (("http://127.0.0.1:1/a.gguf", "--sha256", HASH), 1, "run this again"),
        (("http://127.0.0.1:1/", "--sha256", HASH), 2, "ends in a file name"),
        (("http://127.0.0.1:1/.gguf", "--sha256", HASH), 2, "ends in a file name"),
        (("http://127.0.0.1:1/a%1b.gguf", "--sha256", HASH), 2, "ends in a file name"),
        (("ftp://h/a.gguf", "--sha256", HASH), 2, "a URL begins with http:// or https://"),
        (("http://[h/a.gguf", "--sha256", HASH), 2, "a URL begins with http:// or https://"),
        (("https:///a.gguf", "--sha256", HASH), 2, "a URL begins with http:// or https://"),
        (("https://h:99999/a.gguf", "--sha256", HASH), 2, "a URL begins with http:// or https://"),
        (("/nowhere/a.gguf",), 1, "no such file"),
        (("~nobody-of-this-name/a.gguf",), 1, "no such file"),
    ],
)
async def test_a_model_that_can_not_be_fetched_is_reported(
    models: Path, arguments: tuple[str, ...], code: int, reason: str
) -> None:
    """P10."""
    code_seen, out, err = await run("get", *arguments)
    assert (code_seen, out, reason in err) == (code, "", True)
    assert await asyncio.to_thread(model_files, models) == ()


@pytest.mark.parametrize("command", [("list",), ("test",), ("test", "--model", "m")])
async def test_an_invalid_address_is_reported(models: Path, command: tuple[str, ...]) -> None:
    """In words, and before any request (P10)."""
    _, out, err = await run(*command, "--url", "junk")
    assert "`junk`: no address; one begins with http:// or https://" in out + err


async def test_a_chosen_but_missing_model_is_marked(models: Path) -> None:
    """As it is before the first `make run` (P10)."""
    _, out, _ = await run("list")
    assert f"in use: {models / SHIPPED_FILE}, which does not exist" in out


async def test_a_model_path_with_a_tilde_is_expanded(
    models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the daemon does."""
    monkeypatch.setenv("HOME", str(models))
    (models / "big.gguf").write_bytes(gguf())
    named = configured(tmp_path, 'kind = "local"\nmodel_file = "~/big.gguf"')
    _, out, _ = await run("list", "--config", named)
    assert f"in use: {models / 'big.gguf'}\n" in out


@pytest.mark.slow
async def test_a_server_is_tested_by_its_address_alone(models: Path) -> None:
    """Its first model is tested; the code is 0 if it streams, 1 if it does not answer."""
    async with ModelServer() as server:
        server.say("A ", "crustacean.", key="what a lobster is")
        server.call(TOOL.name, {"word": "lobster"}, key="Call the tool")
        code, out, _ = await run("test", "--url", server.url)
        assert (code, out.splitlines()[-1]) == (
            0,
            "`scripted` streams and calls tools: it can do all that zeroclaw offers",
        )
        server.refuse(404, "no such model", key="what a lobster is")
        code, out, _ = await run("test", "--url", server.url, "--model", "x", "--json")
        trial = json.loads(out)
        assert (code, trial["answers"], trial["model"]) == (1, False, "x")
        assert "authorization" not in server.requests[0].headers


@pytest.mark.slow
async def test_the_configured_model_is_tested(models: Path, tmp_path: Path) -> None:
    """A fault in another table does not keep a model from being tested."""
    async with ModelServer() as server:
        server.say("A ", "crustacean.", key="what a lobster is")
        config = configured(
            tmp_path,
            f'kind = "openai"\nbase_url = "{server.url}"\nmodel = "a"\n\n[channels.pigeon]\n',
        )
        code, out, _ = await run("test", "--config", config, "--model", "b")
        assert code == 0
        assert "`b` streams but makes no tool call" in out
        assert server.requests[0].body["model"] == "b"


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.needs("llama", "model")
async def test_the_shipped_model_makes_no_tool_call(models: Path, small_model: Path) -> None:
    """It streams, so the verdict is that it is good for chats alone."""
    (models / SHIPPED_FILE).symlink_to(small_model)
    code, out, _ = await run("test")
    assert code == 0
    assert "tool call    no tool call\n" in out
    verdict = f"`{SHIPPED_FILE.removesuffix('.gguf')}` streams but makes no tool call"
    assert out.splitlines()[-1].startswith(verdict)


@pytest.mark.needs("llama")
async def test_a_local_model_is_tested_by_its_name(models: Path) -> None:
    """A file of the models directory, or a path."""
    (models / "broken.gguf").write_bytes(b"hello")
    code, out, _ = await run("test", "--model", "broken.gguf")
    assert (code, f"`{models}/broken.gguf` is not a GGUF model" in out) == (1, True)
    code, out, _ = await run("test", "--model", "/nowhere/a.gguf")
    assert (code, "no model at `/nowhere/a.gguf`" in out) == (1, True)


# --- `kind = "auto"` ---------------------------------------------------------------------


async def load_choice(
    config: str, *addresses: str, answer: bool | None = None, **keys: str
) -> Loaded:
    """Load the chosen model; a person answers yes or no, or None without a terminal."""

    def ask(_question: str) -> bool:
        return bool(answer)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("zeroclaw.cli.models.provider.USUAL", addresses)
        return await asyncio.to_thread(
            lambda: take_model(load(Path(config)), keys, ask=None if answer is None else ask)
        )


@pytest.mark.slow
async def test_a_discovered_server_is_chosen_for_auto(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server on this machine is chosen; a configured model needs no reason."""
    monkeypatch.setattr("zeroclaw.host.models.servers.LOOPBACK_S", 30.0)  # not under test
    async with ModelServer() as server:
        loaded = await load_choice(configured(tmp_path, 'kind = "auto"'), server.url)
        assert loaded.config.provider.base_url == server.url
        assert server.url in loaded.reason
        fixed = await load_choice(configured(tmp_path, 'kind = "local"'), server.url)
        assert (fixed.config.provider.kind, fixed.reason) == ("local", "")


@pytest.mark.parametrize(("answer", "kind"), [(None, "local"), (False, "local"), (True, "openai")])
async def test_a_key_is_used_only_after_a_yes(
    tmp_path: Path, *, answer: bool | None, kind: str
) -> None:
    """Without a terminal the reason says that the key was not used."""
    loaded = await load_choice(
        configured(tmp_path, 'kind = "auto"'), answer=answer, GROQ_API_KEY="gsk"
    )
    assert loaded.config.provider.kind == kind
    assert "GROQ_API_KEY" in loaded.reason


def test_without_a_terminal_there_is_no_question() -> None:
    """The tests have none."""
    assert at_the_terminal() is None


@pytest.mark.parametrize(
    ("provider", "fault"),
    [
        ('kind = "auto"\nbase_url = "http://a/v1"', "provider.model: a `base_url` needs it"),
        ('kind = "auto"\napi_key = { env = "A_KEY" }', "provider.base_url: an `api_key` needs it"),
    ],
)
async def test_a_discovered_server_gets_no_key(tmp_path: Path, provider: str, fault: str) -> None:
    """P8."""
    code, _, err = await run("list", "--config", configured(tmp_path, provider))
    assert (code, fault in err) == (2, True)


# --- `zeroclaw models test` -----------------------------------------------------------------------

CHAT_PROMPT = "what a lobster is"
TOOL_PROMPT = "Call the tool"


@asynccontextmanager
async def trial_server() -> AsyncGenerator[ModelServer, None]:
    async with ModelServer() as server:
        server.say("A lobster ", "is a ", "crustacean.", key=CHAT_PROMPT, usage=(12, 9))
        yield server


async def trial_of(server: ModelServer) -> Trial:
    return await try_and_close(over(Endpoint(base_url=server.url, model="m")))


async def test_a_capable_model_gets_the_best_verdict() -> None:
    """Only the second request has the definition of the tool."""
    async with trial_server() as server:
        server.call(TOOL.name, {"word": "Lobster"}, key=TOOL_PROMPT)
        trial = await trial_of(server)
        assert [request.tools for request in server.requests] == [[], [TOOL.name]]
    assert verdict(trial) == ("`m` streams and calls tools: it can do all that zeroclaw offers")
    assert (trial.answers, trial.answer.pieces, trial.answer.tokens) == (True, 3, 9)
    assert trial.answer.first_s is not None
    words = "\n".join(in_words(trial))
    assert "answer       A lobster is a crustacean.\ntool call    yes\n" in words
    assert as_json(trial)["tool_call"] == "called"
    assert "accepts      text" in list(in_words(trial))
    assert "window       unknown until the first refusal" in list(in_words(trial))


async def test_the_source_of_the_context_window_is_reported() -> None:
    """Here the endpoint; it explains when a conversation is compacted (S0-16)."""
    async with trial_server() as server:
        server.listed = {"context_length": 65_536}
        trial = await try_and_close(over(Endpoint(base_url=server.url, model="scripted")))
    assert "window       65,536 tokens (the endpoint)" in list(in_words(trial))
    assert as_json(trial)["window"] == "65,536 tokens (the endpoint)"


def test_the_attachments_that_a_model_takes_are_listed() -> None:
    """So it is clear why a model does not see a picture."""
    trial = Trial(model="m", answer=MeasuredAnswer(pieces=1), takes=("audio", "images"))
    assert "accepts      text, audio, images" in list(in_words(trial))
    assert as_json(trial)["takes"] == ("audio", "images")


@pytest.mark.parametrize(
    ("name", "arguments"),
    [("repeat_word", "{"), ("repeat_word", {"word": "crab"}), ("other", {"word": "lobster"})],
)
async def test_a_wrong_call_is_no_call(name: str, arguments: dict[str, object] | str) -> None:
    async with trial_server() as server:
        server.call(name, arguments, key=TOOL_PROMPT)
        trial = await trial_of(server)
    assert verdict(trial) == "`m` streams but calls tools wrongly: expect calls that fail"
    assert any(line.startswith(f"tool call    wrong: {name} ") for line in in_words(trial))


async def test_a_model_that_only_talks_makes_no_tool_call() -> None:
    async with trial_server() as server:
        server.say("I would call it ", "now.", key=TOOL_PROMPT)
        trial = await trial_of(server)
    assert verdict(trial) == "`m` streams but makes no tool call: it can chat, and nothing else"
    assert "tool call    no tool call" in list(in_words(trial))


async def test_a_model_that_thinks_for_too_long_is_reported() -> None:
    """It may call tools, but no one would wait for it."""
    async with trial_server() as server:
        server.say("", reasoning="Should I call it?", finish="length", key=TOOL_PROMPT)
        trial = await trial_of(server)
    assert verdict(trial) == "`m` streams but makes no tool call within 2048 tokens"


async def test_an_endpoint_that_refuses_tools_is_quoted() -> None:
    """As llama.cpp does without its option for tools."""
    async with trial_server() as server:
        server.refuse(400, "tools need `--jinja`", key=TOOL_PROMPT)
        trial = await trial_of(server)
    assert verdict(trial).startswith("`m` streams but makes no tool call: with tools its endpoint")
    assert "tools need `--jinja`" in verdict(trial)
    assert trial.answers


async def test_an_answer_in_one_piece_is_reported() -> None:
    async with ModelServer() as server:
        server.say("A crustacean.", key=CHAT_PROMPT, usage=(3, 0))
        server.call(TOOL.name, {"word": "lobster"}, key=TOOL_PROMPT)
        trial = await trial_of(server)
    assert verdict(trial).startswith("`m` answers in one piece and calls tools")
    assert "speed        came in one piece" in list(in_words(trial))


async def test_a_model_that_does_not_answer_gets_no_further_request() -> None:
    """P10: the endpoint's own message, in one line."""
    async with ModelServer() as server:
        server.refuse(404, "model `m` not found", key=CHAT_PROMPT)
        trial = await trial_of(server)
        assert len(server.requests) == 1
    assert not trial.answers
    assert verdict(trial).startswith("`m` does not answer: ")
    assert "model `m` not found" in verdict(trial)
    assert list(in_words(trial)) == [verdict(trial)]


class Slow:
    """A model that takes two seconds to load, and one for each word; or does not load."""

    def __init__(self, clock: LoopClock, *, fails: bool = False) -> None:
        self._clock = clock
        self._fails = fails

    facts = ProviderFacts(model="slow")

    async def start(self) -> None:
        if self._fails:
            raise ProviderUnusable("no model at `x`")

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamEvent, None]:
        yield TextDelta(text="a\x1b[2J")
        yield TextDelta(text="b")

    async def aclose(self) -> None:
        """Close nothing."""


async def test_a_model_that_does_not_load_does_not_answer() -> None:
    clock = LoopClock()
    trial = await try_and_close(Slow(clock, fails=True), clock)
    assert verdict(trial) == "`slow` does not answer: no model at `x`"
    loaded = await try_and_close(Slow(clock), clock)
    assert loaded.load_s is not None
    assert "\x1b" not in "\n".join(in_words(loaded))


def test_thoughts_that_people_would_see_are_reported() -> None:
    """A closing tag within a line can't be distinguished from an answer about tags."""
    trial = Trial(
        model="m", answer=MeasuredAnswer(text="Okay, a lobster.</think>An animal.", pieces=9)
    )
    assert any(line.startswith("reasoning    is in the answer") for line in in_words(trial))
    trial.answer.text = "An animal."
    assert not any(line.startswith("thoughts") for line in in_words(trial))


async def test_thoughts_closed_by_a_tag_are_no_part_of_the_answer() -> None:
    async with ModelServer() as server:
        server.say("A lobster", "\n</think>\n\nAn animal.", key=CHAT_PROMPT)
        server.call(TOOL.name, {"word": "lobster"}, key=TOOL_PROMPT)
        trial = await trial_of(server)
    assert trial.answer.text == "An animal."


def test_the_speed_leaves_out_the_wait_for_the_first_token() -> None:
    """The first token takes as long as reading the prompt does."""
    played = MeasuredAnswer(pieces=11, first_s=5.0, writing_s=2.0, tokens=21)
    assert played.per_second == 10.0
    guessed = Trial(model="m", answer=MeasuredAnswer(pieces=11, first_s=5.0, writing_s=2.0))
    assert "speed        about 5 tokens a second" in list(in_words(guessed))
    at_once = Trial(model="m", answer=MeasuredAnswer(pieces=11, first_s=5.0))
    assert "speed        too fast to measure" in list(in_words(at_once))
    assert verdict(at_once).startswith("`m` streams")
