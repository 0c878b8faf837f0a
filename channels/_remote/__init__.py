"""What the platforms that are reached over the internet have in common; each stands beside it."""
