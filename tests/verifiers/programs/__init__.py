"""Chains of Python steps with known truth: generated right and wrong programs, and hostile ones."""
