"""A Slack on this machine: `emulate` from npm, behind a front of ours.

server          what stands, and the protocols
view            pure: what the page shows
control stage   what `zeroclaw try slack` acts by

Nothing here knows the adapter, so that no mistake is made on both sides.
"""
