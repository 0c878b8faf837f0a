"""How a message comes in: the door, who people are, commands, and one mailbox a conversation."""
