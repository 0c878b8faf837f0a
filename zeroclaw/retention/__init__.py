"""How long data is kept, how it is exported, and how it is erased on request."""
