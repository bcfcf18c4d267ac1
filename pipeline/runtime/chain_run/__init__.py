"""The engine of all runs, and what runs over chains share."""
