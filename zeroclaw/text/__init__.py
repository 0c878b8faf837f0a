"""The words of the daemon: every sentence in each language, and the escape of what nobody sees."""
