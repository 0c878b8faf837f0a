"""A conversation in a terminal: the line to the daemon, what is shown, what is typed."""
