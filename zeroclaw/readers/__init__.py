"""Turns files that people send into text, in a separate, confined process."""
