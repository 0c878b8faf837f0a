"""Resolves the secret references of the configuration.

Blocks on files and on the keyring: call it before the event loop runs, or in a thread.
"""

import errno
import os
import stat
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path

from zeroclaw.config.references import SecretReference
from zeroclaw.foreign import Raised, call_now
from zeroclaw.host.atomic_file import closing_descriptor
from zeroclaw.host.places import expand
from zeroclaw.redact import secret_environment
from zeroclaw.value import Hidden, Struct, Value

_LARGEST_BYTES = 64 * 1024  # fits a certificate chain with its key
_SHIELDED = Path("/run/secrets")  # Docker's secrets: mode 0444, but behind a mount of their own


class Resolved(Value):
    """The result of resolving all references.

    Attributes:
        values: The resolved secrets, by key path.
        faults: A message for each of the others, by key path: `key.path: the fault; the remedy`.
    """

    values: Hidden[Mapping[str, str]]
    faults: Mapping[str, str]


class _Fault(Struct, frozen=True):
    line: str


def resolve(
    references: Mapping[str, SecretReference], *, environment: Mapping[str, str]
) -> Resolved:
    """Resolve every secret; never raises, so that one run reports all faults.

    Args:
        references: By key path, as the operator would look for it.
        environment: `os.environ`; also has systemd's directory of credentials.
    """
    values: dict[str, str] = {}
    faults: dict[str, str] = {}
    for key, reference in references.items():
        match _value(reference, environment):
            case _Fault(line):
                faults[key] = f"{key}: {line}"
            case str() as value:
                values[key] = value
    return Resolved(values=values, faults=faults)


def values_to_redact(
    values: Mapping[str, str],
    references: Mapping[str, SecretReference],
    environment: Mapping[str, str],
) -> Mapping[str, str]:
    """Return the values that must never be shown, each with its reference.

    These are all resolved secrets, and environment variables with names of secrets.
    """
    found: dict[str, str] = {}
    for key, value in values.items():
        found.setdefault(value, str(references[key]))
    for name, value in secret_environment(environment).items():
        found.setdefault(value, str(SecretReference(env=name)))
    return found


def _value(reference: SecretReference, environment: Mapping[str, str]) -> str | _Fault:
    if reference.env is not None:
        return _from_environment(reference.env, environment)
    if reference.file is not None:
        return _from_file(expand(reference.file), environment)
    return _from_keyring(reference.keyring or "")


def _from_environment(name: str, environment: Mapping[str, str]) -> str | _Fault:
    value = environment.get(name)
    if value is None:
        remedy = "leave out the `$`" if name.startswith("$") else "set it"
        return _Fault(f"environment variable `{name}` is not set; {remedy}")
    return value or _Fault(f"environment variable `{name}` is empty; give it a value")


def _from_file(path: Path, environment: Mapping[str, str]) -> str | _Fault:
    try:
        # Non-blocking, so that a pipe in place of the file can't hang the start.
        with closing_descriptor(os.open(path, os.O_RDONLY | os.O_NONBLOCK)) as descriptor:
            fault = _file_fault(path, os.fstat(descriptor), environment)
            # Some editors write a byte order mark.
            value = "" if fault else os.read(descriptor, _LARGEST_BYTES).decode("utf-8-sig")
    except UnicodeDecodeError:
        return _Fault(f"`{path}` is not UTF-8 text; it must hold the secret alone")
    except (OSError, ValueError) as error:  # a ValueError means a NUL in the path
        return _Fault(_read_error(path, error))
    return fault or value.rstrip("\r\n") or _Fault(f"`{path}` is empty; write the secret into it")


def _file_fault(
    path: Path, status: os.stat_result, environment: Mapping[str, str]
) -> _Fault | None:
    if not stat.S_ISREG(status.st_mode):
        return _Fault(f"`{path}` is not a file; name a file that holds the secret alone")
    if status.st_mode & 0o077 and not _is_shielded(path, environment):
        return _Fault(f"others can read `{path}`; run `chmod 600 {path}`")
    if status.st_size > _LARGEST_BYTES:
        return _Fault(f"`{path}` is larger than 64 KiB; it must hold the secret alone")
    return None


def _is_shielded(path: Path, environment: Mapping[str, str]) -> bool:
    """Whether a service manager put the file where only this service can read it."""
    folders = [_SHIELDED]
    if credentials := environment.get("CREDENTIALS_DIRECTORY"):  # systemd.exec(5), LoadCredential=
        folders.append(Path(credentials))
    return any(path.resolve().is_relative_to(folder) for folder in folders)


def _read_error(path: Path, error: OSError | ValueError) -> str:
    match getattr(error, "errno", None):
        case errno.ENOENT | errno.ENOTDIR:
            return f"`{path}` does not exist; create it, with mode 600"
        case errno.EACCES:
            return f"`{path}` can't be read; make zeroclaw's user its owner"
        case _:
            return f"`{path}` can't be read; name a file that holds the secret alone"


def _from_keyring(name: str) -> str | _Fault:
    service, slash, username = name.partition("/")
    if not (service and slash and username):
        return _Fault(f"keyring entry `{name}` must look like `service/name`")
    try:
        module = import_module("keyring")
    except ImportError:
        return _Fault(
            line="the package `keyring` is not installed; install it, or use an env or file "
            "reference"
        )
    get_password = getattr(module, "get_password", None)
    if not callable(get_password):
        return _Fault("the package `keyring` is not the known one; use an env or file reference")
    found = call_now(lambda: get_password(service, username))
    match found:
        case Raised():
            return _Fault(
                line=f"keyring entry `{name}` can't be read ({type(found.error).__name__}); unlock "
                "the keyring, or use an env or file reference"
            )
        case str() if found:
            return found
        case _:
            return _Fault(
                line=f"keyring entry `{name}` is missing; run `keyring set {service} {username}`"
            )
