"""Delivery: shows drafts while an answer is written, and delivers what must arrive.

The outbox holds final answers, notes, files and cards until the platform has them.
"""
