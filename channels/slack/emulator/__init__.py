"""A local Slack: `emulate` from npm behind our own front end.

server          the workspace and the protocols
view            pure: what the page shows
control stage   for `zeroclaw try slack`

Nothing here imports the adapter, so that the two don't share mistakes.
"""
