"""Pickers: which of the prefixes that rollouts wrote are measured next."""
