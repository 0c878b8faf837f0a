"""Models on this machine: their files, their downloads, and the servers that offer them."""
