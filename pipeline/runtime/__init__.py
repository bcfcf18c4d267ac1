"""Executes a run: units, rounds, budgets, workers, the driver, and Ray."""
