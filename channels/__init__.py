"""The channels: one package per platform, found by its entry point."""
