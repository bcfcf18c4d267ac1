"""Runs the program of a chain in a sandbox, up to a step, with the tests that the problem and the steps state."""
