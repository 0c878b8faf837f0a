"""What turns use, what it costs, and how much they may use: budgets, prices, repeated calls."""
