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

_MAX_SHOWN = 12


class Listing(Value):
    """The models found.

    Attributes:
        loaded: The configuration with the model in use.
        files: The files in the models directory, by name.
        servers: The servers that answered.
        silent: Why named servers did not answer.
    """

    loaded: Loaded
    files: tuple[ModelFile, ...]
    servers: tuple[Server, ...]
    silent: tuple[str, ...]

    @property
    def file_in_use(self) -> Path | None:
        """The model file in use, None if a server answers."""
        provider = self.loaded.config.provider
        is_local = provider.kind == "local"
        return model_file_of(provider, self.loaded.places.models) if is_local else None


async def listing(loaded: Loaded, *, url: str) -> Listing:
    """List the models directory, and ask the usual servers, the configured one, and `url`.

    Args:
        loaded: As `take_model` returned it.
        url: Another server, up to and including `/v1`; empty for none.
    """
    settings = loaded.config.provider
    keys = {url.rstrip("/"): ""} if url else {}
    silent: list[str] = []
    if settings.base_url:
        key = await asyncio.to_thread(_key_of, settings, silent)
        keys[settings.base_url.rstrip("/")] = key
    servers: list[Server] = []
    for base_url, key in keys.items():
        try:
            servers.append(await offers_of(base_url, api_key=key))
        except NoOffer as error:
            silent.append(str(error))
    servers += await on_loopback(base_url for base_url in USUAL if base_url not in keys)
    files = await asyncio.to_thread(model_files, loaded.places.models)
    return Listing(loaded=loaded, files=files, servers=tuple(servers), silent=tuple(silent))


def in_words(found: Listing) -> Iterator[str]:
    """Yield a listing as lines for a person."""
    yield f"model files in {found.loaded.places.models}"
    for file in found.files:
        marks = [
            f"{file.size_bytes / 1e6:,.0f} MB",
            "calls tools" if file.calls_tools else "only chats",
            *(["shipped"] if file.path.name == SHIPPED_FILE else []),
            *(["in use"] if file.path == found.file_in_use else []),
        ]
        yield f"  {file.path.name}  ({', '.join(marks)})"
    if not found.files:
        yield "  none; `zeroclaw models get` adds one"
    for server in found.servers:
        yield f"{server.name} offers on {without_credentials(server.base_url)}"
        for model in server.models[:_MAX_SHOWN]:
            yield f"  {model}{'  (in use)' if _is_in_use(found, server, model) else ''}"
        if (others := len(server.models) - _MAX_SHOWN) > 0:
            yield f"  … and {others} more; --json lists all"
    if not found.servers:
        yield "no model server answers on this machine"
    yield from found.silent
    yield f"in use: {_model_in_use(found)}"
    if found.loaded.reason:
        yield f"        {found.loaded.reason}"


def as_json(found: Listing) -> Mapping[str, object]:
    """Return a listing as JSON."""
    provider = found.loaded.config.provider
    return {
        "directory": str(found.loaded.places.models),
        "files": [
            {
                "name": file.path.name,
                **asdict(file),
                "path": str(file.path),
                "shipped": file.path.name == SHIPPED_FILE,
                "taken": file.path == found.file_in_use,
            }
            for file in found.files
        ],
        "servers": [
            {**asdict(server), "base_url": without_credentials(server.base_url)}
            for server in found.servers
        ],
        "silent": list(found.silent),
        "taken": {
            "kind": provider.kind,
            "model": provider.model,
            "base_url": without_credentials(provider.base_url),
            "file": str(found.file_in_use or ""),
            "why": found.loaded.reason,
        },
    }


def _is_in_use(found: Listing, server: Server, model: str) -> bool:
    provider = found.loaded.config.provider
    return (server.base_url, model) == (provider.base_url.rstrip("/"), provider.model)


def _model_in_use(found: Listing) -> str:
    provider = found.loaded.config.provider
    if found.file_in_use is not None:
        is_there = expand(str(found.file_in_use)).is_file()
        return f"{found.file_in_use}{'' if is_there else ', which does not exist'}"
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
