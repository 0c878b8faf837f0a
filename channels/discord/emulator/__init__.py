"""A Discord on this machine, to try and to test a bot without Discord; it needs simcord.

server              what stands, and the protocols
markup view         pure: what the page shows
control stage       what `zeroclaw try discord` acts by
"""
