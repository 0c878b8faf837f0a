"""The model providers, one package each; the daemon opens the configured one by its entry point."""
