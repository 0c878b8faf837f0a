"""Models on this machine: their files, how they are fetched, and the servers that offer them."""
