"""What turns bytes that somebody sent into text; such bytes are read in a process of its own."""
