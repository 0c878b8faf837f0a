"""Every tool's promises to the gate, the card and the turn."""

import asyncio
import copy
import os
import re
from contextlib import suppress
from pathlib import Path
from typing import Literal, get_args

import pytest
from pydantic import BaseModel, ConfigDict

from tests.contract.tool_implementations import IMPLEMENTATIONS, furnish
from tests.fakes.plain_tool import Records, tool_context
from zeroclaw.errors import ToolArgumentsInvalid
from zeroclaw.host import processes
from zeroclaw.text.language import LANGUAGES
from zeroclaw.tool import Arguments, Effect, Risk, Tool, line_of

# The part of JSON Schema that model endpoints understand, and that all tools keep to.
WORDS = {
    "type",
    "description",
    "default",
    "enum",
    "items",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "minLength",
    "maxLength",
}


class Schema(BaseModel):
    """The exact keys at the top of a tool's schema."""

    model_config = ConfigDict(extra="forbid")
    type: Literal["object"]
    properties: dict[str, dict[str, object]]
    required: list[str]
    additionalProperties: Literal[False]  # noqa: N815  JSON Schema's name


every_tool = pytest.mark.parametrize("name", IMPLEMENTATIONS)
every_tool_run = pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.needs(*implementation.needs))
        for name, implementation in IMPLEMENTATIONS.items()
    ],
)
every_slow_tool = pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.needs(*implementation.needs))
        for name, implementation in IMPLEMENTATIONS.items()
        if implementation.slow is not None
    ],
)


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    place = tmp_path / "workspace"
    place.mkdir()
    furnish(place)
    return place


def make_tool(name: str) -> Tool:
    return IMPLEMENTATIONS[name].make()


@every_tool
def test_the_declaration_can_be_relied_on(name: str) -> None:
    """Policy, batch and card read nothing but this, so it is well-formed and constant."""
    spec = make_tool(name).spec
    assert re.fullmatch("[a-z][a-z0-9_]*", spec.name)
    assert spec.description.strip() == spec.description != ""
    assert spec.effects <= set(get_args(Effect))
    assert spec.risk in get_args(Risk)
    assert spec.timeout_s > 0
    assert spec == make_tool(name).spec


@every_tool
def test_the_schema_is_one_that_every_endpoint_reads(name: str) -> None:
    """An object, closed, in plain words; each property has a type, each required one exists."""
    schema = Schema.model_validate(dict(make_tool(name).spec.parameters))
    keywords = {keyword for field in schema.properties.values() for keyword in field}
    assert keywords - WORDS == set()
    assert [name for name, field in schema.properties.items() if "type" not in field] == []
    assert set(schema.required) <= set(schema.properties)


@every_tool
def test_checked_arguments_are_complete_and_final(name: str) -> None:
    """Checked arguments are frozen and hashed, so a second check changes nothing (S1-11)."""
    tool = make_tool(name)
    good = IMPLEMENTATIONS[name].good
    before = copy.deepcopy(dict(good))
    checked = tool.check(good)
    assert dict(good) == before
    assert set(checked) == set(Schema.model_validate(dict(tool.spec.parameters)).properties)
    assert tool.check(checked) == checked


@every_tool
def test_every_fault_of_a_call_is_reported_at_once(name: str) -> None:
    """A mismatch is one typed error with all its faults, and it repeats no value (S1-12)."""
    tool = make_tool(name)
    wrong = {key: {"hunter2": 1} for key in IMPLEMENTATIONS[name].good}
    bad = {**wrong, "sudo": "hunter2"}
    with pytest.raises(ToolArgumentsInvalid) as raised:
        tool.check(bad)
    fields = {fault.partition(":")[0].partition(".")[0] for fault in raised.value.faults}
    assert fields == set(bad)
    assert "hunter2" not in str(raised.value)


@every_tool
@pytest.mark.parametrize("value", [None, "\ud800", [], 1e400, "a\0b", {"a": "b"}])
def test_no_value_breaks_the_check(name: str, value: object) -> None:
    """Whatever JSON can say is accepted or refused, never anything else (S1-12)."""
    tool = make_tool(name)
    for key in tool.check(IMPLEMENTATIONS[name].good):
        with suppress(ToolArgumentsInvalid):
            checked = tool.check({**IMPLEMENTATIONS[name].good, key: value})
            assert tool.check(checked) == checked


@every_tool
def test_the_card_gets_one_line(name: str) -> None:
    """The line is the same each time and stays one line for any arguments."""
    tool = make_tool(name)
    good = tool.check(IMPLEMENTATIONS[name].good)
    nasty = {
        key: "a\nb\x1b[31m`c`\u202e" * 15 if isinstance(value, str) else value
        for key, value in good.items()
    }
    assert tool.describe(good) == tool.describe(good)
    for line in (
        line_of(tool, arguments, language) for arguments in (good, nasty) for language in LANGUAGES
    ):
        assert line.isprintable()
        assert 0 < len(line) < 1000


@every_tool
async def test_resources_are_resolved_and_stay_the_same(name: str, workspace: Path) -> None:
    """Asked twice they are equal, each names its kind, and asking changes nothing."""
    tool = await asyncio.to_thread(make_tool, name)
    link = workspace.parent / "link"
    await asyncio.to_thread(link.symlink_to, workspace)
    before = await asyncio.to_thread(contents, workspace)
    good = tool.check(IMPLEMENTATIONS[name].good)
    first = await tool.resources(good, tool_context(workspace))
    assert first == await tool.resources(good, tool_context(link))
    assert first != ()
    assert [
        resource
        for resource in first
        if not re.fullmatch(
            "(file:/|host:|sandbox:|notes:|results:|attachment:|skill:|tools:).*", resource
        )
    ] == []
    assert await asyncio.to_thread(contents, workspace) == before


@every_tool_run
async def test_a_good_call_works(name: str, workspace: Path) -> None:
    """It is not empty, and can be stored."""
    tool = await asyncio.to_thread(make_tool, name)
    records = Records()
    output = await tool.run(
        tool.check(IMPLEMENTATIONS[name].good), tool_context(workspace, records)
    )
    assert (output.is_error, output.text != "") == (False, True)
    assert output.text.encode("utf-8")
    assert [group is None for group in records.seen[-1:]] in ([], [True])


@every_tool_run
async def test_an_idempotent_tool_can_be_run_again(name: str, workspace: Path) -> None:
    """An idempotent tool has the same effect when a crash repeats it (P3)."""
    tool = await asyncio.to_thread(make_tool, name)
    good = tool.check(IMPLEMENTATIONS[name].good)
    await tool.run(good, tool_context(workspace))
    once = await asyncio.to_thread(contents, workspace)
    if tool.spec.idempotent:
        await tool.run(good, tool_context(workspace))
    assert await asyncio.to_thread(contents, workspace) == once


@every_tool_run
async def test_a_tool_that_only_reads_changes_nothing(name: str, workspace: Path) -> None:
    """The effects that policy decides by are true."""
    tool = await asyncio.to_thread(make_tool, name)
    before = await asyncio.to_thread(contents, workspace)
    await tool.run(tool.check(IMPLEMENTATIONS[name].good), tool_context(workspace))
    after = await asyncio.to_thread(contents, workspace)
    assert tool.spec.effects != {"read"} or after == before


@every_tool_run
async def test_a_call_that_is_cancelled_at_once_stops(name: str, workspace: Path) -> None:
    """Cancelling before the first step leaves no task and no process behind."""
    tool = await asyncio.to_thread(make_tool, name)
    records = Records()
    good = tool.check(IMPLEMENTATIONS[name].good)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(_run(tool, good, workspace, records))
        await asyncio.sleep(0)
        task.cancel()
    assert task.cancelled()
    records_left = [record for record in records.seen if record is not None]
    assert [await asyncio.to_thread(processes.living, record.pgid) for record in records_left] == [
        ()
    ] * len(records_left)


@every_slow_tool
async def test_a_call_that_is_cancelled_midway_stops(name: str, workspace: Path) -> None:
    """Nothing that it started lives on, and the record of its processes is closed."""
    tool = await asyncio.to_thread(make_tool, name)
    records = Records()
    os.mkfifo(workspace / "pipe")
    slow = tool.check(IMPLEMENTATIONS[name].slow or {})
    async with asyncio.TaskGroup() as group:
        task = group.create_task(_run(tool, slow, workspace, records))
        assert await asyncio.to_thread((workspace / "pipe").read_text) == "up\n"
        task.cancel()
    assert task.cancelled()
    assert [record is None for record in records.seen] == [False, True]
    assert await asyncio.to_thread(processes.living, records.pgid) == ()


async def _run(tool: Tool, arguments: Arguments, workspace: Path, records: Records) -> str:
    return (await tool.run(arguments, tool_context(workspace, records))).text


def contents(workspace: Path) -> dict[str, bytes]:
    return {place.name: place.read_bytes() for place in workspace.iterdir()}
