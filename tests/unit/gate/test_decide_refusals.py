"""What the gate refuses: calls that can't be decided about, and what no approval opens."""

import asyncio
import dataclasses
import json
import threading
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import cast

import pytest

from tests.unit.gate.gate_house import (
    CONTEXT,
    KEY,
    READ,
    SECRET,
    WRITE,
    House,
    call,
    denied,
    frozen_in,
    kinds,
    names_a_secret_file,
    same,
    unresolvable,
)
from zeroclaw.envelope import ActionId
from zeroclaw.errors import ResourcesUnresolved, ToolArgumentsInvalid
from zeroclaw.gate import receipt
from zeroclaw.gate.receipt import Fields
from zeroclaw.gate.shipped import assemble
from zeroclaw.gate.verdict import REASON_CHARS, Allowed, Denied, Refusals
from zeroclaw.redact import MARKER, Redaction, Redactor
from zeroclaw.tool import Arguments
from zeroclaw.value import replace


def refuses(_: Arguments) -> Arguments:
    raise ToolArgumentsInvalid(("path: is missing", "n: must be a number"))


def crashes(_: Arguments) -> Arguments:
    raise RuntimeError(SECRET)


def makes_a_list(_: Arguments) -> Arguments:
    return cast("Arguments", ["a"])


@pytest.mark.parametrize(
    ("name", "arguments", "checks", "text"),
    [
        ("read_file", '{"a"', same, "arguments: not valid JSON at line 1 column 5"),
        ("read_file", '{"a":1,"a":2}', same, "arguments: the key 'a' is given twice"),
        ("read_file", '{"a":NaN}', same, "arguments: NaN is not JSON"),
        ("read_file", "[]", same, "arguments: must be a JSON object"),
        ("read_file", "{}", refuses, "path: is missing; n: must be a number"),
        ("read_file", "{}", crashes, "raised RuntimeError"),
        ("read_file", "{}", makes_a_list, "raised ValueError"),
    ],
)
async def test_arguments_that_cannot_be_used_fail_with_a_clear_text(
    name: str, arguments: str, checks: Callable[[Arguments], Arguments], text: str
) -> None:
    """The model reads what is wrong; nothing ran; audit and receipt have it, too (S2-09)."""
    house = House(tools=[dataclasses.replace(READ, checks=checks)])
    batch = await house.decide(call(name, arguments))
    told = f"the arguments of `read_file` can't be used, nothing ran: {text}"
    assert denied(batch) == ("failed", told)
    assert kinds(batch) == [
        ("proposed", "web:8", ""),
        ("evaluated", "schema", "deny"),
        ("failed", "schema", ""),
    ]
    assert batch.writes == ()


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (
            "read_fiel",
            "there is no tool `read_fiel`, nothing ran; did you mean `read_file`, `write_file`",
        ),
        (
            "zzz",
            "there is no tool `zzz`, nothing ran; the tools are `read_file`, `shell`, `write_file`",
        ),
        (
            "a\nb" * 40,
            f"there is no tool `{'a b' + 'a b' * 39:.64}`, nothing ran; the tools are "
            "`read_file`, `shell`, `write_file`",
        ),
        (
            "\ud800",
            "there is no tool `\\ud800`, nothing ran; the tools are `read_file`, `shell`, `write_file`",
        ),
    ],
)
async def test_an_unknown_tool_is_answered_with_near_names(name: str, text: str) -> None:
    """Whatever the model calls it, the turn goes on."""
    assert denied(await House().decide(call(name))) == ("failed", text)


async def test_without_tools_the_model_is_told_so() -> None:
    """An empty shelf is a sentence, too."""
    batch = await House(tools=[]).decide(call("x"))
    assert denied(batch)[1] == "there is no tool `x`, nothing ran; there are no tools at all"


async def test_a_refusal_carries_a_receipt_that_verifies() -> None:
    """Denied and failed calls carry one too: for this call, this outcome, this text (P7)."""
    batch = await House(policy=assemble("readonly")).decide(call("shell", '{ "path": "a" }'))
    (verdict,) = batch.verdicts
    assert isinstance(verdict, Denied)
    assert denied(batch) == (
        "denied",
        "`shell` may not run: no statement allows `tool:shell` for `web:8`",
    )
    fields = Fields(
        conversation=CONTEXT.conversation,
        action=verdict.action or ActionId(""),
        tool="shell",
        arguments='{"path":"a"}',
        outcome="denied",
        result=denied(batch)[1],
    )
    assert receipt.signer([KEY], fields, verdict.receipt)
    assert not receipt.signer([KEY], replace(fields, outcome="ok"), verdict.receipt)
    message = verdict.result
    assert (message.tool_call_id, message.tool_name, message.is_error) == ("call_1", "shell", True)


async def test_a_refusal_repeats_no_secret_and_no_forged_receipt() -> None:
    """A name made of a secret, or of a receipt, is not given back (P7, P8)."""
    forged = "zc-receipt-1-" + "A" * 43
    batch = await House().decide(call(SECRET), call(forged))
    first, second = (
        verdict.result.content for verdict in batch.verdicts if isinstance(verdict, Denied)
    )
    assert f"there is no tool `{MARKER}`" in first
    assert second.count("zc-receipt-") == 1


async def test_a_long_list_of_faults_is_cut() -> None:
    """A refusal is a text for the model, not the whole schema."""

    def refuses_at_length(_: Arguments) -> Arguments:
        raise ToolArgumentsInvalid(("path: is missing",) * 1000)

    batch = await House(tools=[dataclasses.replace(READ, checks=refuses_at_length)]).decide(
        call("read_file")
    )
    assert len(denied(batch)[1]) == REASON_CHARS + 2


async def test_of_a_reason_without_end_only_its_beginning_is_read() -> None:
    """An error that quotes a whole answer costs no more; what the cut tears is not shown."""

    class Counting(Redactor):
        read = 0

        def feed(self, state: Redaction, text: str) -> tuple[Redaction, str]:
            self.read += len(text)
            return super().feed(state, text)

    secret = "s3cret" * 500
    redactor = Counting([secret])
    result, _ = Refusals(redactor, KEY).refuse(
        call("read_file"),
        secret * 400,
        conversation=CONTEXT.conversation,
        action=ActionId("01A"),
        arguments="{}",
        outcome="failed",
        at=datetime(2026, 11, 22, tzinfo=UTC),
    )
    assert redactor.read < 20_000
    assert "s3cret" not in result.content


async def test_long_arguments_are_checked_off_the_event_loop() -> None:
    """A text of 100,000 keys takes no time of another conversation (P9)."""
    threads: list[threading.Thread] = []

    def checks(arguments: Arguments) -> Arguments:
        threads.append(threading.current_thread())
        return arguments

    house = House(tools=[dataclasses.replace(READ, checks=checks)])
    await house.decide(call("read_file", '{"path":"a"}'), call("read_file", " " * 9_000))
    assert threads[0] is threading.main_thread()
    assert threads[1] is not threading.main_thread()


async def test_a_call_with_long_arguments_is_judged_and_described_off_the_event_loop() -> None:
    """What a tool says about a whole file takes as long as the file (P9)."""
    threads: list[threading.Thread] = []

    def describes(_: Arguments) -> str:
        threads.append(threading.current_thread())
        return "write it"

    house = House(tools=[dataclasses.replace(WRITE, describes=describes)])
    long = json.dumps({"path": "a", "content": "x" * 3_000})
    await house.decide(call("write_file", '{"path":"a"}'), call("write_file", long))
    # Once for each language.
    assert [one is threading.main_thread() for one in threads] == [True] * 2 + [False] * 2


async def hangs(_: Arguments) -> tuple[str, ...]:
    await asyncio.Event().wait()
    return ()


async def names_no_host(_: Arguments) -> tuple[str, ...]:
    return ("host:127.1:80",)


async def names_no_utf8(_: Arguments) -> tuple[str, ...]:
    return ("file:/ws/\udcff",)


async def names_numbers(_: Arguments) -> tuple[str, ...]:
    return cast("tuple[str, ...]", (1, 2))


UNKNOWN = "what it would touch could not be determined"


@pytest.mark.parametrize(
    ("touches", "why"),
    [
        (names_a_secret_file, "`file:/ws/.ssh/id_rsa` is where secrets are kept"),
        (unresolvable, f"{UNKNOWN}; `x.example` has no address"),
        (hangs, f"{UNKNOWN}; the tool took too long to say"),
        (names_no_host, f"{UNKNOWN}; what it said has no normal form"),
        (names_no_utf8, f"{UNKNOWN}; what it said has no UTF-8"),
        (names_numbers, f"{UNKNOWN}; what it said has no UTF-8"),
    ],
)
async def test_protection_stands_above_every_policy(
    touches: Callable[[Arguments], Awaitable[tuple[str, ...]]], why: str
) -> None:
    """Even full autonomy does not open it, and no person is asked (S3-23)."""
    house = House(
        tools=[dataclasses.replace(READ, touches=touches)],
        policy=assemble("full"),
        resolve_timeout_s=0,
    )
    if touches is not hangs:
        house.resolve_timeout_s = 10
    batch = await house.decide(call("read_file"))
    assert denied(batch) == (
        "denied",
        f"`read_file` may not run: {why}; no approval can change that",
    )
    assert kinds(batch)[1:] == [("evaluated", "protection", "deny"), ("denied", "protection", "")]


async def test_a_tool_that_changes_its_copy_changes_nothing() -> None:
    """Arguments are frozen before the tool is asked what they touch (K7)."""

    async def meddles(arguments: Arguments) -> tuple[str, ...]:
        cast("dict[str, object]", arguments)["path"] = "/etc/passwd"
        return ()

    batch = await House(tools=[dataclasses.replace(READ, touches=meddles)]).decide(
        call("read_file")
    )
    (verdict,) = batch.verdicts
    assert isinstance(verdict, Allowed)
    assert frozen_in(batch).action.arguments == {"path": "a"}


async def test_cancelling_the_gate_passes_through() -> None:
    """A turn that is stopped while a tool is asked leaves nothing behind."""
    house = House(tools=[dataclasses.replace(READ, touches=hangs)])
    async with asyncio.TaskGroup() as group:
        task = group.create_task(house.decide(call("read_file")))
        await asyncio.sleep(0)
        task.cancel()
    assert task.cancelled()


async def test_a_refusal_spells_out_what_nobody_sees() -> None:
    """A tool that can't say what it would touch may quote a stranger: a file, or a server."""

    async def quotes(_: Arguments) -> tuple[str, ...]:
        raise ResourcesUnresolved("`a\U000e0072\u202e` has no address")

    house = House(tools=[dataclasses.replace(READ, touches=quotes)])
    _, text = denied(await house.decide(call("read_file")))
    assert "`a⟨U+E0072⟩⟨U+202E⟩` has no address" in text
