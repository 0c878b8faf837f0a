"""Delivery: drafts while an answer is written, then its final text, cards and notes."""
