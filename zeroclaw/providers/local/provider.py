"""Keeps a child process with a model running, and passes requests to the provider that calls it.

    absent ── first request ──> starting ── its line ──> running ── died ──> absent
                                    └── no line, an error ──> absent     (the next start waits longer)

No task watches the child; it is checked when it is needed. If it died while idle, the next request
replaces it. If it dies during an answer, only that answer breaks.
"""

import asyncio
import json
import os
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, suppress
from pathlib import Path

from msgspec.structs import asdict

from zeroclaw.backoff import BackOff
from zeroclaw.config.model import ProviderSettings
from zeroclaw.errors import (
    ProviderOverloaded,
    ProviderUnreachable,
    ProviderUnusable,
    StreamBroken,
    refused_as,
)
from zeroclaw.host.models.gguf import knows_tools, trained_tokens
from zeroclaw.host.places import expand
from zeroclaw.json_fields import parse_bytes
from zeroclaw.provider import (
    Counting,
    Endpoint,
    ModelRequest,
    Provider,
    ProviderContext,
    ProviderFacts,
    StreamEvent,
    bounded_window,
)
from zeroclaw.providers.local.checks import check_model, with_remedy
from zeroclaw.value import Struct, Value, field, replace

CHILD = Path(__file__).with_name("child.py")
# What `deploy/fetch_model.py` fetches: SmolLM2-135M-Instruct. It chats; in no mode did it ever call
# a tool (tried 2026-11).
SHIPPED_FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
SHIPPED_NOTE = "the built-in model is small: it only chats and never calls a tool"
NO_TOOLS_NOTE = "this model's chat template has no place for tools: it only chats"
# Without these two, the model repeated one clause up to its token limit (tried 2026-11); with a
# penalty of 1.3 it loses the thread.
SHIPPED_PENALTY = 1.1
SHIPPED_TOKENS = 512
USUAL_TOKENS = 4096  # memory for the whole window is allocated at start
# The child gets only these environment variables, so that it sees none of our secrets.
PASSED_ON = ("PATH", "HOME", "LANG", "TMPDIR", "LD_LIBRARY_PATH", "PYTHONPATH")
# llama.cpp's threads synchronise many times per token. By default they spin while waiting, which
# wastes time slices when the processors have other work: 2 to 5 tokens a second on two cores, where
# sleeping threads made 19 to 39 (SmolLM2-135M, 2026-11).
SLEEP_WHILE_WAITING = {"OMP_WAIT_POLICY": "PASSIVE"}
BACK_OFF = BackOff(first_s=0.5, longest_s=8.0)  # a person waits for an answer
# A cut connection is noticed before the child's death; the kernel reports both in milliseconds.
DEATH_NOTICE_S = 3.0  # but under load, freeing a model's memory takes a while
STOP_S = 2.0
KILLED_S = 30.0  # longest wait for a killed process to end, for the same reason
MAX_THREADS = 8  # more gain nothing for models that fit a machine without a GPU


class LocalRules(Value):
    """Which model to run, and how.

    Attributes:
        model_file: A GGUF file.
        threads: Processor threads.
        max_output_tokens: Small models ramble; without a limit they fill their window.
        temperature: Sampling temperature, unless a request sets its own.
        repeat_penalty: How much less likely a recent token becomes; 1 changes nothing.
        start_s: Longest wait for a model to load, in seconds.
    """

    model_file: Path
    threads: int = 2
    max_output_tokens: int = 1024
    temperature: float = 0.8
    repeat_penalty: float = 1.0
    start_s: float = 120.0


class _Child(Struct, frozen=True, eq=False, kw_only=True):
    """A running child, and the provider that calls it."""

    process: Process
    provider: Provider


class LocalProvider(Struct, eq=False):
    """A `Provider` that runs a child process; answers one request at a time, in order of arrival.

    Attributes:
        rules: Which model to run, and how.
        facts: The facts of the model file; the child allocates memory for the whole window.
        child: The program that serves the model.
    """

    rules: LocalRules
    facts: ProviderFacts
    context: ProviderContext
    child: Path = CHILD
    _child: _Child | None = None
    # The child works on one answer at a time. Requests wait here and not in its queue, where a
    # waiting request would look stalled.
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    _failures: int = 0

    @property
    def pid(self) -> int | None:
        """The child's process id, None while there is none."""
        return self._child.process.pid if self._child is not None else None

    async def start(self) -> None:
        """Load the model now and not on the first request.

        Raises:
            ProviderUnusable: The package or the file is missing, or the model does not load.
        """
        async with self._turn:
            await self._running()

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamEvent, None]:
        """Call the child, starting it if necessary; see `Provider.stream`."""
        bound = request.max_output_tokens or self.rules.max_output_tokens
        tools = request.tools if self.facts.calls_tools else ()
        request = replace(request, max_output_tokens=bound, tools=tools)
        async with self._turn:
            may_repeat = True
            while True:
                child = await self._running()
                try:
                    async with aclosing(child.provider.stream(request)) as events:
                        async for event in events:
                            yield event
                except (ProviderOverloaded, ProviderUnreachable):
                    # Nothing was yielded. The child died while idle, or can't keep up.
                    if not may_repeat or not await _has_died(child):
                        raise
                    may_repeat = False
                except StreamBroken:
                    await _has_died(child)  # so that the next request doesn't use a dead child
                    raise
                else:
                    self._failures = 0
                    return

    async def count(self, texts: Sequence[str]) -> tuple[int, ...] | None:
        """Let the child count tokens, if one is running; see `Counting.count`."""
        child = self._child
        if child is None or not isinstance(child.provider, Counting):
            return None
        return await child.provider.count(texts)

    async def aclose(self) -> None:
        """End the child; safe to call twice, and a later request starts another."""
        child, self._child = self._child, None
        if child is not None:
            await _stop(child.process)
            await child.provider.aclose()

    async def _running(self) -> _Child:
        """Return the child; start a new one if there is none or it has died."""
        child = self._child
        if child is not None and _is_alive(child.process):
            return child
        if child is not None:
            self._child = None
            self._failures += 1
            await child.process.wait()
            self.context.log("local_model_died", code=child.process.returncode)
            await child.provider.aclose()
        await asyncio.to_thread(check_model, self.rules.model_file)
        # A single start or death does not count as a failure.
        await self.context.clock.sleep(BACK_OFF.wait_s(self._failures - 1, self.context.jitter()))
        self._failures += 1  # reset once it has answered
        self._child = await self._start()
        return self._child

    async def _start(self) -> _Child:
        """Start a child and wait until it is serving."""
        facts, key = self.facts, self.context.ids.token()
        with refused_as(ProviderUnreachable, f"no process can be started for `{facts.model}`"):
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-P", str(self.child), str(os.getpid())),
                stdin=PIPE,
                stdout=PIPE,
                stderr=DEVNULL,
                env={
                    **{name: os.environ[name] for name in PASSED_ON if name in os.environ},
                    **SLEEP_WHILE_WAITING,
                },
                start_new_session=True,  # Ctrl-C must not reach the child: turns are finished first
            )
        settings = {
            **asdict(self.rules),
            "model_file": str(self.rules.model_file),
            "model": facts.model,
            "context_tokens": facts.context_tokens,
            "api_key": key,  # through the pipe, because every user can read a command line
        }
        url = ""
        try:
            url = await self._first_line(process, json.dumps(settings))
        finally:
            if not url:
                await _stop(process)
        self.context.log("local_model_started", model=facts.model, pid=process.pid)
        endpoint = Endpoint(
            base_url=f"{url}/v1",
            model=facts.model,
            api_key=key,
            context_tokens=facts.context_tokens,
            tokenize_url=f"{url}/tokenize",
        )
        return _Child(process=process, provider=self.context.open_endpoint(endpoint))

    async def _first_line(self, process: Process, settings: str) -> str:
        """Send the child its settings; return its URL."""
        name = self.rules.model_file.name
        line = b""
        try:
            async with asyncio.timeout(self.rules.start_s):
                if process.stdin is not None and process.stdout is not None:  # both are pipes
                    with suppress(ConnectionError):  # it may have reported an error and ended
                        process.stdin.write(f"{settings}\n".encode())
                        await process.stdin.drain()
                    line = await process.stdout.readline()
        except TimeoutError as error:
            message = f"`{name}` did not load within {self.rules.start_s:g} s"
            raise ProviderUnusable(message) from error
        match parse_bytes(line):
            case {"url": str(url)}:
                return url
            case {"error": str(reason)}:
                message = f"`{name}` does not load: {with_remedy(reason)}"
            case _:
                message = f"`{name}` does not load: its process ended (out of memory?)"
        raise ProviderUnusable(message)


def model_file_of(settings: ProviderSettings, models: Path) -> Path:
    """Return the file named by `[provider] model_file`, else the one that was fetched."""
    return expand(settings.model_file) if settings.model_file else models / SHIPPED_FILE


def open_provider(settings: ProviderSettings, context: ProviderContext) -> LocalProvider:
    """Open the model file; see `model_file_of`."""
    model_file = model_file_of(settings, context.models)
    is_shipped = model_file.name == SHIPPED_FILE
    # If the chat template has no place for tools, llama.cpp silently drops them. An unreadable file
    # is reported when the model is started.
    calls_tools = not is_shipped and knows_tools(model_file) is not False
    window, source = _window(trained_tokens(model_file), settings.context_tokens)
    facts = ProviderFacts(
        model=model_file.stem,
        context_tokens=window,
        context_from=source,
        calls_tools=calls_tools,
        note=SHIPPED_NOTE if is_shipped else "" if calls_tools else NO_TOOLS_NOTE,
        counted_by=settings.tokenizer or "llama.cpp",
    )
    rules = LocalRules(
        model_file=model_file,
        threads=min(MAX_THREADS, os.cpu_count() or 2),
        max_output_tokens=settings.max_output_tokens or (SHIPPED_TOKENS if is_shipped else 1024),
        temperature=0.2 if is_shipped else 0.8,  # its model card's advice
        repeat_penalty=SHIPPED_PENALTY if is_shipped else 1.0,
    )
    return LocalProvider(rules, facts, context)


def _window(trained: int | None, configured: int | None) -> tuple[int, str]:
    """Return the context window to serve, and its source; its memory is allocated at start."""
    tokens, source = bounded_window(trained, "the model file", configured)
    if tokens is None:
        return USUAL_TOKENS, "what is usual here"
    if configured is None and tokens > USUAL_TOKENS:
        note = f"of the {tokens:,} that {source} names; `provider.context_tokens` takes more memory"
        return USUAL_TOKENS, f"what is usual here, {note}"
    return tokens, source


def _is_alive(process: Process) -> bool:
    """Whether a process runs; asks the kernel, because asyncio learns of a death a little later."""
    if process.returncode is not None:
        return False
    try:
        return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None
    except ChildProcessError:
        return False


async def _has_died(child: _Child) -> bool:
    """Wait a moment for the child's death; return whether it died."""
    with suppress(TimeoutError):
        async with asyncio.timeout(DEATH_NOTICE_S):
            await child.process.wait()
    return child.process.returncode is not None


async def _stop(process: Process) -> None:
    """End a child: close its input, and kill it if that does not end it."""
    if process.stdin is not None:
        process.stdin.close()
    with suppress(TimeoutError):
        async with asyncio.timeout(STOP_S):
            await process.wait()
    if process.returncode is None:
        with suppress(ProcessLookupError):
            process.kill()
        async with asyncio.timeout(KILLED_S):
            await process.wait()
