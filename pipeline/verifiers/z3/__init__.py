"""Asks Z3 whether a step that is given formally follows from what stands before it."""
