"""Writes labels in the formats that trainers read."""
