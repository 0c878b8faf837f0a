"""Slack under the contract suite: the library's client against `emulate`, behind a front of ours."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from channels.slack import SlackSettings
from channels.slack.adapter import SlackChannel
from channels.slack.decode import ACTIONS
from channels.slack.emulator.server import APP, BOT, Fault, Json, Person, SlackServer, UserAction
from tests.contract.channel_suite import (
    Adapter,
    Harness,
    Losable,
    Standing,
    asking_why,
    first,
    nothing_to_open,
    noting,
    receiving,
    telling,
)
from tests.fakes.bare_context import bare_context, no_log
from tests.fakes.manual_clock import ManualClock
from zeroclaw import (
    Address,
    Admit,
    ApprovalId,
    Channel,
    ChannelContext,
    Choice,
    Log,
    MessageRef,
    SecretReference,
)

SETTINGS = SlackSettings(
    bot_token=SecretReference(env="BOT"),
    app_token=SecretReference(env="APP"),
    api_base_url="http://127.0.0.1:1",
)
AGAIN_S = 1.0
THREAD = "1700000000.000001"


def slack_context(
    slack: SlackServer,
    clock: ManualClock,
    settings: SlackSettings = SETTINGS,
    *,
    positions: Mapping[str, str] | None = None,
    account: str = "",
    log: Log = no_log,
) -> ChannelContext:
    return bare_context(
        "slack",
        settings.model_copy(update={"api_base_url": slack.url}),
        secrets={"bot_token": BOT, "app_token": APP},
        clock=clock,
        log=log,
        positions=positions,
        account=account,
    )


@dataclass(kw_only=True)
class SlackHarness:
    """One person's direct chat, or a thread in it, in which answers are streamed."""

    slack: SlackServer
    ann: Person
    context: ChannelContext
    clock: ManualClock
    channel: Channel = field(init=False)
    refused: asyncio.Event = field(default_factory=asyncio.Event)
    thread: str = ""
    newest: UserAction | None = None
    people: dict[str, tuple[Person, str]] = field(default_factory=dict[str, tuple[Person, str]])
    room: str = ""

    def make(self) -> Channel:
        self.channel = SlackChannel(self.context)
        return self.channel

    def door(self, admit: Admit) -> Admit:
        return telling(asking_why(admit), self.refused)

    def present(self) -> AbstractAsyncContextManager[None]:
        return nothing_to_open()

    def keep_limits(self) -> Callable[[], int]:
        self.slack.now = lambda: self.clock.now().timestamp()
        self.slack.is_paced = True
        return lambda: self.slack.buckets.refused

    async def turn_to(self, name: str) -> None:
        self.people.setdefault("ann", (self.ann, self.thread))
        if name not in self.people:
            self.people[name] = await self.slack.person(), ""
        self.ann, self.thread = self.people[name]

    async def gather(self) -> str:
        self.room = await self.slack.channel(*(person for person, _ in self.people.values()))
        return self.room

    async def cut(self) -> None:
        await self.slack.drop()

    @property
    def address(self) -> Address:
        return Address(
            channel="slack",
            account=f"T000000001-{self.slack.bot}",
            chat=f"@{self.person}",
            thread=self.thread or None,
            direct=True,
        )

    @property
    def person(self) -> str:
        return self.ann.id

    async def say(self, text: str) -> bool:
        if self.room:
            return await self._wait_delivered(
                await self.ann.says(f"@zeroclaw {text}", channel=self.room)
            )
        return await self._wait_delivered(await self.ann.says(text, thread=self.thread))

    async def send_file(self, name: str, content: bytes, *, claimed_bytes: int) -> bool:
        sent = self.ann.sends(name, content, claimed_bytes=claimed_bytes, thread=self.thread)
        return await self._wait_delivered(await sent)

    async def redeliver(self) -> bool:
        assert self.newest is not None
        self.refused.clear()
        if self.clock.sleeping():
            await self.clock.advance(AGAIN_S)
        else:
            self.newest.confirmed.clear()
            await self.newest.dispatch()
        return await self._wait_delivered(self.newest)

    async def press(
        self, ref: MessageRef, approval: ApprovalId, choice: Choice, reason: str = ""
    ) -> bool:
        action = ACTIONS["deny_with_reason" if reason else choice]
        everyone = {
            f"@{person.id}": person
            for person in (self.ann, *(person for person, _ in self.people.values()))
        }
        place = self.room or everyone[ref.address.chat].direct
        thread = ref.address.thread or ""
        pressed = self.ann.presses(ref.message, action, approval, channel=place, thread=thread)
        is_delivered = await self._wait_delivered(await pressed)
        if not reason:
            return is_delivered
        await self.slack.until(lambda: self.slack.views)
        return await self._wait_delivered(await self.ann.submits(self.slack.views[-1], reason))

    def toasts(self) -> Sequence[str]:
        return [str(message["text"]) for message in self.slack.ephemeral]

    async def messages(self) -> tuple[Standing, ...]:
        if self.room:  # in its threads too
            return tuple(map(standing, self.slack.bot_messages.get(self.room, {}).values()))
        found = await self.slack.from_bot(self.ann.direct, thread=self.thread)
        return tuple(standing(message, self.slack) for message in found)

    async def sees_typing(self) -> bool:
        return bool(self.slack.statuses.get((self.ann.direct, THREAD)))

    async def tools_seen(self) -> tuple[str, ...]:
        if not self.slack.tasks:
            beside = self.slack.statuses.get((self.ann.direct, THREAD), "").rstrip("…")
            return tuple(f"{name} running" for name in beside.split(", ") if name)
        states = {"in_progress": "running", "complete": "ok", "error": "failed"}
        return tuple(f"{tool} {states[status]}" for tool, status in dict(self.slack.tasks).items())

    async def sees_preview(self) -> str:
        return ""

    async def _wait_delivered(self, action: UserAction) -> bool:
        """Wait until the bot has confirmed an event, or could not store it."""
        self.newest = action
        await first(action.confirmed.wait(), self.refused.wait())
        return action.confirmed.is_set()


def standing(message: Json, slack: SlackServer | None = None) -> Standing:
    file: tuple[str, int] | None = None
    texts: list[str] = []
    receipts: list[str] = []
    buttons: set[ApprovalId] = set()
    for block in cast("list[Json]", message.get("blocks", [])):
        elements = cast("list[Json]", block.get("elements", []))
        match block["type"]:
            case "markdown":
                texts.append(str(block["text"]))
            case "rich_text":
                inside = [cast("list[Json]", element["elements"]) for element in elements]
                texts += [str(text["text"]) for elements_ in inside for text in elements_]
            case "context" if block["block_id"] == "zc-file":
                assert slack is not None
                link = str(elements[0]["text"]).removeprefix("<").partition("|")[0]
                shown = slack.links[link]
                file = str(shown["name"]), len(slack.files[str(shown["id"])])
            case "context":
                receipts += [str(element["text"]) for element in elements]
            case _:
                buttons |= {ApprovalId(str(element["value"])) for element in elements}
    return Standing(
        text="\n".join(texts), buttons=frozenset(buttons), receipts=tuple(receipts), file=file
    )


@asynccontextmanager
async def slack_platform(directory: Path) -> AsyncGenerator[SlackHarness]:
    async with slack_with(slack_context) as harness:
        yield harness


@asynccontextmanager
async def slack_with(
    context: Callable[[SlackServer, ManualClock], ChannelContext], *, in_thread: bool = False
) -> AsyncGenerator[SlackHarness]:
    clock = ManualClock()
    async with SlackServer() as slack:
        ann = await slack.person()
        root = await slack.upstream(
            "chat.postMessage", ann.token, channel=ann.direct, text="a thread"
        )
        yield SlackHarness(
            slack=slack,
            ann=ann,
            context=context(slack, clock),
            clock=clock,
            thread=str(root["ts"]) if in_thread else "",
        )


class SlackPlace:
    """One person's direct chat, and a bot that comes and goes."""

    def __init__(self, slack: SlackServer, ann: Person) -> None:
        self.facts: list[str] = []
        self.secrets = (BOT, APP)
        self._slack, self._ann = slack, ann

    @asynccontextmanager
    async def life(self, admit: Admit, positions: Mapping[str, str]) -> AsyncGenerator[Channel]:
        log = noting(self.facts)
        context = slack_context(self._slack, ManualClock(), positions=positions, log=log)
        channel = SlackChannel(context)
        async with receiving(channel, admit):
            yield channel

    async def write(self, text: str) -> None:
        await self._ann.says(text)


@asynccontextmanager
async def slack_placed(directory: Path) -> AsyncGenerator[SlackPlace]:
    async with SlackServer() as slack:
        yield SlackPlace(slack, await slack.person())


def lose(harness: Harness, _kind: Losable) -> None:
    assert isinstance(harness, SlackHarness)
    harness.slack.will("chat.postMessage", Fault(is_lost=True))


SLACK = Adapter(
    name="slack",
    capabilities=SETTINGS.capabilities(),
    platform=slack_platform,
    thread=THREAD,
    typing_thread=THREAD,
    loses=lose,
    placed=slack_placed,
    needs=("emulate",),
)
