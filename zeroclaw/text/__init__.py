"""The daemon's words: every sentence in each language, and the escaping of invisible characters."""
