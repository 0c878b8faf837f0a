"""Looks at this machine, the store and the running daemon for `zeroclaw doctor`; changes nothing."""

import asyncio
import os
import platform
import shutil
import sqlite3
import stat
import tomllib
from collections.abc import Iterator, Mapping
from datetime import datetime
from importlib.metadata import version
from pathlib import Path
from typing import cast

from zeroclaw.cli.client import DaemonRefused, answer, table, texts, time
from zeroclaw.cli.configuration import Loaded, ask_platform, faults_in, load, start_of
from zeroclaw.cli.doctor.facts import (
    AccountSeen,
    ChannelSeen,
    Configured,
    DaemonSeen,
    DiskSeen,
    Facts,
    ModelSeen,
    ProviderSeen,
    Trouble,
    Versions,
)
from zeroclaw.cli.doctor.health import Health, health
from zeroclaw.cli.models.provider import take_model
from zeroclaw.cli.options import config_place, data_place
from zeroclaw.config.model import RetentionSettings, ToolsSettings
from zeroclaw.config.references import SecretReference
from zeroclaw.daemon.config_check import ChannelPart, CheckedConfig, missing_secrets
from zeroclaw.daemon.foundation import Start, open_provider
from zeroclaw.errors import ConfigError, StoreUnusable, ZeroclawError
from zeroclaw.foreign import Raised
from zeroclaw.host.clock import SystemClock
from zeroclaw.host.control import FILE as SOCKET
from zeroclaw.host.control import Unreachable
from zeroclaw.host.ids import SystemIds
from zeroclaw.host.models.servers import NoOffer, offers_of, probing_client
from zeroclaw.host.places import read_config
from zeroclaw.host.references import resolve
from zeroclaw.host.sandbox import Broken, Limits, self_test
from zeroclaw.providers.local.checks import check_model, check_package
from zeroclaw.providers.local.provider import SHIPPED_FILE
from zeroclaw.redact import without_credentials
from zeroclaw.stores.sqlite.files import FILE_NAME, has_wal_reset_bug
from zeroclaw.stores.sqlite.reader import open_for_looking
from zeroclaw.tools.attachments import try_reader

_ANSWER_S = 5.0
_PLATFORM_S = 15.0
_OTHERS = 0o077
_UNAUTHORIZED = (401, 403)
_NONE: Mapping[str, str] = {}
_NOT_ASKED = "not asked, as its secret is not known in this shell"


def probe(config: Path | None, data_dir: Path | None, environment: Mapping[str, str]) -> Facts:
    """Look at everything; blocks for seconds at most, and runs loops of its own.

    Args:
        config: As given on the command line.
        data_dir: Likewise.
        environment: `os.environ`.
    """
    configured, start = _configuration(config, data_dir, environment)
    missing = _NONE if start is None else missing_secrets(start.config, environment)
    secrets = _secrets_faults(config, environment)
    try:
        data = start.places.data if start is not None else data_place(config, data_dir)
    except ConfigError:
        data = None
    versions = Versions(
        zeroclaw=version("zeroclaw"),
        python=platform.python_version(),
        sqlite=sqlite3.sqlite_version,
        sqlite_fault=has_wal_reset_bug(sqlite3.sqlite_version_info[:3]),
    )
    return asyncio.run(
        _probe(configured, start, data, missing=missing, secrets=secrets, versions=versions)
    )


async def _probe(
    configured: Configured,
    start: Start | None,
    data: Path | None,
    *,
    missing: Mapping[str, str],
    secrets: tuple[str, ...],
    versions: Versions,
) -> Facts:
    clock = SystemClock()
    retention = RetentionSettings() if start is None else start.config.retention
    daemon: DaemonSeen | str = "where its data are can't be told before the configuration is mended"
    store: Health | str | None = None
    disk, loose = None, (secrets or None)
    if data is not None:
        daemon = await _daemon(data)
        store, used_bytes = await _store(data, clock.now())
        bound_bytes = retention.max_disk_mb * 1_000_000
        disk = await asyncio.to_thread(_disk, data, used_bytes, bound_bytes)
        loose = await asyncio.to_thread(_loose, data, secrets)
    tools = None if start is None else start.config.tools
    return Facts(
        now=clock.now(),
        configured=configured,
        daemon=daemon,
        enabled=() if start is None else tuple(part.name for part in start.checked.channels),
        provider=None if start is None else await _provider(start, missing),
        is_root=os.geteuid() == 0,
        sandbox=None if tools is None else await _sandbox(tools),
        disk=disk,
        loose=loose,
        versions=versions,
        store=store,
        accounts=() if start is None else await _accounts(start.checked, missing),
        missing=missing,
    )


# --- the configuration ---------------------------------------------------------------------------


def _configuration(
    config: Path | None, data_dir: Path | None, environment: Mapping[str, str]
) -> tuple[Configured, Start | None]:
    """Return what is wrong with it, and where nothing is, what a daemon would start with."""
    place = "the built-in defaults"
    try:
        path = config_place(config)
        place = place if path is None else str(path)
        text = read_config(path)
        if faults_in(text, environment=environment, needs_secrets=False):
            faults = faults_in(text, environment=environment)
            return Configured(place=place, faults=faults), None
        loaded: Loaded = take_model(load(config, data_dir), environment, ask=None).loaded
        start = start_of(loaded, environment, needs_secrets=False)
        return Configured(place=place, warnings=start.checked.warnings), start
    except ConfigError as error:
        return Configured(place=place, faults=error.faults), None


def _secrets_faults(config: Path | None, environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return what is wrong with the files that hold secrets, however broken the rest is."""
    try:
        table = cast("object", tomllib.loads(read_config(config_place(config))))
    except (ConfigError, tomllib.TOMLDecodeError):
        return ()  # told as a fault of the configuration
    return tuple(resolve(dict(_files_named(table, "")), environment=environment).faults.values())


def _files_named(value: object, path: str) -> Iterator[tuple[str, SecretReference]]:
    """Yield every `{file = "…"}` of a configuration with its key path."""
    if not isinstance(value, dict):
        return
    table = cast("dict[str, object]", value)
    file = table.get("file")
    if len(table) == 1 and isinstance(file, str) and file:
        yield path, SecretReference(file=file)
    for key, inner in table.items():
        yield from _files_named(inner, f"{path}.{key}" if path else key)


# --- the running daemon --------------------------------------------------------------------------


async def _daemon(data: Path) -> DaemonSeen | str:
    try:
        async with asyncio.timeout(_ANSWER_S):
            told = await answer(data, {"call": "status"})
            try:
                more = await answer(data, {"call": "errors"})
            except DaemonRefused:
                more = None
    except TimeoutError:
        return f"the one in `{data}` does not answer within {_ANSWER_S:g} s; end it, and start it"
    except (Unreachable, DaemonRefused) as error:
        return str(error)
    return DaemonSeen(
        version=str(told.get("version", "")),
        channels=tuple(
            _channel(name, table(one)) for name, one in sorted(table(told.get("channels")).items())
        ),
        sandbox="" if more is None else str(more.get("sandbox", "")),
        watched=_watched(more),
        troubles=None if more is None else tuple(_troubles(more.get("errors"))),
        model=None if more is None else _model(table(more.get("model"))),
        secrets=frozenset() if more is None else frozenset(texts(more.get("secrets"))),
    )


def _channel(name: str, told: Mapping[str, object]) -> ChannelSeen:
    return ChannelSeen(
        name=name,
        condition=str(told.get("condition", "unknown")),
        since=time(told.get("since")),
        why=str(told.get("why", "")),
    )


def _model(told: Mapping[str, object]) -> ModelSeen | None:
    failures, at = told.get("failures"), time(told.get("at"))
    if not isinstance(failures, int) or failures < 1 or at is None:
        return None
    return ModelSeen(failures=failures, at=at, why=str(told.get("why", "")))


def _troubles(told: object) -> Iterator[Trouble]:
    for one in cast("list[object]", told) if isinstance(told, list) else []:
        fact = table(one)
        if (at := time(fact.get("at"))) is not None:
            yield Trouble(at=at, level=str(fact.get("level")), text=str(fact.get("text")))


# --- what answers, and what holds commands -------------------------------------------------------


async def _provider(start: Start, missing: Mapping[str, str]) -> ProviderSeen:
    """Ask for the list of models, or look at the file; never for an answer, which may cost."""
    settings = start.config.provider
    if any(key.startswith("provider.") for key in missing):
        name = f"`{settings.model or settings.kind}`"
        return ProviderSeen(name=name, told=_NOT_ASKED)
    if settings.kind == "openai":
        return await _server(start)
    if settings.kind == "local":
        file = Path(settings.model_file or start.places.models / SHIPPED_FILE)
        name = f"the local model {file.name}"
        try:
            await asyncio.to_thread(check_model, file)
            await check_package()
        except ZeroclawError as error:
            return ProviderSeen(name=name, verdict="fail", told=str(error))
        return ProviderSeen(name=name)
    clock = SystemClock()
    try:
        provider = await asyncio.to_thread(open_provider, start, clock, SystemIds(clock))
    except ZeroclawError as error:
        return ProviderSeen(name=f"`{settings.kind}`", verdict="fail", told=str(error))
    await provider.aclose()
    return ProviderSeen(name=f"`{settings.kind}`", told="opened, not asked")


async def _server(start: Start) -> ProviderSeen:
    settings = start.config.provider
    at = without_credentials(settings.base_url)
    name = start.checked.redactor.redact(f"`{settings.model}` of {at}")
    http = probing_client()
    try:
        key = start.checked.provider_secrets.get("api_key", "").strip()
        server = await offers_of(http, settings.base_url, api_key=key)
    except NoOffer as error:
        if error.status in _UNAUTHORIZED:
            told = f"it answered {error.status}; see that `provider.api_key` is its key"
            return ProviderSeen(name=name, verdict="fail", told=told)
        # A server that answers anything else may well speak the form without having a list.
        answers = error.status is not None and error.status < 500  # noqa: PLR2004  HTTP's
        return ProviderSeen(name=name, verdict="warn" if answers else "fail", told=str(error))
    finally:
        await http.aclose()
    if server.models and settings.model not in {
        known for model in server.models for known in (model, model.removesuffix(":latest"))
    }:
        told = "it answers, and its list has no such model; `zeroclaw models list` shows it"
        return ProviderSeen(name=name, verdict="warn", told=told)
    return ProviderSeen(name=name, told="it answers")


async def _accounts(checked: CheckedConfig, missing: Mapping[str, str]) -> tuple[AccountSeen, ...]:
    """Ask the platforms whose channels offer a check, all at once."""
    asked = [part for part in checked.channels if part.manifest.check]
    found: dict[str, AccountSeen] = {}

    async def ask(part: ChannelPart) -> None:
        if any(key.startswith(f"channels.{part.name}.") for key in missing):
            found[part.name] = AccountSeen(channel=part.name, told=_NOT_ASKED)
        else:
            found[part.name] = await _account(part, checked)

    async with asyncio.TaskGroup() as group:
        for part in asked:
            group.create_task(ask(part), name=f"check {part.name}")
    return tuple(found[part.name] for part in asked)


async def _account(part: ChannelPart, checked: CheckedConfig) -> AccountSeen:
    try:
        said = await ask_platform(part, within_s=_PLATFORM_S)
    except ConfigError as error:
        return AccountSeen(channel=part.name, fault="; ".join(error.faults))
    if isinstance(said, Raised):
        line = said.line.removeprefix(f"`{part.name}`: ")  # which is told beside it
        return AccountSeen(channel=part.name, fault=checked.redactor.redact(line))
    return AccountSeen(channel=part.name, told=checked.redactor.redact(said))


def _watched(more: Mapping[str, object] | None) -> str | None:
    found = None if more is None else more.get("watched")
    return found if isinstance(found, str) else None


async def _sandbox(tools: ToolsSettings) -> str | None:
    if not (tools.shell.enabled or tools.attachments.enabled):
        return None
    limits = Limits(memory_bytes=tools.shell.memory_bytes)
    tested = await self_test(limits, network=tools.shell.network)
    if tools.attachments.enabled:
        tested = await try_reader(tested)
    return tested.reason if isinstance(tested, Broken) else ""


# --- what is stored ------------------------------------------------------------------------------


async def _store(data: Path, now: datetime) -> tuple[Health | str | None, int]:
    """Return what the store tells, and the bytes that it uses."""
    if not await asyncio.to_thread((data / FILE_NAME).is_file):
        return None, 0
    try:
        async with open_for_looking(data) as kept:
            return await health(kept, now), await kept.used_bytes()
    except StoreUnusable as error:
        return str(error), 0


def _disk(data: Path, used_bytes: int, bound_bytes: int) -> DiskSeen | None:
    there = next((one for one in (data, *data.parents) if one.exists()), data)
    try:
        free_bytes = shutil.disk_usage(there).free
    except OSError:
        return None
    return DiskSeen(
        place=str(data), free_bytes=free_bytes, used_bytes=used_bytes, bound_bytes=bound_bytes
    )


def _loose(data: Path, secrets: tuple[str, ...]) -> tuple[str, ...] | None:
    """Return what others can reach of the data, and the faults of files that hold secrets."""
    if not data.is_dir():
        return secrets or None
    found = list(secrets)
    try:
        # Directories in it hold models, which are no secret.
        files = (one for one in sorted(data.iterdir()) if one.name != SOCKET and not one.is_dir())
        for place in (data, *files):
            found += _reachable(place)
    except OSError as error:
        why = (error.strerror or "unreadable").lower()
        found.append(f"`{data}` can't be looked at: {why}; make this user its owner")
    return tuple(found)


def _reachable(place: Path) -> Iterator[str]:
    try:
        status = place.lstat()
    except FileNotFoundError:  # the log beside the database comes and goes
        return
    if stat.S_ISLNK(status.st_mode):
        return
    if status.st_uid not in (os.getuid(), 0):
        yield f"`{place}` belongs to another user; run `chown` on it, or run as its owner"
    elif status.st_mode & _OTHERS:
        mode = "700" if stat.S_ISDIR(status.st_mode) else "600"
        yield f"others can reach `{place}`; run `chmod {mode} {place}`"
