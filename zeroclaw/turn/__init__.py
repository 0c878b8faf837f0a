"""One turn: from a person's message to the commit of its answer."""
