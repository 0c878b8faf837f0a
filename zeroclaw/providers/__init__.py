"""The model providers; each is opened through its entry point."""
