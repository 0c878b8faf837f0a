"""What turns bytes that people send into text; such bytes are read in a process of its own."""
