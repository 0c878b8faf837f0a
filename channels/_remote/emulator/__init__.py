"""Code shared by platform emulators: a page with phones to act on, and the server behind it."""
