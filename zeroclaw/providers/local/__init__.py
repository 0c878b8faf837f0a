"""A model on this machine: llama.cpp in a child process, from a prebuilt package."""

from zeroclaw.providers.local.provider import LocalProvider, LocalRules, open_provider

__all__ = ["LocalProvider", "LocalRules", "open_provider"]
