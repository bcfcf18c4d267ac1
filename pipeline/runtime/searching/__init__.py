"""Searching: thousands of searches share one policy engine and one scoring engine."""
