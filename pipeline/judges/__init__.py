"""Judges: models that criticise chains in words, and how their verdicts are read."""
