"""Where this user's configuration, data, workspaces and models are.

Follows the XDG base directory specification (0.8, read 2026-11), by which relative values of its
variables are ignored. Cheap to import on purpose: commands that only need the daemon's socket don't
load the configuration models.
"""

import errno
import os
from contextlib import suppress
from pathlib import Path

from zeroclaw.config import table_of
from zeroclaw.errors import ConfigError, refused_as, system_words
from zeroclaw.value import Value

CONFIG_VARIABLE = "ZEROCLAW_CONFIG"
LOCK = "lock"
"""The file in the data directory that the running daemon keeps locked; it contains its pid."""
CHANNELS = "channels"
"""The directory, within the data, of the channels' own files."""


class Places(Value):
    """Absolute paths; only `config` must exist.

    Attributes:
        config: The configuration file; None for the built-in defaults.
        data: The data directory: store, keys, control socket.
        workspaces: Contains a directory per conversation.
        skills: Contains a folder per skill; None for none.
        models: Where `deploy/fetch_model.py` puts the small model. It is not below `data`, so that
            a second data directory doesn't need a second copy.
    """

    config: Path | None
    data: Path
    workspaces: Path
    models: Path
    skills: Path | None = None


def find_config(named: Path | None) -> Path | None:
    """Return the configuration file; None if there is none.

    Args:
        named: From the command line. It takes precedence over `$ZEROCLAW_CONFIG`, and that over
            `$XDG_CONFIG_HOME/zeroclaw/config.toml`. A named file must exist.

    Raises:
        ConfigError: The named file does not exist.
    """
    variable = os.environ.get(CONFIG_VARIABLE, "")
    if named is None and not variable:
        usual = usual_config()
        # Anything else than "there is none", such as a link that leads nowhere, fails, here or when
        # it is read: the defaults would replace the operator's limits.
        with suppress(FileNotFoundError, NotADirectoryError):
            usual.lstat()
            return usual
        return None
    path = expand(variable) if named is None else named
    if not path.is_file():
        source = f"${CONFIG_VARIABLE}" if named is None else "--config"
        raise ConfigError((f"{source}: `{path}` is no file; name the configuration's file",))
    return path.absolute()


def usual_config() -> Path:
    """Return the default path of the configuration; it need not exist."""
    return _xdg("XDG_CONFIG_HOME", ".config") / "config.toml"


def new_config(named: Path | None) -> Path:
    """Return the path for a new configuration, where `find_config` will find it."""
    if named is not None:
        return named.absolute()
    return _or_usual(os.environ.get(CONFIG_VARIABLE, ""), usual_config())


def read_config(path: Path | None) -> str:
    """Return the configuration's text; empty if there is none.

    Raises:
        ConfigError: It can't be read, or is not UTF-8.
    """
    if path is None:
        return ""
    try:
        text = path.read_text(encoding="utf-8-sig")  # some editors write a byte order mark
        is_text = "\0" not in text  # as in UTF-16 without a byte order mark
    except UnicodeDecodeError:
        text, is_text = "", False
    except OSError as error:
        fault = f"`{path}` can't be read: {system_words(error)}; put a file there that this user can read"
        raise ConfigError((fault,)) from error
    if not is_text:
        raise ConfigError((f"`{path}` is not UTF-8 text; save it as UTF-8",))
    return text


def places_of(
    config: Path | None = None, data_dir: str = "", workspace_dir: str = "", skills_dir: str = ""
) -> Places:
    """Return all places.

    Args:
        config: The result of `find_config`.
        data_dir: From the configuration or the command line; empty for the default. Relative paths
            start at the working directory.
        workspace_dir: Likewise. The default is next to the data directory, so that a second data
            directory has its own workspaces.
        skills_dir: Likewise; empty for none.

    Raises:
        ConfigError: One of the first two is, or is below, something else than a directory; the data
            are inside the workspaces, where tools could reach them; or the skills overlap with one
            of the two.
    """
    usual = _usual_data()
    data = _or_usual(data_dir, usual)
    workspaces = _or_usual(workspace_dir, data.with_name(f"{data.name}-workspaces"))
    for key, place in (("data_dir", data), ("workspace_dir", workspaces)):
        if not nearest(place).is_dir():
            raise ConfigError((f"{key}: `{nearest(place)}` is no directory; name another",))
    if real(data).is_relative_to(real(workspaces)):
        fault = f"data_dir: `{data}` is inside `{workspaces}`, where tools write; move it out"
        raise ConfigError((fault,))
    skills = expand(skills_dir).absolute() if skills_dir else None
    for other in (data, workspaces):
        if skills is not None and _are_nested(skills, other):
            fault = (
                f"skills_dir: `{skills}` and `{other}` are inside each other; move the skills out"
            )
            raise ConfigError((fault,))
    return Places(
        config=config, data=data, workspaces=workspaces, models=usual / "models", skills=skills
    )


def make_workspace(place: Path) -> Path:
    """Create a directory for tools to write in, and return its real path; blocks.

    Raises:
        ConfigError: It can't be created, or this user can't write there.
    """
    prefix, remedy = f"workspace_dir: `{place}`", "name another, or let this user write there"
    with refused_as(lambda line: ConfigError((line,)), prefix, remedy):
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not os.access(place, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, "Permission denied")
    return place.resolve()


def _are_nested(first: Path, second: Path) -> bool:
    first, second = real(first), real(second)
    return first.is_relative_to(second) or second.is_relative_to(first)


def data_place(named: Path | None, data_dir: Path | None) -> Path:
    """Return the data directory, without loading the whole configuration.

    Raises:
        ConfigError: The key `data_dir` can't be read from the configuration.
    """
    if data_dir is not None:
        return _or_usual(str(data_dir), _usual_data())
    path = find_config(named)
    text = read_config(path)
    try:
        configured = table_of(text).get("data_dir", "")
    except ConfigError as error:
        raise ConfigError(tuple(f"{path}: {fault}" for fault in error.faults)) from error
    if not isinstance(configured, str):
        raise ConfigError((f"{path}: data_dir: must be a text",))
    return _or_usual(configured, _usual_data())


def holder_of(data: Path) -> str:
    """Return the pid of the process that has locked a data directory; empty for none; blocks.

    Reads /proc/locks (proc(5)): trying the lock could keep a daemon from starting at the same time.
    """
    with suppress(OSError):
        lock = data / LOCK
        pid, number = lock.read_text(encoding="ascii", errors="replace").strip(), lock.stat().st_ino
        locks = Path("/proc/locks").read_text(encoding="ascii").splitlines()
        if any(f" {pid} " in line and f":{number} " in line for line in locks):
            return pid
    return ""


def is_there(path: Path) -> bool:
    """Whether a path exists; False below a directory that this user can't enter; blocks."""
    with suppress(PermissionError):
        return path.exists()
    return False


def nearest(path: Path) -> Path:
    """Return the part of a path that exists; blocks."""
    return next((parent for parent in (path, *path.parents) if is_there(parent)), path)


def real(path: Path) -> Path:
    """Return a path without links; a path through a circle of links stays, and fails at its use."""
    return Path(os.path.realpath(path))  # `Path.resolve` raises there, before Python 3.13


def expand(path: str) -> Path:
    """Return a path with a leading `~` or `~user` expanded; unchanged if there is no such user."""
    return Path(os.path.expanduser(path))  # noqa: PTH111  pathlib's raises for an unknown user


def _or_usual(path: str, usual: Path) -> Path:
    """Return a given path as an absolute one; if empty, the default."""
    return expand(path).absolute() if path else usual


def _usual_data() -> Path:
    return _xdg("XDG_DATA_HOME", ".local/share")


def _xdg(variable: str, usual: str) -> Path:
    value = os.environ.get(variable, "")
    if os.path.isabs(value):  # noqa: PTH117  a text
        return Path(value, "zeroclaw")
    with suppress(RuntimeError):
        if os.environ.get("HOME") != "":  # which Python takes for the root directory
            return Path.home().absolute() / usual / "zeroclaw"
    fault = f"this user has no home directory; set `$HOME` or `${variable}`"
    raise ConfigError((fault,))
