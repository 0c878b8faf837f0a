"""What no policy and no approval can open: the daemon's own files, and other people's keys (S3-23).

Names are compared without regard to case, because some file systems do the same. Only `file:`
resources are looked at: what a sandbox grants is the sandbox's matter, all else is the policy's.
"""

import re
from collections.abc import Iterable

from zeroclaw.gate.conditions import ToolFacts
from zeroclaw.value import Value

_FILE = "file:"


class Protected(Value):
    """Real paths, absolute and normalised; where both speak of a path, the longer one wins.

    Attributes:
        closed: Files and folders that are never touched: the data directory, the configuration,
            files that hold secrets.
        open: Folders inside a closed one that may be touched all the same: the workspaces.
    """

    closed: tuple[str, ...]
    open: tuple[str, ...] = ()


class Blocked(Value):
    """The call may not run, whatever the policy says; the model reads `reason`."""

    reason: str


class Passed(Value):
    """Protection has nothing against the call."""


def protect(
    facts: ToolFacts, resources: tuple[str, ...] | None, protected: Protected
) -> Blocked | Passed:
    """Say whether a call touches what nobody may touch.

    A call whose resources couldn't be determined is blocked if it may touch files at all: what
    can't be looked at can't be let through.
    """
    if resources is None:
        if facts.effects <= {"network"}:
            return Passed()
        return Blocked(reason="what it would touch could not be determined")
    for resource in resources:
        if not is_normal(resource):
            return Blocked(reason="a resource of it is not in normal form")
        if resource.startswith(_FILE):
            reason = _objection(resource.removeprefix(_FILE), protected)
            if reason:
                return Blocked(reason=f"`{_one_line(resource)}` {reason}")
    return Passed()


def is_normal(resource: str) -> bool:
    """Tell whether a resource has the one form in which patterns and roots are compared.

    For a file that is an absolute path without `.`, `..`, empty segments, a trailing slash or NUL.
    """
    if not resource.startswith(_FILE):
        return _OTHER.fullmatch(resource) is not None
    path = resource.removeprefix(_FILE)
    if path == "/":
        return True
    head, *segments = path.split("/")
    return head == "" and bool(segments) and not _ODD.intersection(segments) and "\0" not in path


_ODD = frozenset({"", ".", ".."})
_OTHER = re.compile(r"(host|sandbox|notes|results|attachment):[^\s\0]+")


def _objection(path: str, protected: Protected) -> str:
    path = path.casefold()
    closed = _longest(path, protected.closed)
    if closed and len(closed) >= len(_longest(path, protected.open)):
        return "belongs to the daemon itself"
    # A search or a deletion of a folder reaches whatever lies in it.
    if any(_is_within(root.casefold(), path) for root in protected.closed):
        return "holds files of the daemon itself"
    return "is where secrets are kept" if _holds_secrets(path) else ""


def _longest(path: str, roots: Iterable[str]) -> str:
    """Return the deepest of the roots that the path lies in, empty for none."""
    around = (root.casefold() for root in roots)
    return max((root for root in around if _is_within(path, root)), key=len, default="")


def _is_within(path: str, root: str) -> bool:
    return path == root or path.startswith(root.rstrip("/") + "/")


# Where programs keep keys and passwords, by their own documentation; lower case.
_SECRET_FOLDERS = frozenset(
    {
        ".ssh",
        ".aws",
        ".azure",
        ".gnupg",
        ".kube",
        ".docker",
        ".password-store",
        "gcloud",
        "keyrings",
    }
)
_SECRET_NAMES = frozenset(
    {
        ".env", ".netrc", "_netrc", ".pgpass", ".my.cnf", ".git-credentials", ".npmrc", ".pypirc",
        ".htpasswd", "id_rsa", "id_dsa", "id_ecdsa", "id_ed25519",
    }
)  # fmt: skip
_SECRET_ENDINGS = (".pem", ".key", ".p12", ".pfx", ".jks", ".keystore", ".kdbx", ".ppk")
# What a project commits so that others know which names to fill in.
_SAMPLE_ENDINGS = (".example", ".sample", ".template", ".dist")
# `/proc` holds the environment of every process of this user.
_SECRET_ROOTS = ("/etc/shadow", "/etc/gshadow", "/etc/sudoers", "/etc/sudoers.d", "/proc")


def _holds_secrets(path: str) -> bool:
    """Tell by the names alone; the path is lower case."""
    *folders, name = path.split("/")
    if not _SECRET_FOLDERS.isdisjoint((*folders, name)):
        return True
    if name in _SECRET_NAMES or name.endswith(_SECRET_ENDINGS):
        return True
    if name.startswith(".env.") and not name.endswith(_SAMPLE_ENDINGS):
        return True
    return any(_is_within(path, root) or path == f"{root}-" for root in _SECRET_ROOTS)


def _one_line(text: str) -> str:
    return " ".join(text.split())
