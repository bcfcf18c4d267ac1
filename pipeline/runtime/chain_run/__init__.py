"""The one way through a run, from its claim to its summary, and what runs over chains share."""
