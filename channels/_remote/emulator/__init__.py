"""What emulators of platforms share: a page of phones to act by, and the server behind it."""
