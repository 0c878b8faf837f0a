"""Mail on this machine, to try and test a bot without an account; needs dovecot, postfix and root.

servers          the two servers, started for this process
letters          mails as people's programs write and show them
control stage    the page of `zeroclaw try email`
"""
