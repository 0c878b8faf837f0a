"""What a conversation stores: its inbox, the attached files, and the rows of its turns."""
