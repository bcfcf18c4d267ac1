"""Checks the annotations of a chain's program with mypy, in a process that knows the standard library and nothing else."""
