"""Secrets are resolved from their sources, and all faults reported together (P8, P10)."""

import os
import sys
from pathlib import Path
from types import ModuleType

import pytest

from zeroclaw.config.references import SecretReference
from zeroclaw.host.references import Resolved, resolve, values_to_redact

VALUE = "s3cret-value"


Told = tuple[dict[str, str], tuple[str, ...]]
"""The values and the faults of what was resolved."""


def facts_of(all_: Resolved) -> Told:
    return dict(all_.values), tuple(all_.faults.values())


def resolved(reference: SecretReference, environment: dict[str, str] | None = None) -> Told:
    """One reference under the key `channels.x.token`."""
    return facts_of(resolve({"channels.x.token": reference}, environment=environment or {}))


def found(value: str) -> Told:
    return {"channels.x.token": value}, ()


def fault(line: str) -> Told:
    return {}, (f"channels.x.token: {line}",)


def private(path: Path, content: bytes) -> SecretReference:
    """A file that only its owner reads."""
    path.write_bytes(content)
    path.chmod(0o600)
    return SecretReference(file=str(path))


def test_a_secret_shows_itself_only_when_asked() -> None:
    """Printing, formatting and an enclosing dataclass do not show the value (P8)."""
    all_ = Resolved(values={"a": VALUE}, faults={})

    assert VALUE not in f"{all_} {all_!r} {[all_]}"


# --- environment ---------------------------------------------------------------------------------


def test_an_environment_variable_is_resolved() -> None:
    """`{env="NAME"}` takes the value as it is."""
    assert resolved(SecretReference(env="NAME"), {"NAME": f" {VALUE} "}) == found(f" {VALUE} ")


def test_a_missing_or_empty_variable_is_a_fault() -> None:
    """The line names the key, the variable and what to do."""
    reference = SecretReference(env="NAME")

    assert resolved(reference) == fault("environment variable `NAME` is not set; set it")
    assert resolved(SecretReference(env="$NAME")) == fault(
        "environment variable `$NAME` is not set; leave out the `$`"
    )
    assert resolved(reference, {"NAME": ""}) == fault(
        "environment variable `NAME` is empty; give it a value"
    )


# --- files ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("end", [b"", b"\n", b"\r\n"])
def test_a_private_file_is_resolved_without_editors_additions(
    tmp_path: Path, mark: bytes, end: bytes
) -> None:
    """A line end, and a byte order mark of Windows' Notepad: neither is part of the secret."""
    reference = private(tmp_path / "secret", mark + VALUE.encode() + end)

    assert resolved(reference) == found(VALUE)


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660])
def test_a_file_that_others_can_read_is_a_fault(tmp_path: Path, mode: int) -> None:
    """The line has the command that fixes it."""
    path = tmp_path / "secret"
    reference = private(path, VALUE.encode())
    path.chmod(mode)

    assert resolved(reference) == fault(f"others can read `{path}`; run `chmod 600 {path}`")


def test_credentials_of_the_service_manager_may_have_its_modes(tmp_path: Path) -> None:
    """systemd closes the directory to other users instead."""
    path = tmp_path / "secret"
    reference = private(path, VALUE.encode())
    path.chmod(0o440)

    assert resolved(reference, {"CREDENTIALS_DIRECTORY": str(tmp_path)}) == found(VALUE)


def test_files_that_hold_no_secret_are_faults(tmp_path: Path) -> None:
    """Missing, empty, binary, huge, a directory, a pipe, no path at all: each has its line."""
    empty = private(tmp_path / "empty", b"\n")
    binary = private(tmp_path / "binary", b"\xff\xfe")
    huge = private(tmp_path / "huge", bytes(70_000))
    os.mkfifo(tmp_path / "pipe", 0o600)
    references = {
        "missing": SecretReference(file=str(tmp_path / "missing")),
        "empty": empty,
        "binary": binary,
        "huge": huge,
        "directory": SecretReference(file=str(tmp_path)),
        "pipe": SecretReference(file=str(tmp_path / "pipe")),
        "no path": SecretReference(file="a\0b"),
        "nobody": SecretReference(file="~nobody-here/a"),
    }

    assert facts_of(resolve(references, environment={})) == (
        {},
        (
            f"missing: `{tmp_path}/missing` does not exist; create it, with mode 600",
            f"empty: `{tmp_path}/empty` is empty; write the secret into it",
            f"binary: `{tmp_path}/binary` is not UTF-8 text; it must hold the secret alone",
            f"huge: `{tmp_path}/huge` is larger than 64 KiB; it must hold the secret alone",
            f"directory: `{tmp_path}` is not a file; name a file that holds the secret alone",
            f"pipe: `{tmp_path}/pipe` is not a file; name a file that holds the secret alone",
            "no path: `a\0b` can't be read; name a file that holds the secret alone",
            "nobody: `~nobody-here/a` does not exist; create it, with mode 600",
        ),
    )


def test_a_fault_hides_no_other_reference(tmp_path: Path) -> None:
    """All faults are reported together, and the valid references are resolved (P10)."""
    references = {
        "a": SecretReference(env="MISSING"),
        "b": private(tmp_path / "secret", VALUE.encode()),
        "c": SecretReference(keyring="no-slash"),
    }

    assert facts_of(resolve(references, environment={})) == (
        {"b": VALUE},
        (
            "a: environment variable `MISSING` is not set; set it",
            "c: keyring entry `no-slash` must look like `service/name`",
        ),
    )


# --- keyring -------------------------------------------------------------------------------------


class Locked(Exception):
    """The exception of a keyring that can't be opened."""


def fake_keyring(name: str, username: str) -> str | None:
    """A keyring with one entry, and a locked one."""
    if name == "locked":
        raise Locked(VALUE)
    return {("zeroclaw", "token"): VALUE}.get((name, username))


@pytest.fixture
def keyring(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("keyring")
    monkeypatch.setattr(module, "get_password", fake_keyring, raising=False)
    monkeypatch.setitem(sys.modules, "keyring", module)


@pytest.mark.usefixtures("keyring")
def test_a_keyring_entry_is_fetched() -> None:
    """`{keyring="service/name"}` asks the operating system's keyring."""
    assert resolved(SecretReference(keyring="zeroclaw/token")) == found(VALUE)


@pytest.mark.usefixtures("keyring")
def test_a_missing_or_locked_keyring_entry_is_a_fault() -> None:
    """The foreign package's message is left out of the line; it may hold anything."""
    assert resolved(SecretReference(keyring="zeroclaw/other")) == fault(
        "keyring entry `zeroclaw/other` is missing; run `keyring set zeroclaw other`"
    )
    assert resolved(SecretReference(keyring="locked/token")) == fault(
        "keyring entry `locked/token` can't be read (Locked); unlock the keyring, or use an env "
        "or file reference"
    )


@pytest.mark.parametrize(
    ("module", "line"),
    [
        (
            None,
            "the package `keyring` is not installed; install it, or use an env or file reference",
        ),
        (
            ModuleType("keyring"),
            "the package `keyring` is not the known one; use an env or file reference",
        ),
    ],
    ids=["missing", "another one"],
)
def test_without_the_optional_package_a_keyring_reference_is_a_fault(
    monkeypatch: pytest.MonkeyPatch, module: ModuleType | None, line: str
) -> None:
    """The line names the alternatives."""
    monkeypatch.setitem(sys.modules, "keyring", module)  # None makes an import fail

    assert resolved(SecretReference(keyring="zeroclaw/token")) == fault(line)


def test_values_to_redact_are_collected_once() -> None:
    """Resolved secrets and secret-looking variables of the environment, without repeats (P8)."""
    environment = {"A_TOKEN": VALUE, "B_PASSWORD": "another-value", "HOME": "/srv/nobody"}

    values = {"a": VALUE, "b": VALUE, "c": "third-value"}
    references = {
        "a": SecretReference(env="A_TOKEN"),
        "b": SecretReference(file="/second"),
        "c": SecretReference(file="/third"),
    }
    assert values_to_redact(values, references, environment) == {
        VALUE: '{env="A_TOKEN"}',
        "third-value": '{file="/third"}',
        "another-value": '{env="B_PASSWORD"}',
    }


@pytest.mark.parametrize(
    ("reference", "text"),
    [
        (SecretReference(env="A_TOKEN"), '{env="A_TOKEN"}'),
        (SecretReference(file="/run/a"), '{file="/run/a"}'),
        (SecretReference(keyring="a/b"), '{keyring="a/b"}'),
    ],
)
def test_a_reference_is_shown_as_the_configuration_writes_it(
    reference: SecretReference, text: str
) -> None:
    """A card shows it in place of the secret."""
    assert str(reference) == text
