"""Limits on what turns use: token and money budgets, prices, repeated calls."""
