"""Limits on what turns use: budgets in tokens and money, prices, and the usage that was recorded."""
