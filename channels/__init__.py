"""The channels: one package a platform, found by its entry point."""
