"""Every tool of the house, with a call that it can do; a new tool adds its line here."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from zeroclaw.host.sandbox import Broken, System, Working, look_around
from zeroclaw.tool import Tool
from zeroclaw.tools import files, shell

NO_SYSTEM = System(bwrap="/missing/bwrap", prlimit="/missing/prlimit", links=(), directories=())


@dataclass(frozen=True, slots=True, kw_only=True)
class Implementation:
    """One tool under test.

    Attributes:
        make: Makes it.
        good: Arguments of a call that it can do in the workspace that `furnish` made.
        slow: Arguments of a call that lasts until it is stopped, None where every call is short.
        needs: What must be installed to run it.
    """

    make: Callable[[], Tool]
    good: Mapping[str, object]
    slow: Mapping[str, object] | None = None
    needs: tuple[str, ...] = ()


def furnish(workspace: Path) -> None:
    """Put into a workspace what the good calls expect."""
    (workspace / "notes").write_text("milk\nbread\n", encoding="utf-8")


def _file_tool(name: str) -> Callable[[], Tool]:
    return lambda: next(one for one in files.tools(files.FilesSettings()) if one.spec.name == name)


def _boxed_shell() -> Tool:
    found = look_around()
    system = NO_SYSTEM if isinstance(found, Broken) else found
    [tool] = shell.tools(shell.ShellSettings(sandbox=Working(system=system)))
    return tool


def _bare_shell() -> Tool:
    settings = shell.ShellSettings(sandbox=Broken(reason="none"), without_sandbox="ask")
    [tool] = shell.tools(settings)
    return tool


IMPLEMENTATIONS: Mapping[str, Implementation] = {
    "read_file": Implementation(make=_file_tool("read_file"), good={"path": "notes"}),
    "list_files": Implementation(make=_file_tool("list_files"), good={}),
    "search_files": Implementation(make=_file_tool("search_files"), good={"pattern": "milk"}),
    "write_file": Implementation(
        make=_file_tool("write_file"), good={"path": "notes", "content": "eggs\n"}
    ),
    "edit_file": Implementation(
        make=_file_tool("edit_file"),
        good={"path": "notes", "old_text": "milk", "new_text": "eggs"},
    ),
    "shell in a sandbox": Implementation(
        make=_boxed_shell,
        good={"command": "cat notes"},
        slow={"command": "echo up > pipe; sleep 600"},
        needs=("bwrap",),
    ),
    "shell without one": Implementation(
        make=_bare_shell,
        good={"command": "cat notes"},
        slow={"command": "echo up > pipe; sleep 600"},
    ),
}
