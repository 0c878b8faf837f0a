"""The tool that hands a file of the workspace to the people of the chat."""

import asyncio
from pathlib import Path

import pytest

from tests.fakes.plain_tool import tool_context
from tests.unit.tools.file_calls import SETTINGS
from zeroclaw.config.model import FilesSettings
from zeroclaw.errors import ResourcesUnresolved, ToolArgumentsInvalid, ToolFailed
from zeroclaw.tool import Tool, ToolOutput
from zeroclaw.tools.files import tools
from zeroclaw.tools.files.content import media_type
from zeroclaw.value import replace


def sender(*hidden: Path) -> Tool:
    settings = replace(
        SETTINGS, limits=FilesSettings.model_construct(max_send_bytes=20), hidden=hidden
    )
    [found] = [tool for tool in tools(settings) if tool.spec.name == "send_file"]
    return found


async def run(workspace: Path, *, takes: int = 1_000, **arguments: object) -> ToolOutput:
    tool = sender(workspace / ".env")
    context = replace(tool_context(workspace), max_file_bytes=takes)
    return await tool.run(tool.check(arguments), context)


async def test_a_file_is_handed_over_as_it_is(workspace: Path) -> None:
    await asyncio.to_thread((workspace / "a.csv").write_bytes, b"\0\xff")
    output = await run(workspace, path="a.csv", caption="here", name="sums.csv")
    [file] = output.files
    assert (file.name, file.media_type, file.content) == ("sums.csv", "text/csv", b"\0\xff")
    assert file.caption == "here"
    assert output.text == "`a.csv` goes to the chat as `sums.csv`: 2 bytes"


def test_it_only_reads_and_is_named_by_its_path() -> None:
    """So policy lets it run where a file may be read; files of one batch keep their order."""
    spec = sender().spec
    assert (spec.effects, spec.risk, spec.idempotent) == ({"read"}, "low", True)
    assert spec.execution == "sequential"


async def test_its_resource_is_the_file(workspace: Path) -> None:
    tool = sender()
    (workspace / "link").symlink_to("a")
    named = await tool.resources(tool.check({"path": "a"}), tool_context(workspace))
    assert named == (f"file:{workspace}/a",)
    with pytest.raises(ResourcesUnresolved, match="`link` is a symbolic link"):
        await tool.resources(tool.check({"path": "link"}), tool_context(workspace))


@pytest.mark.parametrize(
    ("path", "takes", "complaint"),
    [
        (".env", 1_000, "`.env` is protected and can't be read"),
        ("link", 1_000, "`link` is a symbolic link"),
        ("../a", 1_000, "goes up with `..`"),
        ("d", 1_000, "`d` is a directory"),
        (".", 1_000, "give the path of a file in it"),
        ("nothing", 1_000, "`nothing` does not exist"),
        ("large", 1_000, "`large` has 21 bytes, and 20 is the most that can be sent here"),
        ("a", 3, "`a` has 4 bytes, and 3 is the most that can be sent here"),
        ("a", 0, "this chat takes no files"),
    ],
)
async def test_a_file_that_can_not_be_sent_is_reported(
    workspace: Path, path: str, takes: int, complaint: str
) -> None:
    """Protected places and links among it, and what is larger than the chat takes (S2-08)."""
    for name, content in (("a", "milk"), (".env", "key"), ("large", "x" * 21)):
        await asyncio.to_thread((workspace / name).write_text, content)
    (workspace / "d").mkdir()
    (workspace / "link").symlink_to("a")
    with pytest.raises(ToolFailed, match=complaint):
        await run(workspace, path=path, takes=takes)


@pytest.mark.parametrize("extra", [{"caption": "x" * 501}, {"name": "x" * 256}, {"to": "bob"}])
def test_too_long_or_unknown_arguments_are_refused(extra: dict[str, object]) -> None:
    with pytest.raises(ToolArgumentsInvalid):
        sender().check({"path": "a", **extra})


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("a.pdf", "application/pdf"),
        ("a.tar.gz", "application/octet-stream"),
        ("a", "application/octet-stream"),
    ],
)
def test_a_name_says_what_it_is(name: str, expected: str) -> None:
    assert media_type(name) == expected
