"""Compares two runs: `report` with two run directories."""
