"""The way in: identifies senders, admits and stores events, and runs commands.

Each conversation has one mailbox, which starts its turns in order.
"""
