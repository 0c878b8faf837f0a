"""The gate: every tool call is decided and recorded here before it may run."""
