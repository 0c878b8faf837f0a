"""What a conversation has on record: its inbox, the files that came, and the rows of its turns."""
