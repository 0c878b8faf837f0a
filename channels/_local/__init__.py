"""What the chats of this machine share: one person, one chat, live events for whoever looks on.

The web page and the terminal are two of these. Each says how its events are read and shown; here
stand the envelopes that they become (`decode`), what stands in the chat (`render`), how live events
reach everybody who is open (`feed`), and the half of an adapter that is the same (`adapter`).
"""
