"""Looks up claims about facts in a table of the user's."""
