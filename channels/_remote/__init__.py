"""Code shared by the channels of platforms that are reached over the internet."""
