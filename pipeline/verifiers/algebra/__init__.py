"""Judges identities and solved equations with the exact algebra of the answer checker."""
