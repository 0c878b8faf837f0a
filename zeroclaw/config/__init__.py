"""The configuration: its model, what is wrong with it, what changed in it, and edits of its file."""
