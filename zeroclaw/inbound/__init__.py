"""How a message comes in: ingress, who people are, commands, and one mailbox a conversation."""
