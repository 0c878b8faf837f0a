"""The stored parts of a conversation: its inbox, attached files, and the rows of its turns."""
