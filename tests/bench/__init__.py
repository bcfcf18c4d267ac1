"""Benches: they print the figures of the README and assert nothing."""
