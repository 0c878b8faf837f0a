"""Deletes old data, and exports and erases data on request."""
