"""The operator's web page: what waits, what holds, who is in, what was done, and why."""
