"""What is kept and for how long, and how it is handed out and taken away again."""
