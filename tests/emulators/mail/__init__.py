"""Real mail on loopback: dovecot holds the mailboxes, postfix takes what is sent."""
