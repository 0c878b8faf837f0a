"""A local Discord, to try and test a bot without Discord; needs simcord.

server              the Discord server and the protocols
view                pure: what the page shows
control stage       for `zeroclaw try discord`
"""
