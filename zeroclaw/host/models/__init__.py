"""Models on this machine: their files, and the servers that offer them."""
