"""Real mail on loopback: dovecot has the mailboxes, postfix accepts sent mail."""
