"""A provider that plays a script: for tests, and for `zeroclaw demo`."""

from zeroclaw.providers.scripted.provider import ScriptedProvider, open_provider

__all__ = ["ScriptedProvider", "open_provider"]
