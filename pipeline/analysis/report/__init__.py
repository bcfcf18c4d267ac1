"""A run as a page and in a few lines."""
