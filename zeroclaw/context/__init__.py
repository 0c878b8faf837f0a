"""Builds each request to the model, and makes it fit the model's window.

History, prompt, notes, skills and the texts of context providers; the journal is never changed.
"""
