"""Benches: they print the figures of the README beside them and assert nothing."""
