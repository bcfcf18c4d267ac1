"""Judges: models that criticise chains in words, and how their verdicts are read. See README.md."""

PARSER_VERSION = 1
"""The version of how verdicts are read from texts. It rises with every change that reads a text otherwise than before."""
