"""A run at work: units, rounds, budgets, workers, the driver, and Ray."""
