"""One turn: from a person's message to the answer's last commit."""
