"""Files that no policy or approval can open: the daemon's own, and people's keys (S3-23).

Names are compared without regard to case, because some file systems do the same. Only `file:`
resources are checked: a sandbox masks the same names itself, and all else is up to the policy.
"""

import re
from collections.abc import Callable, Iterable

from zeroclaw.gate.conditions import ToolFacts
from zeroclaw.resource import composed
from zeroclaw.secret_names import names_secrets
from zeroclaw.tool import below
from zeroclaw.value import Value

_FILE = "file:"


class Protected(Value):
    """Real paths, absolute and normalised; if both lists cover a path, the longer entry wins.

    Attributes:
        closed: Files and folders that no call may touch: the data directory, the configuration,
            files that contain secrets.
        open: Folders inside a closed one that calls may still touch: the workspaces.
    """

    closed: tuple[str, ...]
    open: tuple[str, ...] = ()


def objection(facts: ToolFacts, resources: tuple[str, ...] | None, protected: Protected) -> str:
    """Return the reason why a call may not run under any policy; empty for none.

    A call with unknown resources is blocked if it may touch files at all, because they can't be
    checked.
    """
    if resources is None:
        may_touch = not facts.effects <= {"network"}
        return "its resources could not be determined" if may_touch else ""
    closed = _Closed(protected)
    for resource in resources:
        if not is_normal(resource):
            return "a resource of it is not in normal form"
        if not resource.startswith(_FILE):
            continue
        path = resource.removeprefix(_FILE).casefold()
        reason = closed.objection(path)
        # Deleting a folder reaches everything in it; a walk skips closed paths.
        if not reason and below(resource) not in resources and closed.is_in(path):
            reason = "holds files of the daemon itself"
        if reason:
            return f"`{' '.join(resource.split())}` {reason}"
    return ""


def guard(protected: Protected) -> Callable[[str], bool]:
    """Return a predicate for the files that a walk may touch."""
    closed = _Closed(protected)
    return lambda resource: not closed.objection(resource.removeprefix(_FILE).casefold())


def is_normal(resource: str) -> bool:
    """Whether a resource is in the normal form in which patterns and roots are compared.

    For a file that is an absolute path without `.`, `..`, empty segments, a trailing slash or NUL.
    """
    if not resource.startswith(_FILE):
        return _OTHER_KINDS.fullmatch(resource) is not None
    path = resource.removeprefix(_FILE)
    if path == "/":
        return True
    head, *segments = path.split("/")
    return head == "" and bool(segments) and not _ODD.intersection(segments) and "\0" not in path


_ODD = frozenset({"", ".", ".."})
_OTHER_KINDS = re.compile(r"(host|sandbox|notes|results|attachment|skill|tools):[^\s\0]+")


class _Closed:
    """The protected paths, prepared for comparison."""

    def __init__(self, protected: Protected) -> None:
        self._closed = tuple(composed(root).casefold() for root in protected.closed)
        self._open = tuple(composed(root).casefold() for root in protected.open)

    def objection(self, path: str) -> str:
        """Return the reason why a path, in lower case, may not be touched; empty for none."""
        closed = _longest(path, self._closed)
        if closed and len(closed) >= len(_longest(path, self._open)):
            return "belongs to the daemon itself"
        return "is where secrets are kept" if _holds_secrets(path) else ""

    def is_in(self, path: str) -> bool:
        """Whether a folder contains a protected path."""
        return any(_is_within(root, path) for root in self._closed)


def _longest(path: str, roots: Iterable[str]) -> str:
    """Return the deepest of the roots that contain the path, empty for none."""
    return max((root for root in roots if _is_within(path, root)), key=len, default="")


def _is_within(path: str, root: str) -> bool:
    return path == root or path.startswith(root.rstrip("/") + "/")


# `/proc` exposes the environment of every process of this user.
_SECRET_ROOTS = ("/etc/shadow", "/etc/gshadow", "/etc/sudoers", "/etc/sudoers.d", "/proc")
_SECRET_PATHS = frozenset(f"{root}{end}" for root in _SECRET_ROOTS for end in ("", "-"))
_SECRET_FOLDERS = tuple(f"{root}/" for root in _SECRET_ROOTS)


def _holds_secrets(path: str) -> bool:
    """Judge by the names alone; the path is in lower case."""
    if path in _SECRET_PATHS or path.startswith(_SECRET_FOLDERS):
        return True
    return any(map(names_secrets, path.split("/")))
