"""Judging the chains of a run of `label`."""
