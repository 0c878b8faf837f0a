"""The operator's web page: open requests, grants, people, conversations, usage, audit and policy."""
