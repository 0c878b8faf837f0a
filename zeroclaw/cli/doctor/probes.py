"""Probes this machine, the store and the running daemon for `zeroclaw doctor`; changes nothing."""

import asyncio
import os
import platform
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryFile

from zeroclaw.cli.client import DaemonRefused, ask, is_running
from zeroclaw.cli.configuration import ask_platform, load, start_of
from zeroclaw.cli.doctor.checks import CheckResult, Disk, Facts, Health, fail, ok, warn
from zeroclaw.cli.doctor.health import health
from zeroclaw.cli.models.provider import take_model
from zeroclaw.config import table_of
from zeroclaw.config.model import RetentionSettings, ToolsSettings
from zeroclaw.config.references import SecretReference
from zeroclaw.daemon.config_check import ANSWERS, ChannelPart, CheckedConfig
from zeroclaw.daemon.foundation import Start, open_provider
from zeroclaw.errors import (
    ConfigError,
    NoWayOut,
    PortInUse,
    StoreUnusable,
    ZeroclawError,
    system_words,
)
from zeroclaw.gate.receipt_keys import stored_keys
from zeroclaw.host.answers import Errors, Status
from zeroclaw.host.clock import SystemClock
from zeroclaw.host.connections import bind
from zeroclaw.host.control import FILE as SOCKET
from zeroclaw.host.control import DaemonUnreachable
from zeroclaw.host.models.servers import NoOffer, offers_of
from zeroclaw.host.places import data_place, find_config, is_there, nearest, read_config
from zeroclaw.host.references import resolve
from zeroclaw.host.sandbox import Broken, Limits, self_test
from zeroclaw.json_fields import is_object, text_at
from zeroclaw.network import Network
from zeroclaw.providers.local.checks import check_model, check_package
from zeroclaw.providers.local.provider import model_file_of
from zeroclaw.redact import without_credentials
from zeroclaw.retention.disk import free_bytes
from zeroclaw.stores.sqlite.files import has_database, has_wal_reset_bug
from zeroclaw.stores.sqlite.reader import open_read_only
from zeroclaw.tools.attachments import try_reader

_ANSWER_S = 5.0
_PLATFORM_S = 15.0
_GROUP_AND_OTHERS = 0o077
_UNAUTHORIZED = (401, 403)
_ANY_SERVER = "server.invalid"  # never contacted; RFC 2606
_NOT_TRIED = "not tried, because this shell does not have its secret"


async def probe(config: Path | None, data_dir: Path | None) -> Facts:
    """Run every probe; takes seconds at most.

    Args:
        config: As given on the command line.
        data_dir: As given on the command line.
    """
    now = SystemClock().now()
    configured, start = await asyncio.to_thread(_configuration, config, data_dir)
    facts = Facts(now=now, version=await asyncio.to_thread(version, "zeroclaw"))
    sqlite = sqlite3.sqlite_version_info[:3]
    results = [*configured, versions(facts.version, sqlite), await _network()]
    if start is None:
        text = "not checked, because the configuration has faults"
        results.append(warn("provider", text, "mend them first"))
    else:
        results.append(await _provider(start))
        facts.enabled = tuple(part.name for part in start.checked.channels)
        facts.missing = start.checked.missing
        facts.sandbox = await _sandbox(start.config.tools)
        results += await _platforms(start.checked)
    data = await asyncio.to_thread(_data, config, data_dir, start)
    is_foreign = data is not None and await asyncio.to_thread(_is_foreign, data)
    facts.is_root = os.geteuid() == 0 and not is_foreign
    if data is not None:
        facts.status, facts.errors = await _daemon(data)
        facts.store, used_bytes = await _store(data, now)
        retention = RetentionSettings() if start is None else start.config.retention
        bound_bytes = retention.max_disk_mb * 1_000_000
        facts.disk = await asyncio.to_thread(_disk, data, used_bytes, bound_bytes)
        if start is not None:
            results += _closed(start, facts.store)
            if not await is_running(data):
                results += await asyncio.to_thread(lambda: tuple(_taken_ports(start)))
    results += await asyncio.to_thread(_permissions, config, data, start, is_foreign=is_foreign)
    facts.results = tuple(results)
    return facts


def versions(zeroclaw: str, sqlite: tuple[int, int, int]) -> CheckResult:
    """Return a line with the versions in use."""
    text = f"zeroclaw {zeroclaw}, Python {platform.python_version()}, SQLite {'.'.join(map(str, sqlite))}"
    if has_wal_reset_bug(sqlite):
        # Not a warning: the bug needs a second program that writes, and zeroclaw is only one.
        text += " (do not open the database with another program while zeroclaw runs; 3.51.3 fixes this)"
    return ok("versions", text)


# --- the configuration ---------------------------------------------------------------------------


def _configuration(
    config: Path | None, data_dir: Path | None
) -> tuple[tuple[CheckResult, ...], Start | None]:
    """Return the configuration's faults; if it has none, also a daemon's start."""
    try:
        loaded = take_model(load(config, data_dir), os.environ, ask=None)
        start = start_of(loaded, os.environ, needs_all=False)
    except ConfigError as error:
        return tuple(fail("configuration", fault) for fault in error.faults), None
    name = start.places.config or "the built-in defaults"
    lines = (
        *(fail("configuration", fault) for fault in start.checked.unreadable),
        *(warn("configuration", warning) for warning in start.checked.warnings),
    )
    return lines or (ok("configuration", f"{name}: no faults"),), start


def _data(config: Path | None, data_dir: Path | None, start: Start | None) -> Path | None:
    """Return the data directory; None if it can't be determined."""
    with suppress(ConfigError):
        return data_place(config, data_dir) if start is None else start.places.data
    return None


# --- the running daemon --------------------------------------------------------------------------


async def _daemon(data: Path) -> tuple[Status | str, Errors]:
    try:
        async with asyncio.timeout(_ANSWER_S):
            return await ask(data, "status", Status), await ask(data, "errors", Errors)
    except TimeoutError:
        reason = f"the one in `{data}` does not answer within {_ANSWER_S:g} s; restart it"
    except (DaemonUnreachable, DaemonRefused) as error:
        reason = str(error)
    return reason, Errors()


def _taken_ports(start: Start) -> Iterator[CheckResult]:
    """Yield a line for each port that another program has, so that no daemon can start."""
    listener, public, channels = start.config.listener, start.config.public, start.checked.channels
    addresses: list[tuple[str, int, str]] = []
    if any(part.manifest.kind == "web" for part in channels):
        addresses.append((listener.host, listener.port, "listener.port"))
    if any(part.is_public for part in channels):
        addresses.append((public.host, public.port, "public.port"))
    for host, port, key in addresses:
        try:
            bind(host, port, key=key).close()
        except PortInUse as error:
            yield fail("daemon", str(error))


# --- the provider, the platforms and the sandbox ------------------------------------------------


async def _network() -> CheckResult:
    """Return a line about the proxies and certificates that this shell's environment sets."""
    network = Network(os.environ, asyncio.to_thread)
    try:
        proxies = {network.proxy_for(f"{scheme}://{_ANY_SERVER}") for scheme in ("http", "https")}
        await network.trusted_for(f"https://{_ANY_SERVER}")
    except NoWayOut as error:
        return fail("network", str(error), "mend it here, and where the daemon is started")
    urls = " and ".join(sorted(without_credentials(proxy) for proxy in proxies if proxy))
    variables = [f"`{name}`" for name in ("SSL_CERT_FILE", "SSL_CERT_DIR") if os.environ.get(name)]
    source = variables[0] if variables else "Mozilla's list"
    return ok("network", f"{f'through {urls}' if urls else 'no proxy'}; certificates from {source}")


async def _provider(start: Start) -> CheckResult:
    """Request the list of models, or check the file; never request an answer, which may cost."""
    settings = start.config.provider
    if any(key.startswith(f"{ANSWERS}.") for key in start.checked.missing):
        return ok("provider", f"`{settings.model or settings.kind}`: {_NOT_TRIED}")
    if settings.kind == "openai":
        return await _server(start)
    name = f"`{settings.kind}`"
    try:
        if settings.kind == "local":
            file = model_file_of(settings, start.places.models)
            name = f"the local model {file.name}"
            await asyncio.to_thread(check_model, file)
            await check_package()
            return ok("provider", name)
        provider = await asyncio.to_thread(open_provider, start, SystemClock())
    except ZeroclawError as error:
        return fail("provider", f"{name}: {error}")
    await provider.aclose()
    return ok("provider", f"{name}: opened, not tried")


async def _server(start: Start) -> CheckResult:
    settings = start.config.provider
    at = without_credentials(settings.base_url)
    name = start.checked.redactor.redact(f"`{settings.model}` of {at}")
    key = start.checked.secrets_of(ANSWERS).get("api_key", "").strip()
    try:
        server = await offers_of(settings.base_url, api_key=key)
    except NoOffer as error:
        if error.status in _UNAUTHORIZED:
            remedy = "check that `provider.api_key` is its key"
            return fail("provider", f"{name}: it answered {error.status}", remedy)
        # A server that answers anything else may speak the protocol without offering a list.
        answers = error.status is not None and error.status < 500  # noqa: PLR2004  HTTP's
        return (warn if answers else fail)("provider", f"{name}: {error}")
    models = {*server.models, *(model.removesuffix(":latest") for model in server.models)}
    if models and settings.model not in models:
        text = f"{name}: it answers, and its list has no such model"
        return warn("provider", text, "`zeroclaw models list` shows the list")
    return ok("provider", f"{name}: it answers")


async def _platforms(checked: CheckedConfig) -> tuple[CheckResult, ...]:
    """Ask the platforms of channels that offer a check, all at once."""

    async def try_channel(part: ChannelPart) -> CheckResult:
        if any(key.startswith(f"channels.{part.name}.") for key in checked.missing):
            return ok("channels", f"`{part.name}`: {_NOT_TRIED}")
        try:
            result = await ask_platform(part, checked.redactor, within_s=_PLATFORM_S)
        except ConfigError as error:
            return fail("channels", f"`{part.name}`: {'; '.join(error.faults)}")
        return (ok if result.is_ok else fail)("channels", f"`{part.name}`: {result.line}")

    async with asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(try_channel(part), name=f"check {part.name}")
            for part in checked.channels
            if part.manifest.check
        ]
    return tuple(task.result() for task in tasks)


def _closed(start: Start, store: Health | str | None) -> Iterator[CheckResult]:
    """Yield a line for each channel that admits no sender, and so answers none."""
    joined = store.joined if isinstance(store, Health) else ()
    for part in start.checked.channels:
        settings = start.config.channels[part.name]
        is_open = settings.allowed_users or settings.pairing == "code" or part.name in joined
        if not (is_open or part.manifest.local_operator):
            code = ', or set its `pairing` to "code"' if part.manifest.may_pair else ""
            remedy = f"list people in `channels.{part.name}.allowed_users`{code}"
            yield fail("channels", f"`{part.name}` lets nobody in, so it answers nobody", remedy)


async def _sandbox(tools: ToolsSettings) -> str | None:
    if not (tools.shell.enabled or tools.attachments.enabled):
        return None
    limits = Limits(memory_bytes=tools.shell.memory_bytes)
    result = await self_test(limits, network=tools.shell.network)
    if tools.attachments.enabled:
        result = await try_reader(result)
    return result.reason if isinstance(result, Broken) else ""


# --- the store -----------------------------------------------------------------------------------


async def _store(data: Path, now: datetime) -> tuple[Health | str | None, int]:
    """Return the health of the store or why it can't be read, and the bytes that it uses."""
    try:
        if not await asyncio.to_thread(has_database, data):
            return None, 0
        await asyncio.to_thread(stored_keys, data, now=now, secret=b"")
        async with open_read_only(data) as store:
            return await health(store, now), await store.used_bytes()
    except StoreUnusable as error:
        return str(error), 0


def _disk(data: Path, used_bytes: int, bound_bytes: int) -> Disk | None:
    if (free := free_bytes(nearest(data))) is None:
        return None
    return Disk(place=str(data), free_bytes=free, used_bytes=used_bytes, bound_bytes=bound_bytes)


# --- permissions ---------------------------------------------------------------------------------


def _permissions(
    config: Path | None, data: Path | None, start: Start | None, *, is_foreign: bool
) -> tuple[CheckResult, ...]:
    """Return lines about data that others can reach, and about unsafe files with secrets."""
    faults = [*_secrets_faults(config)]
    needed = {} if start is None else {nearest(start.places.workspaces): "workspace_dir"}
    needed |= {} if data is None else {nearest(data): "data_dir"}
    faults += (fault for folder, key in needed.items() for fault in _unwritable(folder, key))
    text = "no data yet"
    if data is not None and is_there(data) and data.is_dir():
        # Its files are that user's, too: root must not `chown` them away from a daemon's user.
        foreign = (f"`{data}` belongs to another user; run zeroclaw as that user",)
        faults += foreign if is_foreign else _reachable_in(data)
        text = "only this user can reach them"
    if data is None and not faults:
        return ()  # unknown; the store's line says why
    return tuple(fail("permissions", fault) for fault in faults) or (ok("permissions", text),)


def _unwritable(folder: Path, key: str) -> Iterator[str]:
    """Yield why no daemon of this user could start there; the key can name another directory."""
    if not folder.is_dir():
        yield f"`{folder}` is no directory; name another `{key}`"
        return
    try:
        # Without a name, so that nothing is left. Modes and mounts don't show that inodes ran out, or that ext4 gave up a disk.
        TemporaryFile(dir=folder).close()
    except (PermissionError, FileNotFoundError):  # the latter is procfs's
        yield f"this user can't write to `{folder}`; run `chown` on it, or name another `{key}`"
    except OSError as error:
        reason = system_words(error)
        yield f"can't create a file in `{folder}`: {reason}; check its disk, or name another `{key}`"


def _secrets_faults(config: Path | None) -> Iterator[str]:
    """Yield the faults of files with secrets, even if the configuration has other faults."""
    with suppress(ConfigError):  # reported as a fault of the configuration
        table = table_of(read_config(find_config(config)))
        yield from resolve(dict(_files_named(table, "")), environment=os.environ).faults.values()


def _files_named(value: object, path: str) -> Iterator[tuple[str, SecretReference]]:
    """Yield every `{file = "…"}` of a configuration with its key path."""
    if not is_object(value):
        return
    if (file := text_at(value, "file")) and len(value) == 1:
        yield path, SecretReference(file=file)
    else:
        for key, inner in value.items():
            yield from _files_named(inner, f"{path}.{key}" if path else key)


def _is_foreign(path: Path) -> bool:
    """Return whether a path exists and belongs neither to this user nor to root."""
    return is_there(path) and path.lstat().st_uid not in (os.geteuid(), 0)


def _reachable_in(data: Path) -> Iterator[str]:
    try:
        # Directories in it contain models, which are not secret.
        paths = sorted(data.iterdir())
        files = (path for path in paths if path.name != SOCKET and not path.is_dir())
        for path in (data, *files):
            yield from _reachable(path)
    except OSError as error:
        yield f"`{data}` can't be read: {system_words(error)}; make this user its owner"


def _reachable(path: Path) -> Iterator[str]:
    try:
        status = path.lstat()
    except FileNotFoundError:  # the database's log comes and goes
        return
    if stat.S_ISLNK(status.st_mode):
        return
    if status.st_uid not in (os.getuid(), 0):
        yield f"`{path}` belongs to another user; run `chown` on it, or run as its owner"
    elif status.st_mode & _GROUP_AND_OTHERS:
        mode = "700" if stat.S_ISDIR(status.st_mode) else "600"
        yield f"others can reach `{path}`; run `chmod {mode} {path}`"
