"""Lists the models on this machine, those that servers offer, and the one in use."""

import asyncio
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from msgspec.structs import asdict

from zeroclaw.cli.configuration import Loaded
from zeroclaw.config.model import ProviderSettings
from zeroclaw.host.models.gguf import ModelFile, model_files
from zeroclaw.host.models.listing import USUAL, Server
from zeroclaw.host.models.servers import NoOffer, offers_of, on_loopback
from zeroclaw.host.places import expand
from zeroclaw.host.references import resolve
from zeroclaw.providers.local.provider import SHIPPED_FILE, model_file_of
from zeroclaw.redact import without_credentials
from zeroclaw.value import Value

_MOST_SHOWN = 12


class Listing(Value):
    """The models found.

    Attributes:
        taken: The configuration with the model in use, and why.
        files: The files in the models directory, by name.
        servers: The servers that answered.
        silent: Why named servers did not answer.
    """

    taken: Loaded
    files: tuple[ModelFile, ...]
    servers: tuple[Server, ...]
    silent: tuple[str, ...]

    @property
    def file_taken(self) -> Path | None:
        """The model file in use, None if a server answers."""
        provider = self.taken.config.provider
        is_local = provider.kind == "local"
        return model_file_of(provider, self.taken.places.models) if is_local else None


async def listing(taken: Loaded, *, url: str) -> Listing:
    """List the models directory, and ask the usual servers, the configured one, and `url`.

    Args:
        taken: As `take_model` returned it.
        url: Another server, up to and including `/v1`; empty for none.
    """
    settings = taken.config.provider
    named = {url.rstrip("/"): ""} if url else {}
    silent: list[str] = []
    if settings.base_url:
        key = await asyncio.to_thread(_key_of, settings, silent)
        named[settings.base_url.rstrip("/")] = key
    servers: list[Server] = []
    for base_url, key in named.items():
        try:
            servers.append(await offers_of(base_url, api_key=key))
        except NoOffer as error:
            silent.append(str(error))
    servers += await on_loopback(one for one in USUAL if one not in named)
    files = await asyncio.to_thread(model_files, taken.places.models)
    return Listing(taken=taken, files=files, servers=tuple(servers), silent=tuple(silent))


def in_words(found: Listing) -> Iterator[str]:
    """Yield a listing as lines for a person."""
    yield f"model files in {found.taken.places.models}"
    for file in found.files:
        marks = [
            f"{file.size_bytes / 1e6:,.0f} MB",
            "calls tools" if file.calls_tools else "only chats",
            *(["shipped"] if file.path.name == SHIPPED_FILE else []),
            *(["in use"] if file.path == found.file_taken else []),
        ]
        yield f"  {file.path.name}  ({', '.join(marks)})"
    if not found.files:
        yield "  none; `zeroclaw models get` adds one"
    for server in found.servers:
        yield f"{server.name} offers on {without_credentials(server.base_url)}"
        for model in server.models[:_MOST_SHOWN]:
            yield f"  {model}{'  (in use)' if _is_taken(found, server, model) else ''}"
        if (more := len(server.models) - _MOST_SHOWN) > 0:
            yield f"  … and {more} more; --json lists all"
    if not found.servers:
        yield "no model server answers on this machine"
    yield from found.silent
    yield f"in use: {_what(found)}"
    if found.taken.why:
        yield f"        {found.taken.why}"


def as_json(found: Listing) -> Mapping[str, object]:
    """Return a listing as JSON."""
    provider = found.taken.config.provider
    return {
        "directory": str(found.taken.places.models),
        "files": [
            {
                "name": file.path.name,
                **asdict(file),
                "path": str(file.path),
                "shipped": file.path.name == SHIPPED_FILE,
                "taken": file.path == found.file_taken,
            }
            for file in found.files
        ],
        "servers": [
            {**asdict(one), "base_url": without_credentials(one.base_url)} for one in found.servers
        ],
        "silent": list(found.silent),
        "taken": {
            "kind": provider.kind,
            "model": provider.model,
            "base_url": without_credentials(provider.base_url),
            "file": str(found.file_taken or ""),
            "why": found.taken.why,
        },
    }


def _is_taken(found: Listing, server: Server, model: str) -> bool:
    provider = found.taken.config.provider
    return (server.base_url, model) == (provider.base_url.rstrip("/"), provider.model)


def _what(found: Listing) -> str:
    provider = found.taken.config.provider
    if found.file_taken is not None:
        is_there = expand(str(found.file_taken)).is_file()
        return f"{found.file_taken}{'' if is_there else ', which does not exist'}"
    if provider.kind == "openai":
        return f"`{provider.model}` of {without_credentials(provider.base_url)}"
    return f'kind = "{provider.kind}"'


def _key_of(settings: ProviderSettings, silent: list[str]) -> str:
    """Return the configured key, or empty; its faults are added to `silent`."""
    if settings.api_key is None:
        return ""
    resolved = resolve({"provider.api_key": settings.api_key}, environment=os.environ)
    silent += resolved.faults.values()
    return next((value.strip() for value in resolved.values.values()), "")
