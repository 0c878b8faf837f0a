"""Any OpenAI-compatible endpoint: the chat-completions wire format, streamed."""

from zeroclaw.providers.openai.provider import OpenAIProvider, open_endpoint, open_provider

__all__ = ["OpenAIProvider", "open_endpoint", "open_provider"]
