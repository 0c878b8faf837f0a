"""What an empty machine beside this one needs of it to reach a Debian mirror and a package index.

Nothing of it is written down here: apt, pip and the environment are asked, and every local path that
their answers name is what such a machine has to see as well.
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
_NAMES = (Path("/etc/resolv.conf"), Path("/etc/hosts"))
# How apt reaches a mirror; the rest of its configuration is about what this machine installs.
_REACHING = re.compile(r'^(Acquire::(?:https?|Check-|Retries)\S*) "(.+)";$', re.MULTILINE)
_INDEX = "simple"  # a package index in a directory keeps its files beside its pages


class Machine(Value):
    """This machine, as far as an empty one has to know it.

    Attributes:
        suite: The Debian that runs here.
        components: Of its archive, as apt uses them.
        mirror: Where apt gets it.
        apt: Lines of apt's configuration: how it is reached.
        environment: Of every process: how pip and TLS are set up.
        paths: What all of that names here, outermost only.
    """

    suite: str
    components: tuple[str, ...]
    mirror: str
    apt: str
    environment: Mapping[str, str]
    paths: tuple[Path, ...]


def look() -> Machine:
    """Ask apt, pip and the environment; blocks.

    Raises:
        LookupError: apt knows no mirror for the Debian that runs here.
    """
    suite = platform.freedesktop_os_release().get("VERSION_CODENAME", "")
    mirror, components = _archive(suite)
    reaching = _REACHING.findall(_said("apt-config", "dump"))
    passed = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    environment = {**passed, **_pip()}
    for name, value in reaching:
        if name == "Acquire::http::Proxy":  # debootstrap asks the environment
            environment.setdefault("http_proxy", value)
    named = chain.from_iterable(
        paths_in(text)
        for text in (*environment.values(), *(value for _, value in reaching), mirror)
    )
    return Machine(
        suite=suite,
        components=components,
        mirror=mirror,
        apt="".join(f'{name} "{value}";\n' for name, value in reaching),
        environment=environment,
        paths=outermost((*named, *_logins(), *(path for path in _NAMES if path.exists()))),
    )


def paths_in(value: str) -> Iterator[Path]:
    """Return the absolute paths of this machine that a setting names, plainly or as `file:` URLs."""
    for word in value.split():
        if word.startswith("file:"):
            path = Path(unquote(urlsplit(word).path))
            parts = [path.parent if path.name == _INDEX else path]
        else:
            parts = [Path(part) for part in word.split(":") if part.startswith("/")]
        yield from (path for path in parts if path != Path("/") and path.exists())


def outermost(paths: tuple[Path, ...]) -> tuple[Path, ...]:
    """Return each path once, without those that lie within another."""
    known = set(paths)
    return tuple(sorted(path for path in known if known.isdisjoint(path.parents)))


def _archive(suite: str) -> tuple[str, tuple[str, ...]]:
    """Return the mirror of a suite, and the components that apt takes from it."""
    told = _said("apt-get", "indextargets", "--format", "$(RELEASE) $(COMPONENT) $(SITE)")
    found = [line.split(maxsplit=2) for line in told.splitlines()]
    here = [(component, site) for release, component, site in found if release == suite]
    if not here:
        raise LookupError(f"apt has no mirror for `{suite}`")
    mirror = here[0][1]
    if mirror.startswith("mirror+file:"):  # a list of mirrors, one a line
        mirror = Path(urlsplit(mirror).path).read_text(encoding="utf-8").split()[0]
    return mirror, tuple(sorted({component for component, _ in here}))


def _logins() -> Iterator[Path]:
    """Return where apt keeps logins of mirrors, if it has any."""
    asked = ("FILE", "Dir::Etc::netrc/f", "PARTS", "Dir::Etc::netrcparts/d")
    for word in shlex.split(_said("apt-config", "shell", *asked)):
        path = Path(word.partition("=")[2])
        if path.is_file() or (path.is_dir() and any(path.iterdir())):
            yield path


def _pip() -> dict[str, str]:
    """Return what pip's files and variables come to, as variables."""
    pip = (sys.executable, "-m", "pip")
    settings: dict[str, str] = {}
    for line in _said(*pip, "config", "list").splitlines():  # variables come last, and count
        name, _, value = line.partition("=")
        section, _, key = name.rpartition(".")
        if section in ("global", "install", "download", ":env:"):
            text = " ".join(str(ast.literal_eval(value)).split())
            settings[f"PIP_{key.upper().replace('-', '_')}"] = text
    cache = Path(_said(*pip, "cache", "dir", may_fail=True).strip())
    if cache.is_absolute() and cache.is_dir():
        settings["PIP_CACHE_DIR"] = str(cache)
    return settings


def _said(*command: str, may_fail: bool = False) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=not may_fail)
    return done.stdout
