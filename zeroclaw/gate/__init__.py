"""The gate: every tool call is decided here, and leaves a record, before it may run."""
