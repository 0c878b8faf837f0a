"""The file tools that list and search."""

import asyncio
import errno
import os
import re
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes.manual_clock import ManualClock
from tests.fakes.plain_tool import AT_HOME, SOMEBODY, Records, tool_context
from tests.unit.tools.file_calls import SETTINGS, call, call_with, permitted_call, resources, tool
from zeroclaw.envelope import ConversationId
from zeroclaw.errors import ToolFailed
from zeroclaw.host.executors import FairShare, T
from zeroclaw.tool import ToolContext
from zeroclaw.tools.files import pattern as patterns
from zeroclaw.tools.files import tools
from zeroclaw.tools.files.pattern import BLOCK_BYTES, FoundLine, Pattern, PatternInvalid
from zeroclaw.value import replace


async def test_a_list_says_what_everything_is(workspace: Path) -> None:
    """Directories, files with sizes, links that lead nowhere here, and the rest."""
    (workspace / "d").mkdir()
    (workspace / "d" / "deep").touch()
    (workspace / "a").write_bytes(b"x" * 1234)
    (workspace / "link").symlink_to("/etc")
    os.mkfifo(workspace / "pipe")
    top = "a (1,234 bytes)\nd/\nlink (symbolic link, not followed)\npipe (pipe, socket or device)"
    assert await call(workspace, "list_files") == top
    assert await call(workspace, "list_files", depth=2) == f"{top}\nd/deep (0 bytes)"
    assert await call(workspace, "list_files", path="d") == "deep (0 bytes)"


async def test_a_list_is_bounded_and_an_empty_one_says_so(workspace: Path) -> None:
    """A model knows whether it has seen everything."""
    assert await call(workspace, "list_files") == "[`.` is empty]"
    await asyncio.to_thread(make_many, workspace, 6)
    lines = (await call(workspace, "list_files")).split("\n")
    assert (len(lines), lines[-1]) == (6, "[there is more; these are the first 5]")


async def test_names_that_are_no_text_are_listed(workspace: Path) -> None:
    """Newlines, escapes and bytes that are not UTF-8 can't break the list."""
    for name in (b"a\nb", b"c\x1b[31md", b"e\xff"):
        os.close(os.open(os.fsencode(workspace) + b"/" + name, os.O_CREAT))
    listed = (await call(workspace, "list_files")).split("\n")
    assert listed == ["a b (0 bytes)", "cd (0 bytes)", "e? (0 bytes)"]


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        ({"pattern": "def "}, "a.py:2: def f():\nd/b.py:1: def g():"),
        ({"pattern": "DEF "}, "[nothing found]"),
        ({"pattern": "DEF ", "ignore_case": True}, "a.py:2: def f():\nd/b.py:1: def g():"),
        (
            {"pattern": r"^def \w\(.*:(.\[31m)?$", "regex": True},
            "a.py:2: def f():\nd/b.py:1: def g():",
        ),
        ({"pattern": "def", "names": "b*"}, "d/b.py:1: def g():"),
        ({"pattern": "def", "path": "d"}, "d/b.py:1: def g():"),
        ({"pattern": "def", "path": "a.py"}, "a.py:2: def f():"),
        (
            {"pattern": "def", "max_results": 1},
            "a.py:2: def f():\n[the search stopped when it had found 1 lines: narrow it down]",
        ),
    ],
)
async def test_a_search_finds_lines(
    workspace: Path, arguments: dict[str, object], found: str
) -> None:
    """By text or expression, below a path, by name, and no more than requested."""
    (workspace / "d").mkdir()
    (workspace / "a.py").write_text("import os\r\ndef f():\x1b[31m\r\n", encoding="utf-8")
    (workspace / "d" / "b.py").write_text("def g():\n", encoding="utf-8")
    (workspace / "data").write_bytes(b"def \0")
    assert await call(workspace, "search_files", **arguments) == found


async def test_a_search_says_what_it_passed_over(workspace: Path) -> None:
    """Large files are counted, and the bytes of all files together are bounded."""
    (workspace / "a").write_text("x" * 400 + "\n", encoding="utf-8")
    (workspace / "b").write_bytes(b"x" * 2001)
    (workspace / "c").write_bytes(b"y" * 1999)
    (workspace / "d").write_bytes(b"y" * 1999)
    (workspace / "e").write_bytes(b"x" * 1999)
    assert await call(workspace, "search_files", pattern="x") == "\n".join(
        [
            f"a:1: {'x' * 299}…",
            "[skipped 1 file larger than 2,000 bytes]",
            "[the search stopped when it had read as much as one search may: narrow it down]",
        ]
    )


async def test_a_walk_passes_over_what_cannot_be_opened(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One file of another user must not end each search and each list of a whole project."""
    (workspace / "db").mkdir()
    for name in ("a", "db/b", "log"):
        (workspace / name).write_text("x\n", encoding="utf-8")
    system_open = os.open

    def refuse(path: str | Path, flags: int, *, dir_fd: int | None = None) -> int:
        if path in {"db", "log"}:
            raise PermissionError(errno.EACCES, "Permission denied")
        return system_open(path, flags, dir_fd=dir_fd)

    monkeypatch.setattr(os, "open", refuse)
    unreadable = "protected, not allowed by the policy, or unreadable"
    found = await call(workspace, "search_files", pattern="x")
    assert found == f"a:1: x\n[skipped 2 paths: {unreadable}]"
    listed = await call(workspace, "list_files", depth=2)
    assert listed == f"a (2 bytes)\ndb/\nlog (2 bytes)\n[skipped 1 path: {unreadable}]"
    with pytest.raises(ToolFailed, match="can't enter `db`: permission denied"):
        await call(workspace, "list_files", path="db")


async def test_a_pattern_that_cannot_be_used_is_reported(workspace: Path) -> None:
    """The model reads what is wrong with it."""
    with pytest.raises(ToolFailed, match=r"the pattern `\(a` can't be used: missing \)"):
        await call(workspace, "search_files", pattern="(a", regex=True)


async def test_a_search_ends_when_it_has_taken_its_time(workspace: Path) -> None:
    """The finds until then are the answer, which says so."""
    (workspace / "a").write_text("x\n", encoding="utf-8")
    settings = replace(SETTINGS, max_search_cpu_s=0)
    [search] = [tool_ for tool_ in tools(settings) if tool_.spec.name == "search_files"]
    done = await search.run(search.check({"pattern": "x"}), tool_context(workspace))
    assert done.text == "\n".join(
        [
            "[nothing found]",
            "[the search stopped when it had taken as long as one search may: narrow it down]",
        ]
    )


async def test_a_search_does_not_follow_links(workspace: Path) -> None:
    """Neither a linked file nor a linked directory is read."""
    (workspace / "link").symlink_to(workspace.parent / "outside")
    (workspace / "file").symlink_to(workspace.parent / "outside" / "secret")
    assert await call(workspace, "search_files", pattern="hunter") == "[nothing found]"


@pytest.mark.parametrize("name", ["list_files", "search_files"])
async def test_a_walk_is_made_in_its_conversations_turn_off_the_event_loop(
    workspace: Path, name: str
) -> None:
    """A hostile expression costs its own conversation time, and no other (P9)."""
    turns: list[tuple[str, bool]] = []

    class Watched(FairShare):
        async def run(self, conversation: str, work: Callable[[], T]) -> T:
            def watched() -> T:
                turns.append((conversation, threading.current_thread() is threading.main_thread()))
                return work()

            return await super().run(conversation, watched)

    (workspace / "lines").write_bytes(b"abaabbab" * 10)
    settings = replace(SETTINGS, share=Watched("calls on files", at_once=4))
    arguments = {"pattern": "(a|b)*c", "regex": True} if name == "search_files" else {}
    await call_with(settings, workspace, name, **arguments)
    assert turns == [(tool_context(workspace).conversation, False)]


@pytest.mark.parametrize("name", ["list_files", "search_files"])
async def test_a_walk_names_the_directory_and_all_below_it(workspace: Path, name: str) -> None:
    """All that it reads is judged (P3); of a file it is the file alone."""
    (workspace / "d").mkdir()
    (workspace / "a").touch()
    arguments = {"path": "d", "pattern": "x"} if name == "search_files" else {"path": "d"}
    file_tool, context = tool(name), tool_context(workspace)
    walked = await file_tool.resources(file_tool.check(arguments), context)
    assert walked == (f"file:{workspace}/d", f"file:{workspace}/d/**")
    alone = await file_tool.resources(file_tool.check({**arguments, "path": "a"}), context)
    assert alone == (f"file:{workspace}/a",)
    assert await resources(workspace, "d") == (f"file:{workspace}/d",)


async def test_a_walk_neither_opens_nor_names_what_the_call_may_not_touch(workspace: Path) -> None:
    """It is counted; a closed directory counts once, with all it holds."""
    for place in ("a", "secret", "shut/one", "shut/two", "d/secret", "d/b"):
        (workspace / place).parent.mkdir(exist_ok=True)
        (workspace / place).write_text("hunter2\n", encoding="utf-8")

    def permits(resource: str) -> bool:
        return not resource.endswith("/secret") and f"{workspace}/shut/" not in resource

    skipped = "[skipped 3 paths: protected, not allowed by the policy, or unreadable]"
    searched = await permitted_call(workspace, permits, "search_files", pattern="hunter")
    assert searched == f"a:1: hunter2\nd/b:1: hunter2\n{skipped}"
    listed = await permitted_call(workspace, permits, "list_files", depth=3)
    assert listed == f"a (8 bytes)\nd/\nshut/\nd/b (8 bytes)\n{skipped}"
    found = await permitted_call(workspace, permits, "search_files", pattern="x", path="shut")
    skipped_both = "[skipped 2 paths: protected, not allowed by the policy, or unreadable]"
    assert found == f"[nothing found]\n{skipped_both}"


async def test_a_walk_that_no_gate_narrowed_touches_nothing(workspace: Path) -> None:
    """A tool that is run without a decision fails closed."""
    (workspace / "a").write_text("hunter2\n", encoding="utf-8")
    default = ToolContext(
        conversation=ConversationId("01C"),
        principal=SOMEBODY,
        address=AT_HOME,
        workspace=workspace,
        clock=ManualClock(),
        spawned=Records().spawned,
    ).permits
    found = await permitted_call(workspace, default, "search_files", pattern="hunter")
    assert (
        found
        == "[nothing found]\n[skipped 1 path: protected, not allowed by the policy, or unreadable]"
    )


def make_many(workspace: Path, number: int) -> None:
    for name in range(number):
        (workspace / f"{name}").touch()


# --- patterns, against the standard library's, which is right but can be stalled ------------------

ATOMS = st.sampled_from(
    [
        r"a",
        r"b",
        r"_",
        r".",
        r"\d",
        r"\D",
        r"\w",
        r"\W",
        r"\s",
        r"\S",
        r"\b",
        r"^",
        r"$",
        r"[ab]",
        r"[^a]",
        r"[a-c]",
        r"[\d_]",
        r"[^\W]",
        r"[]a]",
        r"1",
        r"-",
        r"\.",
        r"\t",
        r"é",
        r"(a|b)",
        r"(?:ab|)",
        r"()",
    ]
)
REPEATS = st.sampled_from(["*", "+", "?", "{2}", "{1,2}", "{1,}", "{0}"])
PATTERNS = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, inner).map(lambda two: f"(?:{two[0]}|{two[1]})"),
        st.tuples(inner, REPEATS).map(lambda two: f"({two[0]}){two[1]}"),
    ),
    max_leaves=6,
)
LINES = st.lists(st.text("abB_ 1-.\té", max_size=8), min_size=1, max_size=12)


def found(pattern: Pattern, data: bytes) -> list[FoundLine]:
    return list(pattern.lines(data, lambda: None))


@given(pattern=PATTERNS, lines=LINES, fold=st.booleans(), block_bytes=st.integers(1, 40))
def test_it_finds_the_lines_that_the_standard_library_finds(
    pattern: str, lines: list[str], fold: bool, block_bytes: int
) -> None:
    """The two agree line by line, wherever the blocks of the file end."""
    flags = re.ASCII | (re.IGNORECASE if fold else re.NOFLAG)
    theirs = [
        FoundLine(number=number, text=line)
        for number, line in enumerate(lines, start=1)
        # What ends the file is no line of its own, and of a long one only a block is searched.
        if (line or number < len(lines))
        and re.search(pattern, line, flags)
        and len(line.encode()) < block_bytes
    ]
    data = "\n".join(lines).encode()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(patterns, "BLOCK_BYTES", block_bytes)
        ours = found(Pattern(pattern, ignore_case=fold), data)
    short = [line_ for line_ in ours if len(lines[line_.number - 1].encode()) < block_bytes]
    assert short == theirs


@given(text=st.text("ab.*(\\[é\r", min_size=1, max_size=3), line=st.text("ab.*(\\[é\r", max_size=8))
def test_a_text_is_found_as_it_is(text: str, line: str) -> None:
    """Nothing in it means anything but itself."""
    assert bool(found(Pattern(text, regex=False), line.encode())) == (text in line)


@pytest.mark.parametrize("pattern", ["(a+)+b", "(a|a)*b", "(a*)*b", "a*a*a*a*a*a*b", "(.*a){20}b"])
def test_a_pattern_that_stalls_others_takes_no_time(pattern: str) -> None:
    """Each byte is read once, for any pattern (the test's time-out is the assertion)."""
    assert not found(Pattern(pattern), b"a" * 1_000_000)


def test_a_long_line_is_searched_as_far_as_a_block_goes() -> None:
    """The next line is found, with its number."""
    data = b"x" * 3 * BLOCK_BYTES + b"y\ny\n"
    assert [line_.number for line_ in found(Pattern("y"), data)] == [2]
    assert [line_.number for line_ in found(Pattern("^x"), data)] == [1]


def test_a_search_asks_before_each_block_whether_to_go_on() -> None:
    """However many lines it has found, and however few."""
    checks: list[int] = []
    data = b"y\n" * (5 * BLOCK_BYTES)
    assert not list(Pattern("x").lines(data, lambda: checks.append(1)))
    assert len(checks) >= len(data) // BLOCK_BYTES


def test_bytes_that_are_no_text_are_searched_around() -> None:
    """A broken letter hides nothing behind it, and a line's end may have two letters."""
    assert found(Pattern("^..b$"), b"a\xffb\r\nb\r\n") == [FoundLine(number=1, text="a\ufffdb")]


@pytest.mark.parametrize(
    ("pattern", "complaint"),
    [
        ("a)", "unexpected ): a)"),
        ("(a", "missing ): (a"),
        ("[a", "missing ]: [a"),
        ("*a", "no argument for repetition operator: *"),
        (r"(a)\1", r"invalid escape sequence: \1"),
        ("(?=a)", "invalid perl operator: (?="),
        ("(?<=a)", "invalid perl operator: (?<"),
        ("[b-a]", "invalid character class range: b-a"),
        ("a{1001}", "invalid repetition size: {1001}"),
        ("((a{200}){200}){200}", "invalid repetition size: {200}"),
        (r"[\pL\pN\pS]{1000}", "pattern too large - compile failed"),
        ("(" * 2000, "missing ): "),
        ("\ud800", "no argument for repetition operator: ?"),
    ],
)
def test_a_pattern_that_cannot_be_used_is_explained(pattern: str, complaint: str) -> None:
    """The model reads what is wrong."""
    with pytest.raises(PatternInvalid) as raised:
        Pattern(pattern)
    assert str(raised.value).startswith(complaint)
