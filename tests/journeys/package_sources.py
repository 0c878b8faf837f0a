"""Finds how this machine reaches a Debian mirror and a package index, so that an empty one can too.

The answers come from apt, pip and the environment; every local path that they name has to be visible
on the empty machine as well.
"""

import ast
import os
import platform
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path
from urllib.parse import unquote, urlsplit

from zeroclaw.value import Value

_AUTHORITIES = ("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")
_PROXIES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")
_PASSED_ON = (*_AUTHORITIES, *_PROXIES, *(name.upper() for name in _PROXIES))
_RESOLVER_FILES = (Path("/etc/resolv.conf"), Path("/etc/hosts"))
# How apt reaches a mirror; the rest of its configuration is about installing.
_ACQUIRE_OPTION = re.compile(r'^(Acquire::(?:https?|Check-|Retries)\S*) "(.+)";$', re.MULTILINE)
_INDEX = "simple"  # a package index in a directory keeps its files beside its pages


class PackageSources(Value):
    """Where this machine gets packages, and how it reaches them.

    Attributes:
        suite: The codename of this Debian.
        components: The components of its archive that apt uses.
        mirror: The URL of apt's mirror.
        apt: Lines of apt's configuration that say how to reach the mirror.
        environment: Variables for pip and TLS, for every process.
        paths: The local paths that all of these name, outermost only.
    """

    suite: str
    components: tuple[str, ...]
    mirror: str
    apt: str
    environment: Mapping[str, str]
    paths: tuple[Path, ...]


def find_package_sources() -> PackageSources:
    """Ask apt, pip and the environment; blocks.

    Raises:
        LookupError: apt knows no mirror for this Debian.
    """
    suite = platform.freedesktop_os_release().get("VERSION_CODENAME", "")
    mirror, components = _archive(suite)
    acquire_options = _ACQUIRE_OPTION.findall(_output_of("apt-config", "dump"))
    variables = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    environment = {**variables, **_pip()}
    for name, value in acquire_options:
        if name == "Acquire::http::Proxy":  # debootstrap asks the environment
            environment.setdefault("http_proxy", value)
    local_paths = chain.from_iterable(
        paths_in(text)
        for text in (*environment.values(), *(value for _, value in acquire_options), mirror)
    )
    return PackageSources(
        suite=suite,
        components=components,
        mirror=mirror,
        apt="".join(f'{name} "{value}";\n' for name, value in acquire_options),
        environment=environment,
        paths=outermost(
            (*local_paths, *_logins(), *(path for path in _RESOLVER_FILES if path.exists()))
        ),
    )


def paths_in(value: str) -> Iterator[Path]:
    """Yield the existing absolute paths that a setting names, plainly or as `file:` URLs."""
    for word in value.split():
        if word.startswith("file:"):
            path = Path(unquote(urlsplit(word).path))
            parts = [path.parent if path.name == _INDEX else path]
        else:
            parts = [Path(part) for part in word.split(":") if part.startswith("/")]
        yield from (path for path in parts if path != Path("/") and path.exists())


def outermost(paths: tuple[Path, ...]) -> tuple[Path, ...]:
    """Return each path once, without those that lie within another."""
    unique = set(paths)
    return tuple(sorted(path for path in unique if unique.isdisjoint(path.parents)))


def _archive(suite: str) -> tuple[str, tuple[str, ...]]:
    """Return the mirror of a suite, and the components that apt takes from it."""
    output = _output_of("apt-get", "indextargets", "--format", "$(RELEASE) $(COMPONENT) $(SITE)")
    found = [line.split(maxsplit=2) for line in output.splitlines()]
    targets = [(component, site) for release, component, site in found if release == suite]
    if not targets:
        raise LookupError(f"apt has no mirror for `{suite}`")
    mirror = targets[0][1]
    if mirror.startswith("mirror+file:"):  # a list of mirrors, one a line
        mirror = Path(urlsplit(mirror).path).read_text(encoding="utf-8").split()[0]
    return mirror, tuple(sorted({component for component, _ in targets}))


def _logins() -> Iterator[Path]:
    """Yield the files in which apt keeps logins of mirrors."""
    config_keys = ("FILE", "Dir::Etc::netrc/f", "PARTS", "Dir::Etc::netrcparts/d")
    for word in shlex.split(_output_of("apt-config", "shell", *config_keys)):
        path = Path(word.partition("=")[2])
        if path.is_file() or (path.is_dir() and any(path.iterdir())):
            yield path


def _pip() -> dict[str, str]:
    """Return pip's effective settings as environment variables."""
    pip = (sys.executable, "-m", "pip")
    settings: dict[str, str] = {}
    for line in _output_of(*pip, "config", "list").splitlines():  # variables come last, and count
        name, _, value = line.partition("=")
        section, _, key = name.rpartition(".")
        if section in ("global", "install", "download", ":env:"):
            text = " ".join(str(ast.literal_eval(value)).split())
            settings[f"PIP_{key.upper().replace('-', '_')}"] = text
    cache = Path(_output_of(*pip, "cache", "dir", may_fail=True).strip())
    if cache.is_absolute() and cache.is_dir():
        settings["PIP_CACHE_DIR"] = str(cache)
    return settings


def _output_of(*command: str, may_fail: bool = False) -> str:
    completed = subprocess.run(command, capture_output=True, text=True, check=not may_fail)
    return completed.stdout
