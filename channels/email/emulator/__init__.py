"""Mail on this machine, to try and to test a bot without an account; it needs dovecot, postfix and root.

servers          the two servers, brought up for this process
letters          mails as people's programs write and show them
control stage    what `zeroclaw try email` acts by
"""
