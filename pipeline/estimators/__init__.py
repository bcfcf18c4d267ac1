"""Estimators: they decide which prefix gets rollouts next, and compute values and labels from the rollouts."""
