"""The slash commands, the same on every channel; one file per family."""
