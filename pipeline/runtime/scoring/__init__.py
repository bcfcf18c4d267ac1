"""Scoring chains, in one process or as a run."""
