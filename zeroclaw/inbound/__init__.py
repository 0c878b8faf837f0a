"""Incoming messages: ingress, identity, commands, and one mailbox per conversation."""
