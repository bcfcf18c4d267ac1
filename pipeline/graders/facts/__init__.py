"""The checker of answers to factual questions."""
