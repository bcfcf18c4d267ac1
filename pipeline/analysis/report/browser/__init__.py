"""The part of the page that shows chains: its data, its scripts and its style."""
