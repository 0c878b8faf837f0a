"""One turn: from a queued message to the commit of its answer.

A pure machine decides each step, the loop performs it, and a journal records it.
"""
